"""Breakdowns: the values of each dimension with their views, in order, and page by page."""

import httpx
import pytest

from tests.api.reports.client import CSV, NDJSON, PARQUET, table

Rows = list[tuple[str | None, int, int, int]]
"""A value with its views by people, AI agents and other bots."""
BREAKDOWNS: dict[str, Rows] = {
    "agent": [(None, 3, 0, 0), ("GPTBot", 0, 2, 0), ("Claude-User", 0, 1, 0), ("Googlebot", 0, 0, 1)],
    "operator": [(None, 3, 0, 1), ("OpenAI", 0, 2, 0), ("Anthropic", 0, 1, 0)],
    "purpose": [(None, 3, 0, 1), ("training", 0, 2, 0), ("assistant", 0, 1, 0)],
    "verification": [("not_checked", 0, 3, 1), (None, 3, 0, 0)],
    "referrerHost": [(None, 2, 3, 1), ("news.example.com", 1, 0, 0)],
    "utmSource": [(None, 2, 3, 1), ("=1+1", 1, 0, 0)],
    "utmMedium": [(None, 2, 3, 1), ("email", 1, 0, 0)],
    "utmCampaign": [(None, 2, 3, 1), ("spring", 1, 0, 0)],
    "utmTerm": [(None, 2, 3, 1), ("a", 1, 0, 0)],
    "utmContent": [(None, 3, 3, 1)],
    "click": [(None, 2, 3, 1), ("gclid", 1, 0, 0)],
    "channel": [(None, 0, 3, 1), ("Direct", 1, 0, 0), ("Paid", 1, 0, 0), ("Referral", 1, 0, 0)],
    "country": [(None, 3, 3, 1)],
    "format": [(None, 3, 2, 1), ("markdown", 0, 1, 0)],
    "status": [(None, 3, 0, 1), ("200", 0, 2, 0), ("304", 0, 1, 0)],
    "source": [("server", 3, 3, 1)],
    "path": [("/docs/a", 2, 0, 0), ("/docs/b", 0, 2, 0), ("/about", 1, 0, 1), ("/about/us", 0, 1, 0)],
}


def rows(listed: Rows, name: str = "value") -> list[dict[str, object]]:
    names = (name, "human", "ai", "bot", "total")
    return [dict(zip(names, (*row, row[1] + row[2]), strict=True)) for row in listed]


@pytest.mark.parametrize("by", BREAKDOWNS)
def test_values_are_sorted_by_total_and_unknown_ones_come_after_their_equals(hits: httpx.Client, by: str) -> None:
    assert hits.get(f"breakdown?by={by}").json() == {
        "totals": {"human": 3, "ai": 3, "bot": 1, "total": 6},
        "rows": rows(BREAKDOWNS[by]),
        "hasMore": False,
        "measured": {"human": "part", "ai": "part", "bot": "part"},
    }
    for kind in (CSV, PARQUET, NDJSON) if by != "utmSource" else ():  # =1+1 gets an apostrophe in CSV
        response = hits.get(f"breakdown?by={by}&limit=1&offset=9", headers={"Accept": kind})
        assert table(response) == rows(BREAKDOWNS[by], "value" if kind == NDJSON else by), "every value"
        assert f"-{by}-until-" in response.headers["content-disposition"]


def test_rows_add_up_to_the_totals(hits: httpx.Client) -> None:
    for by in ("browser", "os", "device", "rule"):
        report = hits.get(f"breakdown?by={by}").json()
        for name, views in {"human": 3, "ai": 3, "bot": 1, "total": 6}.items():
            assert report["totals"][name] == sum(row[name] for row in report["rows"]) == views


def test_filters_of_any_dimensions_and_range_combine(hits: httpx.Client) -> None:
    expected: dict[str, Rows] = {
        "by=agent&traffic=ai": [("GPTBot", 0, 2, 0), ("Claude-User", 0, 1, 0)],
        "by=agent&path=/docs/*": [(None, 2, 0, 0), ("Claude-User", 0, 1, 0), ("GPTBot", 0, 1, 0)],
        "by=path&agent=GPTBot": [("/about/us", 0, 1, 0), ("/docs/b", 0, 1, 0)],
        "by=path&traffic=bot": [("/about", 0, 0, 1)],
        "by=status&operator=OpenAI&dateTo=2025-04-01": [("200", 0, 1, 0)],
        "by=agent&dateFrom=2025-03-30T00:30:00Z&dateTo=2025-03-30T12:00:00Z": [("GPTBot", 0, 1, 0)],
        "by=path&path=*docs*": [("/docs/a", 2, 0, 0), ("/docs/b", 0, 2, 0)],
        "by=path&path=*/us*": [("/about/us", 0, 1, 0)],
        "by=path&referrerHost=news.example.com": [("/docs/a", 1, 0, 0)],
        "by=path&utmSource=%3D1%2B1&browser=Firefox": [("/about", 1, 0, 0)],
        "by=path&status=200": [("/about/us", 0, 1, 0), ("/docs/b", 0, 1, 0)],
        "by=path&status=200&format=markdown&agent=GPTBot": [("/docs/b", 0, 1, 0)],
        "by=path&rule=ai:GPTBot&path=*docs*": [("/docs/b", 0, 1, 0)],
        "by=path&os=Linux&device=desktop&dateFrom=2025-04-01": [("/about", 1, 0, 0)],
    }
    for query, listed in expected.items():
        report = hits.get(f"breakdown?{query}").json()
        assert report["rows"] == rows(listed), query
        assert report["totals"]["bot"] == sum(row[3] for row in listed), query


def test_source_without_hits_has_no_count(hits: httpx.Client) -> None:
    report = hits.get("breakdown?by=agent&source=log").json()
    assert report["totals"] == dict.fromkeys(("human", "ai", "bot", "total"))
    assert report["measured"] == {"human": "none", "ai": "none", "bot": "none"}


def test_readers_whom_no_source_saw_have_no_count(beacon: httpx.Client) -> None:
    report = beacon.get("breakdown?by=path").json()
    row = {"value": "/a", "human": 1, "ai": None, "bot": None, "total": 1}
    assert (report["rows"], report["measured"]) == ([row], {"human": "all", "ai": "none", "bot": "none"})
    assert report["totals"] == {"human": 1, "ai": None, "bot": None, "total": 1}
    for kind in (CSV, PARQUET, NDJSON):
        (line,) = table(beacon.get("breakdown?by=path", headers={"Accept": kind}))
        assert list(line.values()) == list(row.values())
    only_ai = beacon.get("breakdown?by=path&traffic=ai").json()
    assert only_ai["totals"] == {"human": 0, "ai": None, "bot": 0, "total": None}
    assert beacon.get("breakdown?by=path&traffic=human").json()["totals"] == {"human": 1, "ai": 0, "bot": 0, "total": 1}


def test_status_of_beacons_is_unknown_and_readers_that_filters_leave_out_are_0(beacon: httpx.Client) -> None:
    assert beacon.get("breakdown?by=path&status=200").json()["totals"] == dict.fromkeys(
        ("human", "ai", "bot", "total"), None
    )
    of_browser = beacon.get("breakdown?by=path&browser=Chrome").json()
    assert of_browser["totals"] == {"human": 0, "ai": 0, "bot": 0, "total": 0}
