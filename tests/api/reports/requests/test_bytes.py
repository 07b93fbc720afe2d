"""The metric `bytes` of series and breakdowns: the bytes of all requests, and for which share they are known."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pyarrow as pa
import pytest

from api.reports import records
from api.reports.parameters import Selection
from api.reports.report import Run
from tests.api.reports.client import CSV, FIREFOX, GPTBOT, client_of, problem, table
from tests.processes.running import Running
from tests.warehouse.site import Site
from warehouse.query.moment import Moment
from warehouse.query.snapshot import SnapshotReader
from warehouse.report.audience.requests import RequestQuery
from warehouse.report.reports import Reports

CLAUDE = "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)"


class Asked(NamedTuple):
    day: int
    path: str
    status: int
    agent: str | None
    size: int | None


ASKED = [
    Asked(day, path, status, agent, None if (day + number) % 3 == 0 else 1_000 * day + number)
    for day in (1, 2, 9, 30)
    for number, (path, status, agent) in enumerate(
        [("/a", 200, "GPTBot"), ("/robots.txt", 200, "GPTBot"), ("/a", 404, "ClaudeBot"), ("/b", 200, None),
         ("/style.css", 200, None)]
    )
] + [Asked(3, "/a", 200, "GPTBot", None), Asked(3, "/c", 200, "ClaudeBot", 77)]  # fmt: skip
USER_AGENTS = {"GPTBot": GPTBOT, "ClaudeBot": CLAUDE, None: FIREFOX}
OPERATORS = {"GPTBot": "OpenAI", "ClaudeBot": "Anthropic", None: None}


def line(each: Asked) -> str:
    request = {"method": "GET", "uri": each.path, "headers": {"User-Agent": [USER_AGENTS[each.agent]]}}
    logged = {"ts": f"2026-09-{each.day:02}T10:00:00Z", "level": "info", "logger": "http.log.access"}
    return json.dumps({**logged, "request": request, "status": each.status, "size": each.size, "duration": 0.1})


@pytest.fixture(scope="module")
def sized(service: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a client of a project with a log, and a person whose script sent a view."""
    log = tmp_path_factory.mktemp("bytes") / "caddy.log"
    log.write_text("".join(f"{line(each)}\n" for each in ASKED))
    with client_of(service, "reports-bytes") as client:
        client.post("hits", json={"path": "/a", "userAgent": FIREFOX, "timestamp": "2026-09-05T10:00:00Z"})
        assert service.run("import", "reports-bytes", str(log)).returncode == 0
        yield client


def summed(key: Callable[[Asked], Any], chosen: Callable[[Asked], bool] = lambda each: True) -> dict[Any, Any]:
    """Return the bytes and the share of requests with bytes by a key, from the requests themselves."""
    groups = defaultdict(list)
    for each in filter(chosen, ASKED):
        groups[key(each)].append(each.size)
    return {value: of_sizes(sizes) for value, sizes in groups.items()}


def of_sizes(sizes: list[int | None]) -> tuple[int | None, float | None]:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None, round(100 * len(known) / len(sizes), 1) if sizes else None


def both(row: dict[str, Any]) -> tuple[int | None, float | None]:
    return row["bytes"], row["bytesKnown"]


@pytest.mark.parametrize(
    ("by", "key"),
    [
        ("agent", lambda each: each.agent),
        ("operator", lambda each: OPERATORS[each.agent]),
        ("status", lambda each: str(each.status)),
        ("source", lambda each: "log"),
    ],
)
def test_breakdown_has_the_bytes_of_all_requests(sized: httpx.Client, by: str, key: Callable[[Asked], Any]) -> None:
    answer = sized.get(f"breakdown?by={by}&metrics=bytes").json()
    expected = {None: (None, None), "server": (None, None), **summed(key)}
    shown = {row["value"]: both(row) for row in answer["rows"]}
    assert shown == {value: expected[value] for value in shown}
    assert summed(key).keys() - shown.keys() == ({"404"} if by == "status" else set())  # errors are no views
    assert both(answer["totals"]) == summed(lambda each: "all")["all"]
    assert "visits" not in answer["totals"]


