"""Reports of a data folder: pages and complete tables agree, with rollups and without, loaded or not."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from tests.warehouse.rollups import writing
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.errors import TooManyBuckets
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.cells import Scope
from warehouse.report.reports import BATCH_ROWS, Reports
from warehouse.report.results import Audience, Counts, Order, Query
from warehouse.report.scope import last_days
from warehouse.rollups import catalog, ranked
from warehouse.tables import HITS_TABLE

CACHE_BYTES = 10_000_000
AI, BOT = {"traffic": "ai", "agent": "GPTBot"}, {"traffic": "bot", "agent": "Googlebot"}
EVERYTHING = Query("site", FIRST, LAST, Filters(), NOON)
UNTIL_NOW = replace(EVERYTHING, end=None)
MIDNIGHT = NOON - timedelta(hours=12)


@pytest.fixture
def reports(site: Site) -> Iterable[Reports]:
    reader = SnapshotReader(site.hot_log, site.root, NOON.timestamp)
    reports = Reports(reader, site.root, site.spill, CACHE_BYTES)
    yield reports
    reports.close()


def write_rollup(site: Site) -> None:
    files = [file for file in site.state(HITS_TABLE).files if file.partition.startswith("2026-09")]
    writing.write_rollup(site.root, site.database, "2026-09", files)
    ranked.write(site.root, site.database, catalog.choose(site.root, files).parts, (2, 4))


def values(reports: Reports, snapshot: Snapshot, query: Query, by: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in reports.breakdown(snapshot, query, by, 0, 100).rows.to_pylist()]


def test_complete_breakdown_has_batches_of_limited_size(site: Site, reports: Reports) -> None:
    site.post(*(view(referrer_host=f"host-{number}") for number in range(BATCH_ROWS + 1)))
    _, batches = reports.all_breakdown(reports.take(), EVERYTHING, "referrerHost")
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, 1]


def test_breakdown_by_path_has_the_paths_of_bots(site: Site, reports: Reports) -> None:
    site.post(view("/a"), view("/bots", **BOT))
    assert values(reports, reports.take(), EVERYTHING, "path") == [("/a", 1, 0, 0, 1), ("/bots", 0, 0, 1, 0)]


LISTED = [  # path, human, ai and bot
    ("/both", 2, 1, 0),
    ("/ai", 0, 3, 1),
    ("/people", 1, 0, 2),
    ("/bot", 0, 0, 4),
    ("/ai-too", 0, 2, 0),
    ("/people-too", 4, 0, 0),
]


ORDERS: list[tuple[Order, Audience, list[str]]] = [
    ("total", "all", ["/people-too", "/ai", "/both", "/ai-too", "/people"]),
    ("human", "all", ["/people-too", "/both", "/people", "/ai", "/ai-too"]),
    ("ai", "all", ["/ai", "/ai-too", "/both", "/people", "/people-too"]),
    ("bot", "all", ["/people", "/ai", "/ai-too", "/both", "/people-too"]),
    ("path", "all", ["/ai", "/ai-too", "/both", "/people", "/people-too"]),
    ("total", "ai_only", ["/ai", "/ai-too"]),
    ("path", "people_only", ["/people", "/people-too"]),
    ("human", "people_only", ["/people-too", "/people"]),
]


@pytest.mark.long
@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_paths_are_listed_by_order_and_audience(site: Site, reports: Reports, is_loaded: bool) -> None:
    for path, *numbers in LISTED:
        for traffic, views in zip(("human", "ai", "bot"), numbers, strict=True):
            site.post(*(view(path, NOON - DAY, traffic=traffic, agent="A") for _ in range(views)))
    if is_loaded:
        site.load()
        write_rollup(site)
    snapshot = reports.take()
    for agent, (order, audience, paths) in product([None, "A"], ORDERS):  # the ranking of paths has no agents
        query = replace(EVERYTHING, filters=Filters(agent=agent))
        pages = [reports.views(snapshot, query, offset, 2, order, audience) for offset in (0, 2, 4)]
        assert [path for page in pages for path in page.rows["path"].to_pylist()] == paths, (order, audience)
        totals, batches = reports.all_views(snapshot, query, order, audience)
        assert [path for batch in batches for path in batch["path"].to_pylist()] == paths, (order, audience)
        assert {page.totals for page in pages} == {totals} == {Counts(7, 6, 7)}


@pytest.mark.long
def test_path_leaves_the_listing_of_ai_only_with_its_first_view_by_people(site: Site, reports: Reports) -> None:
    site.post(*(view(f"/{name}", NOON - DAY, **AI) for name in "abcd"))
    site.load()
    write_rollup(site)
    site.post(view("/a"), view("/b"), view("/e", **AI))
    query = replace(EVERYTHING, end=LAST)
    page = reports.views(reports.take(), query, 0, 2, "path", "ai_only")
    assert (page.rows["path"].to_pylist(), page.has_more) == (["/c", "/d"], True)
    page = reports.views(reports.take(), query, 2, 2, "path", "ai_only")
    assert (page.rows["path"].to_pylist(), page.has_more) == (["/e"], False)


def series(reports: Reports, start: datetime, end: datetime | None) -> list[tuple[str, int]]:
    """Return the start and total of each bucket of a series by days."""
    _, rows = reports.series(reports.take(), replace(EVERYTHING, start=start, end=end), "day", ZoneInfo("UTC"))
    return list(zip(rows["start"].to_pylist(), rows["total"].to_pylist(), strict=True))


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_series_without_limits_is_from_the_first_hit_of_the_project_to_now(
    site: Site, reports: Reports, is_loaded: bool
) -> None:
    site.post(view(ts=NOON - 2 * DAY), view(ts=NOON - DAY), view(ts=NOON - 9 * DAY, project_id="another"))
    if is_loaded:
        site.load()
    assert series(reports, FIRST, None) == [("2026-09-13", 1), ("2026-09-14", 1), ("2026-09-15", 0)]
    assert series(reports, NOON - 4 * DAY, NOON - 2 * DAY) == [("2026-09-11", 0), ("2026-09-12", 0), ("2026-09-13", 0)]
    assert series(reports, NOON + DAY, None) == []
    with pytest.raises(TooManyBuckets):
        series(reports, NOON - 10_001 * DAY, NOON)


def test_series_of_a_project_without_a_hit_begins_at_the_start_of_the_range(reports: Reports) -> None:
    assert series(reports, FIRST, None) == []
    assert series(reports, NOON, NOON + timedelta(hours=1)) == [("2026-09-15", 0)]


def test_hit_of_the_future_ends_a_series_without_an_end_at_now(site: Site, reports: Reports) -> None:
    site.post(view(ts=NOON - DAY), view(ts=NOON), view(ts=NOON + DAY))
    totals, rows = reports.series(reports.take(), UNTIL_NOW, "day", ZoneInfo("UTC"))
    assert rows["start"].to_pylist() == ["2026-09-14", "2026-09-15"]
    assert (rows["total"].to_pylist(), totals) == ([1, 0], Counts(1, 0, 0))


def test_lost_table_is_a_fault_and_a_whole_one_is_not(site: Site, reports: Reports) -> None:
    site.post(view())
    site.load()
    assert reports.fault() is None
    site.post(view())
    site.load()
    for commit in (site.root / "hits" / "_delta_log").glob("*.json"):
        commit.unlink()
    assert "hits" in str(reports.fault())


@pytest.mark.parametrize(
    ("start", "end", "first"),
    [
        (FIRST, NOON, MIDNIGHT - 6 * DAY),
        (FIRST, MIDNIGHT, MIDNIGHT - 7 * DAY),  # the last instant is on the day before
        (NOON - DAY, NOON, NOON - DAY),
        (FIRST, LAST, MIDNIGHT - 6 * DAY),  # the days of `now`
        (FIRST, FIRST, FIRST),
        (FIRST, FIRST + 2 * DAY, FIRST),
    ],
)
def test_last_days_end_with_the_range_or_now(start: datetime, end: datetime, first: datetime) -> None:
    scope = Scope("site", TimeRange(start, end), Filters())
    assert last_days(scope, NOON, 7).time_range == TimeRange(first, end)
