"""The export of page views: order, pages, range, media types and ETag, before and after the hits are loaded."""

import io
import re
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from api.cli.main import main
from tests.api.reports.client import CSV, FIREFOX, GOOGLEBOT, GPTBOT, NDJSON, NOTHING, PARQUET, client_of, post, table
from tests.processes.running import Running
from tests.processes.waiting import until


def get(site: httpx.Client, query: str = "") -> Any:
    response = site.get(f"views?{query}")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def paths(site: httpx.Client, query: str = "") -> str:
    """Return the paths of a report without their slashes, in alphabetical order."""
    return "".join(sorted(row["path"].removeprefix("/") for row in get(site, query)["views"]))


def test_human_and_ai_views_are_counted_separately_and_bots_not_at_all(site: httpx.Client) -> None:
    seen = [("/a", FIREFOX), ("/a", FIREFOX), ("/a", GPTBOT), ("/a", GOOGLEBOT), ("/b", GPTBOT), ("/bots", GOOGLEBOT)]
    post(site, *seen, ("/bots", ""), ("/bots", "curl/8.5.0"))
    assert get(site) == {
        "totals": {"human": 2, "ai": 2, "total": 4},
        "views": [{"path": "/a", "human": 2, "ai": 1, "total": 3}, {"path": "/b", "human": 0, "ai": 1, "total": 1}],
        "hasMore": False,
        "measured": {"human": "all", "ai": "all", "bot": "all"},
    }


def test_project_without_hits_has_an_empty_report(site: httpx.Client) -> None:
    assert get(site) == NOTHING
    assert get(site, "offset=10&dateFrom=2025-01-01") == NOTHING


def test_views_of_another_project_are_not_counted(service: Running, site: httpx.Client) -> None:
    with client_of(service, f"views-{secrets.token_hex(6)}") as other:
        post(other, ("/a", FIREFOX))
    post(site, ("/b", FIREFOX))
    assert paths(site) == "b"


def test_most_viewed_paths_are_first_and_ties_in_byte_order(site: httpx.Client) -> None:
    in_bytes = "/ /%C3%84 /%C3%A9 /%E2%82%AC /0 /A /Z /_ /a /a-b /a.b /a/b /aa /b /~".split()
    as_sent = ["/~", "/é", "/b", "/", "/a.b", "/Z", "/€", "/a/b", "/_", "/aa", "/0", "/Ä", "/a", "/A", "/a-b"]
    many = [("/z-three", FIREFOX), ("/z-three", GPTBOT), ("/z-three", GPTBOT), ("/y-two", GPTBOT), ("/y-two", FIREFOX)]
    post(site, *((path, FIREFOX) for path in as_sent), *many, *12 * [("/a", GOOGLEBOT)])
    views = get(site)["views"]
    assert [row["path"] for row in views] == ["/z-three", "/y-two", *in_bytes]
    assert [row["total"] for row in views] == [3, 2, *15 * [1]]


PATHS = 260
"""Hits of the project with several pages: /p000 to /p259, the first ten also with an AI view."""
RANKED = [{"path": f"/p{i:03}", "human": 1, "ai": int(i < 10), "total": 1 + int(i < 10)} for i in range(PATHS)]
TOTALS = {"human": PATHS, "ai": 10, "total": PATHS + 10}


@pytest.fixture(scope="module")
def large(service: Running) -> Iterator[httpx.Client]:
    """Return a client of the project with more paths than a page; tests only read it."""
    with client_of(service, "views-large") as client:
        post(client, *((f"/p{i:03}", FIREFOX) for i in range(PATHS)), *((f"/p{i:03}", GPTBOT) for i in range(10)))
        yield client


def test_page_has_its_rows_and_the_totals_of_all_paths(large: httpx.Client) -> None:
    for query, (first, rows, has_more) in {
        "": (0, 50, True),
        "limit=1": (0, 1, True),
        "limit=250": (0, 250, True),
        "limit=250&offset=10": (10, 250, False),
        "limit=250&offset=9": (9, 250, True),
        "offset=50": (50, 50, True),
        "offset=209": (209, 50, True),
        "offset=210": (210, 50, False),
        "offset=250": (250, 10, False),
        "offset=259&limit=1": (259, 1, False),
        "offset=260": (260, 0, False),
        "offset=261&limit=250": (261, 0, False),
        f"offset={2**31}": (0, 0, False),
        f"offset={2**63 - 1}&limit=250": (0, 0, False),
        f"offset={2**64}": (0, 0, False),
        "offset=" + 1000 * "9": (0, 0, False),
    }.items():
        report = get(large, query)
        assert (report["totals"], report["views"]) == (TOTALS, RANKED[first : first + rows]), query
        assert report["hasMore"] is has_more, query