@pytest.mark.parametrize("interval", ["day", "week", "month"])
@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("", lambda each: True),
        ("&agent=GPTBot", lambda each: each.agent == "GPTBot"),
        ("&traffic=human", lambda each: each.agent is None),
        ("&status=404", lambda each: each.status == 404),
        ("&source=server", lambda each: False),
    ],
)
def test_series_has_the_bytes_of_each_interval(
    sized: httpx.Client, interval: str, query: str, chosen: Callable[[Asked], bool]
) -> None:
    def start(each: Asked) -> str:
        day = date(2026, 9, each.day)
        first = {"day": day, "week": day - timedelta(day.weekday()), "month": day.replace(day=1)}
        return first[interval].isoformat()

    def in_range(each: Asked) -> bool:
        return 2 <= each.day < 30 and chosen(each)

    parameters = f"interval={interval}&dateFrom=2026-09-02&dateTo=2026-09-30&metrics=bytes,visits{query}"
    answer = sized.get(f"series?{parameters}").json()
    expected = summed(start, in_range)
    assert {row["start"]: both(row) for row in answer["series"]} == {
        row["start"]: expected.get(row["start"], (None, None)) for row in answer["series"]
    }
    assert expected.keys() <= {row["start"] for row in answer["series"]}
    assert both(answer["totals"]) == summed(lambda each: "all", in_range).get("all", (None, None))
    assert "visits" in answer["totals"]


def test_table_has_the_columns_of_bytes(sized: httpx.Client) -> None:
    rows = table(sized.get("breakdown?by=agent&metrics=bytes,visitors", headers={"Accept": CSV}))
    by_agent = {row["agent"]: (row["bytes"], row["bytesKnown"]) for row in rows}
    size, known = summed(lambda each: each.agent)["GPTBot"]
    assert by_agent["GPTBot"] == (str(size), str(known))


def test_what_requests_do_not_have_is_refused_by_name(sized: httpx.Client) -> None:
    for query, named in {
        "breakdown?by=browser": "by browser agent operator status source",
        "breakdown?by=entryPage": "entryPage",
        "breakdown?by=agent&path=/a": "path",
        "breakdown?by=agent&country=DE": "country",
        "breakdown?by=agent&dateFrom=2026-09-01T12:00:00Z": "dateFrom",
        "series?interval=hour": "interval hour",
        "series?timezone=Europe/Berlin": "timezone Europe/Berlin",
    }.items():
        [error] = problem(sized.get(f"{query}&metrics=views,bytes"), 400)["errors"]
        assert error["parameter"] == "metrics"
        assert [word for word in ["bytes", *named.split()] if word not in error["detail"]] == []


def test_status_of_requests_is_an_integer(sized: httpx.Client) -> None:
    for report in ("breakdown?by=agent&metrics=bytes", "series?metrics=bytes", "cost?by=agent"):
        for status in ("abc", "99", "1000", "99999999999999999999", "-200", ""):
            [error] = problem(sized.get(f"{report}&status={status}"), 400)["errors"]
            assert error == {"parameter": "status", "detail": f"must be an integer from 100 to 999, not {status!r}"}


class RecordedReports(Reports):
    """Reports that record by which column each query counts requests."""

    queried: list[str]

    def requests(self, query: RequestQuery, moment: Moment, by: str) -> pa.Table:
        self.queried.append(by)
        return super().requests(query, moment, by)


def test_requests_are_read_once_by_each_column(tmp_path: Path) -> None:
    with closing(Site(tmp_path)) as site:
        reader = SnapshotReader(site.hot_log, site.root)
        with closing(RecordedReports(reader, site.root, site.spill, 1_000_000)) as reports:
            for report, selection, reads in (
                (records.SERIES, Selection("p", metrics=("bytes",)), ["date"]),
                (records.BREAKDOWN, Selection("p", by="agent", metrics=("bytes",)), ["agent", "date"]),
            ):
                reports.queried = []
                report.document(Run(reports, reports.take(), selection))
                assert reports.queried == reads


def test_every_metric_of_entry_pages_is_one_of_visits(sized: httpx.Client) -> None:
    totals = sized.get("breakdown?by=entryPage").json()["totals"]
    assert ("visits" in totals, "bytes" in totals) == (True, False)
