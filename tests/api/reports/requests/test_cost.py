"""All requests of access logs, with their bytes and times."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.reports.client import CSV, FIREFOX, GPTBOT, NDJSON, PARQUET, client_of, problem, table
from tests.processes.running import Running

ASKED = [  # minute, path, status, agent, bytes and seconds
    (0, "/robots.txt", 200, GPTBOT, 100, 0.0005),
    (1, "/a", 200, GPTBOT, 1_000, 0.015),
    (2, "/b", 200, GPTBOT, 1_000, 0.019),
    (3, "/c", 429, GPTBOT, None, None),
    (4, "/a", 200, FIREFOX, 5_000, 0.3),
    (5, "/style.css", 304, FIREFOX, 0, None),
]
GPTBOT_ROW = {
    "value": "GPTBot", "requests": 4, "bytes": 2_100, "sized": 3, "bytesKnown": 75.0, "timed": 3, "timesKnown": 75.0,
    "p50Ms": 20, "p95Ms": 20, "cached": 0, "cacheKnown": 0.0, "cacheHits": 0, "refused": 1,
    "afterRefusal": 0, "robotsRead": "2026-09-02T10:00:00Z", "lastSeen": "2026-09-02T10:03:00Z",
}  # fmt: skip
PEOPLE_ROW = {
    "value": None, "requests": 2, "bytes": 5_000, "sized": 2, "bytesKnown": 100.0, "timed": 1, "timesKnown": 50.0,
    "p50Ms": 500, "p95Ms": 500, "cached": 0, "cacheKnown": 0.0, "cacheHits": 0,
    "refused": 0, "afterRefusal": None, "robotsRead": None, "lastSeen": "2026-09-02T10:05:00Z",
}  # fmt: skip
TOTALS = {
    "requests": 6, "bytes": 7_100, "sized": 5, "bytesKnown": 83.3, "timed": 4, "timesKnown": 66.7, "p50Ms": 20,
    "p95Ms": 500, "cached": 0, "cacheKnown": 0.0, "cacheHits": 0, "refused": 1, "afterRefusal": None,
    "robotsRead": "2026-09-02T10:00:00Z", "lastSeen": "2026-09-02T10:05:00Z",
}  # fmt: skip


def caddy(minute: int, path: str, status: int, agent: str, size: int | None, seconds: float | None) -> str:
    headers = {"User-Agent": [agent]}
    request = {"method": "GET", "uri": path, "headers": headers}
    line = {"ts": f"2026-09-02T10:{minute:02}:00Z", "level": "info", "logger": "http.log.access", "request": request}
    return json.dumps({**line, "status": status, "size": size, "duration": seconds})


@pytest.fixture(scope="module")
def cost(service: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a client of a project into which a log was imported."""
    log = tmp_path_factory.mktemp("cost") / "caddy.log"
    log.write_text("".join(f"{caddy(*each)}\n" for each in ASKED))
    with client_of(service, "reports-cost") as client:
        assert service.run("import", "reports-cost", str(log)).returncode == 0
        yield client


def rows(client: httpx.Client, query: str = "") -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = client.get(f"cost?{query}").json()["rows"]
    return listed


def test_agents_have_their_requests_bytes_and_times(cost: httpx.Client) -> None:
    assert cost.get("cost").json() == {"totals": TOTALS, "rows": [GPTBOT_ROW, PEOPLE_ROW], "hasMore": False}


def test_totals_are_of_the_range_and_filters_on_every_page(cost: httpx.Client) -> None:
    for query in ("limit=1&by=status", "limit=1&offset=9&by=kind"):
        assert cost.get(f"cost?{query}").json()["totals"] == TOTALS
    of_ai = {name: value for name, value in GPTBOT_ROW.items() if name != "value"}
    assert cost.get("cost?traffic=ai").json()["totals"] == {**of_ai, "afterRefusal": None}
    nothing = {name: 0 if isinstance(value, int) else None for name, value in TOTALS.items()}
    assert cost.get("cost?dateFrom=2026-09-03").json()["totals"] == {
        **nothing,
        "bytes": None,
        "p50Ms": None,
        "p95Ms": None,
    }


def test_filters_and_days_choose_requests(cost: httpx.Client) -> None:
    expected = {
        "by=operator": [("OpenAI", 4), (None, 2)],
        "by=kind": [("page", 4), ("asset", 1), ("robots", 1)],
        "by=status": [("200", 4), ("304", 1), ("429", 1)],
        "by=source": [("log", 6)],
        "by=date": [("2026-09-02", 6)],
        "source=server": [],
        "by=kind&agent=GPTBot": [("page", 3), ("robots", 1)],
        "traffic=human": [(None, 2)],
        "operator=OpenAI&status=429": [("GPTBot", 1)],
        "kind=asset": [(None, 1)],
        "limit=1": [("GPTBot", 4)],
        "limit=1&offset=1": [(None, 2)],
        "dateFrom=2026-09-03": [],
        "dateTo=2026-09-02": [],
        "dateFrom=2026-09-02&dateTo=2026-09-03&agent=GPTBot": [("GPTBot", 4)],
    }
    assert {query: [(row["value"], row["requests"]) for row in rows(cost, query)] for query in expected} == expected


def test_what_was_not_logged_is_null(cost: httpx.Client) -> None:
    [refused] = rows(cost, "status=429")
    assert (refused["bytes"], refused["sized"], refused["p50Ms"], refused["p95Ms"]) == (None, 0, None, None)


def test_tables_have_all_rows(cost: httpx.Client) -> None:
    answer = cost.get("cost?traffic=ai", headers={"Accept": CSV})
    assert answer.text == (
        "agent,requests,bytes,sized,bytesKnown,timed,timesKnown,p50Ms,p95Ms,cached,cacheKnown,cacheHits,refused,"
        "afterRefusal,robotsRead,lastSeen\r\n"
        "GPTBot,4,2100,3,75.0,3,75.0,20,20,0,0.0,0,1,0,2026-09-02T10:00:00+00:00,2026-09-02T10:03:00+00:00\r\n"
    )
    assert table(cost.get("cost?traffic=human", headers={"Accept": CSV}))[0]["robotsRead"] is None
    for kind in (NDJSON, PARQUET):
        assert [row["requests"] for row in table(cost.get("cost?limit=1", headers={"Accept": kind}))] == [4, 2]


def test_requests_are_no_page_views(cost: httpx.Client) -> None:
    assert cost.get("breakdown?by=path").json()["totals"] == {"human": 1, "ai": 2, "bot": 0, "total": 3}


def test_invalid_parameter_is_named(cost: httpx.Client) -> None:
    for query in ("by=path", "kind=x", "status=99", "traffic=x", "dateTo=2026-09-01T12:00:00Z", "path=/a"):
        [error] = problem(cost.get(f"cost?{query}"), 400)["errors"]
        assert error["parameter"] == query.partition("=")[0]


def test_requests_can_be_queried(cost: httpx.Client, service: Running) -> None:
    sums = "sum(requests)::INT AS requests, sum(bytes)::INT AS bytes"
    sql = f"SELECT {sums} FROM requests WHERE project_id = 'reports-cost'"
    assert json.loads(service.run("sql", sql).stdout) == [{"requests": 6, "bytes": 7_100}]