EDGES = [
    ("/a", FIREFOX, "2025-02-28T23:59:59.999999Z"),
    ("/b", GPTBOT, "2025-03-01T00:00:00Z"),
    ("/c", FIREFOX, "2025-03-01T12:00:00.000001Z"),
    ("/d", FIREFOX, "2025-03-02T00:00:00Z"),
    ("/e", GPTBOT, "2025-04-30T23:59:59.999999Z"),
    ("/x", GOOGLEBOT, "2025-03-01T12:00:00Z"),
]
RANGES = {
    "": "abcde",
    "dateFrom=2025-03-01": "bcde",
    "dateTo=2025-03-01": "a",
    "dateFrom=2025-03-01&dateTo=2025-03-02": "bc",
    "dateFrom=2025-02-28&dateTo=2025-03-01": "a",
    "dateFrom=2025-02-01&dateTo=2025-05-01": "abcde",
    "dateFrom=2025-03-02&dateTo=2025-04-30": "d",
    "dateFrom=2025-03-01T12:00:00.000001Z": "cde",
    "dateFrom=2025-03-01T12:00:00.000002Z": "de",
    "dateTo=2025-03-01T12:00:00.000001Z": "ab",
    "dateTo=2025-03-01T12:00:00.000002Z": "abc",
    "dateFrom=2025-03-01T12:00:00.000001Z&dateTo=2025-03-01T12:00:00.000002Z": "c",
    "dateFrom=2025-02-28T23:59:59.999999Z&dateTo=2025-03-02T00:00:00.000001Z": "abcd",
    "dateFrom=2025-02-28T23:59:59.999999Z&dateTo=2025-03-01T00:00:00Z": "a",
    "dateFrom=2025-03-01&dateTo=2025-03-01T12:00:00.000001Z": "b",
    "dateFrom=2025-03-01T12:00:00&dateTo=2025-03-02": "c",
    "dateFrom=2025-03-01T00:00:00": "bcde",
    "dateFrom=2025-03-01T01:00:00%2B01:00&dateTo=2025-03-01T14:00:00.000002%2B02:00": "bc",
    "dateFrom=2025-02-28T23:00:00-01:00": "bcde",
    "dateTo=2025-02-28T16:00:00-08:00": "a",
    "dateFrom=2025-03-01&dateTo=2025-03-01": "",
    "dateFrom=2025-03-01T12:00:00.000001Z&dateTo=2025-03-01T12:00:00.000001Z": "",
    "dateFrom=2025-03-01T00:00:00Z&dateTo=2025-03-01": "",
    "dateFrom=2025-05-01&dateTo=2025-06-01": "",
    "dateFrom=0001-01-01&dateTo=2025-12-31": "abcde",
    "dateFrom=9999-12-31&dateTo=9999-12-31T23:59:59.999999Z": "",
    "dateFrom=9999-12-31": "",
    "dateTo=0001-01-01": "",
}


@pytest.fixture(scope="module")
def edges(service: Running) -> Iterator[httpx.Client]:
    """Return a client of the project with hits at the edges of days; tests only read it."""
    with client_of(service, "views-edges") as client:
        post(client, *EDGES)
        yield client


@pytest.mark.long
def test_range_includes_its_start_and_excludes_its_end(edges: httpx.Client) -> None:
    for query, expected in RANGES.items():
        assert paths(edges, query) == expected, query
        totals = get(edges, query)["totals"]
        assert (totals["ai"], totals["total"]) == (len(set(expected) & set("be")), len(expected)), query


