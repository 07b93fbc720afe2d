"""Reports of many projects and of one with many paths stay right, and in the memory of their cache, while it evicts."""

from collections.abc import Iterator
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.lake import delta_table
from warehouse.query import result_cache
from warehouse.query.snapshot import SnapshotReader
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Counts, Query
from warehouse.rollups import catalog, ranked
from warehouse.tables import HITS_TABLE

PROJECTS, DAYS, LARGE_PATHS = 200, 12, 20_000
"""Numbers of small projects, whose results do not fit into the cache, of days, and of paths of the large project."""
LARGE = "large"
NOW = NOON + DAYS * DAY
CACHE_BYTES = 1024 * 1024
"""Size of the smallest cache that the setting READERSHIP_CACHE_MIB allows."""
UTC = ZoneInfo("UTC")
ALL = 10**9


def rows_of_small_projects() -> list[dict[str, object]]:
    """Return hits of each small project: project n has 1 human hit on day d of each path /0 to /(n + d) % 4."""
    return [
        view(f"/{path}", NOON + day * DAY, project_id=f"p{number}")
        for number in range(PROJECTS)
        for day in range(DAYS)
        for path in range((number + day) % 4 + 1)
    ]


def rows_of_large_project() -> list[dict[str, object]]:
    """Return hits of the large project: an AI hit of each path, and a human hit of every tenth path."""
    ai = [view(f"/{n}", NOON + n % DAYS * DAY, project_id=LARGE, traffic="ai") for n in range(LARGE_PATHS)]
    return ai + [view(f"/{n}", NOON + n % DAYS * DAY, project_id=LARGE) for n in range(0, LARGE_PATHS, 10)]


def views_of_small_project(number: int) -> list[tuple[str, int]]:
    """Return the paths of a small project and their human views: path p is viewed on each day with p <= (n + d) % 4."""
    views = [(f"/{path}", sum((number + day) % 4 >= path for day in range(DAYS))) for path in range(4)]
    return sorted(views, key=lambda view: (-view[1], view[0]))


@pytest.fixture(scope="module", params=["uncovered", "rollups"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a lake with two files for each day, with or without rollups, and hot rows of each project."""
    site = Site(tmp_path_factory.mktemp("memory") / "data")
    for rows in (rows_of_small_projects(), rows_of_large_project()):
        site.stage(rows)
    site.load()
    if request.param == "rollups":
        files = delta_table.list_files(site.table(HITS_TABLE), HITS_TABLE)
        write_rollup(site.root, site.database, f"{NOON:%Y-%m}", files)
        ranked.write(site.root, site.database, catalog.choose(site.root, files).parts)
    yield site
    site.close()


@pytest.fixture
def reports(site: Site) -> Iterator[Reports]:
    reports = Reports(SnapshotReader(site.hot_log, site.root), site.root, site.spill, CACHE_BYTES)
    yield reports
    reports.close()


def assert_within_limit(reports: Reports) -> None:
    """Check that the results in the cache are not larger than its limit, even if they grew after they were added."""
    results = reports._cached._results
    assert results.currsize <= CACHE_BYTES
    assert sum(result_cache._size_bytes(result) for result in results.values()) <= CACHE_BYTES


def query(project: str, **bounds: object) -> Query:
    return Query(project, **{"start": FIRST, "end": None, "filters": Filters(), "now": NOW, **bounds})


@pytest.mark.night
def test_reports_of_many_projects_stay_right_while_the_cache_evicts(site: Site, reports: Reports) -> None:
    for number in [*range(PROJECTS), *range(0, PROJECTS, 50)]:
        snapshot = reports.take()
        asked = query(f"p{number}")
        views = views_of_small_project(number)
        page = reports.views(snapshot, asked, 0, 250)
        assert [(row["path"], row["human"]) for row in page.rows.to_pylist()] == views
        human = sum(count for _, count in views)
        assert page.totals == Counts(human=human)
        if number % 10 == 0:
            totals, series = reports.series(snapshot, asked, "day", UTC)
            assert totals == Counts(human=human)
            assert series["human"].to_pylist() == [*((number + day) % 4 + 1 for day in range(DAYS)), 0]
            assert reports.breakdown(snapshot, asked, "source", 0, 9).rows["human"].to_pylist() == [human]
        assert_within_limit(reports)
    assert len(reports._cached._results) < 2 * PROJECTS, "nothing was evicted"


@pytest.mark.night
def test_reports_of_many_paths_stay_right_while_the_cache_evicts(site: Site, reports: Reports) -> None:
    expected = sorted(((f"/{n}", 1 + (n % 10 == 0)) for n in range(LARGE_PATHS)), key=lambda view: (-view[1], view[0]))
    for offset in range(0, LARGE_PATHS, 1_999):
        snapshot = reports.take()
        page = reports.views(snapshot, query(LARGE), offset, 250)
        shown = [(row["path"], row["total"]) for row in page.rows.to_pylist()]
        assert shown == expected[offset : offset + 250]
        assert page.totals == Counts(human=LARGE_PATHS // 10, ai=LARGE_PATHS)
        day = NOON + offset % DAYS * DAY
        of_day = reports.views(snapshot, query(LARGE, start=day, end=day + timedelta(microseconds=1)), 0, 1)
        assert of_day.totals.ai == len(range(offset % DAYS, LARGE_PATHS, DAYS))
        assert_within_limit(reports)
    _totals, batches = reports.all_views(reports.take(), query(LARGE))
    assert [row["path"] for batch in batches for row in batch.to_pylist()] == [path for path, _ in expected]


@pytest.mark.night
@pytest.mark.parametrize("cache_bytes", [0, 12_000, 20_000, 40_000])
def test_files_that_are_evicted_while_others_are_counted_are_not_missed(site: Site, cache_bytes: int) -> None:
    reports = Reports(SnapshotReader(site.hot_log, site.root), site.root, site.spill, cache_bytes)
    midnight = NOON - timedelta(hours=12)
    for days in (2, DAYS, 3, DAYS):
        page = reports.views(reports.take(), query("p0", start=midnight, end=midnight + days * DAY), 0, 1)
        assert page.totals == Counts(human=sum(day % 4 + 1 for day in range(days)))
    reports.close()
