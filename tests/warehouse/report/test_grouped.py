"""Breakdowns, series and coverage count files and hot rows of a snapshot once, and read files once."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from warehouse.report.by_path.from_hits import FromHits
from warehouse.report.grouped import GroupedReports
from warehouse.report.path_reports import PathReports

from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.errors import TooManyBuckets
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.query.hits_snapshot import HitsReader, HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.cells import Scope
from warehouse.report.results import Query
from warehouse.rollups import coverage, writer
from warehouse.rollups.coverage import Coverage

UTC_ZONE = ZoneInfo("UTC")
AI = {"traffic": "ai", "agent": "GPTBot"}


@pytest.fixture
def reader(site: Site) -> Iterable[HitsReader]:
    reader = HitsReader(site.hot_log, site.root, (NOON + 30 * DAY).timestamp)
    yield reader
    reader.close()


@pytest.fixture
def reports(site: Site) -> Iterator[GroupedReports]:
    cached = ResultCache(10_000_000)

    def covered(snapshot: HitsSnapshot) -> Coverage:
        return coverage.choose(site.root, snapshot.files)

    with closing(FromHits(site.spill, cached)) as from_hits:
        by_path = PathReports(site.database, cached, covered)
        yield GroupedReports(site.database, cached, covered, by_path, from_hits)


def scope(filters: Filters | None = None) -> Scope:
    return Scope("site", TimeRange(), filters or Filters())


def series(
    reports: GroupedReports, reader: HitsReader, start: datetime, end: datetime | None, now: datetime = NOON
) -> list[tuple[str, int]]:
    """Return the start and total of each bucket of a series by days."""
    query = Query("site", start, end, Filters(), now)
    rows = reports.series(
        reader.take(), query, Scope("site", TimeRange(start, end or LAST), Filters()), "day", UTC_ZONE
    )
    return list(zip(rows["start"].to_pylist(), rows["total"].to_pylist(), strict=True))


def remove_files(site: Site) -> None:
    for file in site.state(HITS_TABLE).files:
        Path(file.path).unlink()


def test_breakdown_counts_loaded_and_hot_rows_and_reads_files_once(
    site: Site, reader: HitsReader, reports: GroupedReports
) -> None:
    site.post(view(), view(**AI))
    site.load()
    site.post(view(**AI))
    expected = [("GPTBot", 0, 2, 0, 2), (None, 1, 0, 0, 1)]
    rows = reports.breakdown(reader.take(), scope(), "agent").to_pylist()
    assert [tuple(row.values()) for row in rows] == expected
    remove_files(site)
    site.post(view(**AI))
    rows = reports.breakdown(reader.take(), scope(), "agent").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("GPTBot", 0, 3, 0, 3), (None, 1, 0, 0, 1)]


def test_breakdown_has_the_columns_of_the_api(reader: HitsReader, reports: GroupedReports) -> None:
    assert reports.breakdown(reader.take(), scope(), "agent").column_names == ["value", "human", "ai", "bot", "total"]


def test_breakdown_with_a_filter_counts_only_what_matches(
    site: Site, reader: HitsReader, reports: GroupedReports
) -> None:
    site.post(view("/a", browser="Firefox"), view("/b"), view("/a/b", browser="Firefox"))
    rows = reports.breakdown(reader.take(), scope(Filters(path="/a*")), "browser").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("Firefox", 2, 0, 0, 2)]


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_series_without_limits_is_from_the_first_hit_of_the_project_to_now(
    site: Site, reader: HitsReader, reports: GroupedReports, is_loaded: bool
) -> None:
    site.post(view(ts=NOON - 2 * DAY), view(ts=NOON - DAY), view(ts=NOON - 9 * DAY, project_id="another"))
    if is_loaded:
        site.load()
    assert series(reports, reader, FIRST, None) == [("2026-09-13", 1), ("2026-09-14", 1), ("2026-09-15", 0)]


def test_series_has_rows_for_a_range_before_the_first_hit(
    site: Site, reader: HitsReader, reports: GroupedReports
) -> None:
    site.post(view())
    assert series(reports, reader, NOON - DAY, NOON + DAY) == [("2026-09-14", 0), ("2026-09-15", 1), ("2026-09-16", 0)]


def test_series_of_a_project_without_a_hit_begins_at_the_start_of_the_range(
    reader: HitsReader, reports: GroupedReports
) -> None:
    assert series(reports, reader, FIRST, None) == []
    assert series(reports, reader, NOON, NOON + timedelta(hours=1)) == [("2026-09-15", 0)]


def test_series_that_begins_after_now_is_empty(site: Site, reader: HitsReader, reports: GroupedReports) -> None:
    site.post(view())
    assert series(reports, reader, NOON + DAY, None) == []


@pytest.mark.parametrize(
    ("filters", "totals"),
    [
        (Filters(path="/a"), [2, 1]),
        (Filters(path="/a*"), [3, 1]),
        (Filters(path="/a*", traffic="ai"), [1, 1]),
        (Filters(path="/a*", agent="GPTBot"), [1, 1]),
        (Filters(path="/a", agent="ClaudeBot"), [0, 0]),
        (Filters(path="/a", source="beacon"), [0, 0]),
    ],
)
def test_series_of_paths_by_day_reads_no_hits_on_whole_days(
    site: Site, reader: HitsReader, reports: GroupedReports, filters: Filters, totals: list[int]
) -> None:
    site.post(view("/a"), view("/a", **AI), view("/a/b"), view("/b"), view("/a", NOON + DAY, **AI))
    site.load()
    files = site.state(HITS_TABLE).files
    writer.write(site.root, site.database, f"{NOON:%Y-%m}", files)
    snapshot, midnight = reader.take(), NOON - timedelta(hours=12)
    remove_files(site)
    chosen = Scope("site", TimeRange(midnight, midnight + 2 * DAY), filters)
    query = Query("site", chosen.time_range.start, chosen.time_range.end, filters, NOON)
    assert reports.series(snapshot, query, chosen, "day", UTC_ZONE)["total"].to_pylist() == totals


@pytest.mark.parametrize("interval", ["day", "week", "month"])
def test_series_by_purpose_are_those_with_a_filter_by_the_purpose(
    site: Site, reader: HitsReader, reports: GroupedReports, interval: str
) -> None:
    purposes = ("training", "search", None)
    site.post(*(view(ts=NOON - number * 7 * DAY / 2, **AI, purpose=purposes[number % 3]) for number in range(12)))
    site.load()
    site.post(view(ts=NOON, **AI, purpose="search"), view(ts=NOON))
    query = Query("site", NOON - 30 * DAY, NOON + DAY, Filters(), NOON)
    time_range = TimeRange(query.start, NOON + DAY)
    by_purpose = reports.series_by_purpose(reader.take(), query, Scope("site", time_range, Filters()), interval)
    assert by_purpose.keys() == {"training", "search"}
    for purpose, rows in by_purpose.items():
        filtered = Scope("site", time_range, Filters(purpose=purpose))
        assert rows.equals(reports.series(reader.take(), query, filtered, interval, UTC_ZONE))
        assert sum(rows["ai"].to_pylist()) == {"training": 3, "search": 4}[purpose]


def test_series_with_too_many_buckets_is_refused(reader: HitsReader, reports: GroupedReports) -> None:
    with pytest.raises(TooManyBuckets):
        series(reports, reader, NOON - 10_001 * DAY, NOON)


def test_coverage_is_that_of_loaded_and_hot_rows_at_the_moment_of_the_snapshot(
    site: Site, reader: HitsReader, reports: GroupedReports
) -> None:
    site.post(view(ts=NOON - 2 * DAY), view(ts=NOON + 30 * DAY, source="beacon"))
    site.load()
    site.post(view(ts=NOON))
    result = reports.source_coverage(reader.take(), "site")
    assert [(each.source, each.first_hit, each.last_hit) for each in result.sources] == [
        ("beacon", NOON + 30 * DAY, NOON + 30 * DAY),
        ("log", NOON - 2 * DAY, NOON),
    ]
    assert result.warnings == ("log has had no hit for 30 days, since 2026-09-15",)