@pytest.mark.long
def test_view_in_the_future_is_counted_from_its_time_on(site: httpx.Client) -> None:
    now = datetime.now(UTC)
    late, soon = now + timedelta(minutes=4), now + timedelta(seconds=2)
    post(site, ("/n", FIREFOX), ("/l", FIREFOX, late.isoformat()), ("/s", FIREFOX, soon.isoformat()))
    assert paths(site, "dateTo=9999-01-01") == "lns"

    def is_counted() -> bool:
        asked, counted, answered = datetime.now(UTC), paths(site), datetime.now(UTC)
        assert answered >= soon if counted == "ns" else (counted == "n" and asked < soon)
        return counted == "ns"

    until(is_counted)
    assert paths(site, f"dateFrom={now.date()}") == "ns"
    assert paths(site, "dateFrom=9000-01-01") == ""


def test_table_has_every_path_in_each_format(large: httpx.Client) -> None:
    for kind in (CSV, PARQUET, NDJSON):
        for query in ("", "limit=1&offset=255"):
            response = large.get(f"views?{query}", headers={"Accept": kind})
            named = response.headers["content-disposition"]
            assert re.search(r'filename="[a-z0-9-]+-views-until-20\d\d-\d\d-\d\d\.', named)
            assert table(response) == RANKED


def test_csv_and_parquet_are_limited_to_the_range(edges: httpx.Client) -> None:
    query = "views?dateFrom=2025-03-01&dateTo=2025-03-02"
    lines = edges.get(query, headers={"Accept": CSV}).text.splitlines()
    assert lines == ["path,human,ai,total", "/b,0,1,1", "/c,1,0,1"]
    table = pq.read_table(io.BytesIO(edges.get(query, headers={"Accept": PARQUET}).content))
    assert table["path"].to_pylist() == ["/b", "/c"]


@pytest.mark.long
def test_etag_changes_when_a_hit_arrives(site: httpx.Client) -> None:
    post(site, ("/a", FIREFOX))
    kinds = ("application/json", CSV, PARQUET, NDJSON)

    def export(kind: str, etag: str = "") -> httpx.Response:
        return site.get("views", headers={"Accept": kind, **({"If-None-Match": etag} if etag else {})})

    tags = {kind: export(kind).headers["etag"] for kind in kinds}
    for kind, tag in tags.items():
        assert export(kind).headers["etag"] == tag
        for etag in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
            response = export(kind, etag)
            assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", tag)
        assert export(kind, '"other"').status_code == 200
    post(site, ("/bot", GOOGLEBOT))
    assert [export(kind, tag).status_code for kind, tag in tags.items()] == [304] * 4
    post(site, ("/b", FIREFOX))
    for kind, tag in tags.items():
        changed = export(kind, tag)
        assert (changed.status_code, changed.headers["etag"] != tag, b"/b" in changed.content) == (200, True, True)


def test_etags_of_other_pages_and_media_types_differ(large: httpx.Client) -> None:
    tags = [large.get(f"views?limit={limit}").headers["etag"] for limit in (1, 2)]
    tags += [large.get("views", headers={"Accept": kind}).headers["etag"] for kind in (CSV, PARQUET, NDJSON)]
    assert len(set(tags)) == 5


def run(service: Running, command: str) -> None:
    assert CliRunner().invoke(main, ["--data", str(service.data), command]).exit_code == 0


@pytest.mark.long
def test_report_and_its_etag_survive_flush_compact_and_restart(start: Callable[..., Running]) -> None:
    service = start()
    ranges = dict([*RANGES.items()][::3])
    queries = [*ranges, "limit=2", "limit=2&offset=2", "offset=100"]
    ahead = datetime.now(UTC) + timedelta(minutes=4)

    def responses() -> list[tuple[str, bytes]]:
        with client_of(service, "site") as client:
            assert paths(client, "dateTo=9998-01-01") == "abcdez"
            exports = [client.get(f"views?{query}") for query in queries]
            for export, expected in zip(exports[: len(ranges)], ranges.values(), strict=True):
                assert sorted(row["path"] for row in export.json()["views"]) == [f"/{path}" for path in expected]
            exports += [client.get("views", headers={"Accept": kind}) for kind in (CSV, PARQUET, NDJSON)]
            assert {export.status_code for export in exports} == {200}
            return [(export.headers["etag"], export.content) for export in exports]

    with client_of(service, "site") as client:
        post(client, *EDGES[:3], ("/z", FIREFOX, ahead.isoformat()))
        run(service, "flush")
        post(client, *EDGES[3:])
    hot = responses()
    for command in ("flush", "compact"):
        run(service, command)
        assert responses() == hot
    assert service.stop() == 0
    service.start()
    assert responses() == hot
