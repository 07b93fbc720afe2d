"""The views report counts each view of a project once, in files and hot rows."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.warehouse.site import DAY, NOON, Site, rank, view
from warehouse.lake import delta_table
from warehouse.query.time_range import FIRST, LAST
from warehouse.report.reports import Reports

MIDNIGHT = NOON - timedelta(hours=12)
AI = {"traffic": "ai", "agent": "GPTBot"}


@pytest.fixture
def reports(site: Site) -> Iterable[Reports]:
    reports = site.reports()
    yield reports
    reports.close()


def paths(reports: Reports, start: datetime = FIRST, end: datetime | None = LAST) -> list[tuple[str, int, int, int]]:
    """Return the rows of the report of the project `site`."""
    rows = rank(reports, "site", start, end, NOON).paths.to_pylist()
    return [(row["path"], row["human"], row["ai"], row["total"]) for row in rows]


def remove_files(site: Site) -> None:
    for spec in delta_table.TABLES:
        for file in site.state(spec).files:
            Path(file.path).unlink()


def test_most_viewed_path_is_first_and_equal_totals_are_in_byte_order(site: Site, reports: Reports) -> None:
    site.post(view("/b"), view("/Z"), view("/%C3%A9"), view("/a"), view("/a"), view("/a", **AI))
    assert paths(reports) == [("/a", 2, 1, 3), ("/%C3%A9", 1, 0, 1), ("/Z", 1, 0, 1), ("/b", 1, 0, 1)]


def test_sums_are_those_of_all_paths(site: Site, reports: Reports) -> None:
    site.post(view("/a"), view("/b"), view("/b", **AI))
    site.load()
    site.post(view("/c", **AI))
    ranking = rank(reports, "site", FIRST, LAST, NOON)
    assert (ranking.human, ranking.ai) == (2, 2)


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_bots_and_other_projects_are_not_counted(site: Site, reports: Reports, is_loaded: bool) -> None:
    site.post(view("/a"), view("/a", traffic="bot", agent="Googlebot"), view("/b", project_id="site-2"))
    if is_loaded:
        site.load()
    assert paths(reports) == [("/a", 1, 0, 1)]
    assert paths(reports, NOON - timedelta(hours=1), NOON + timedelta(hours=1)) == [("/a", 1, 0, 1)]


def test_project_without_a_view_has_an_empty_ranking(site: Site, reports: Reports) -> None:
    site.post(view("/b", project_id="site-2"))
    ranking = rank(reports, "site", FIRST, LAST, NOON)
    assert (ranking.paths.num_rows, ranking.human, ranking.ai) == (0, 0, 0)


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_range_without_an_end_excludes_views_from_now_on(site: Site, reports: Reports, is_loaded: bool) -> None:
    site.post(view("/before", ts=NOON - timedelta(microseconds=1)), view("/now"), view("/after", ts=NOON + 40 * DAY))
    if is_loaded:
        site.load()
    assert paths(reports, FIRST, None) == [("/before", 1, 0, 1)]
    assert paths(reports, FIRST, LAST) == [("/after", 1, 0, 1), ("/before", 1, 0, 1), ("/now", 1, 0, 1)]


def test_ranking_asked_for_again_reads_no_file(site: Site, reports: Reports) -> None:
    site.post(view("/a"), view("/b", ts=NOON - DAY))
    site.load()
    start = NOON - DAY - timedelta(hours=1)  # a partial day, then a whole one
    first = paths(reports, start)
    remove_files(site)
    assert paths(reports, start) == first == [("/a", 1, 0, 1), ("/b", 1, 0, 1)]


def test_hit_that_arrives_is_added_to_cached_counts_of_the_files(site: Site, reports: Reports) -> None:
    site.post(view("/a"), view("/b", ts=NOON - DAY))
    site.load()
    assert paths(reports) == [("/a", 1, 0, 1), ("/b", 1, 0, 1)]
    remove_files(site)
    site.post(view("/b", **AI))
    assert paths(reports) == [("/b", 1, 1, 2), ("/a", 1, 0, 1)]


def test_lost_table_is_a_fault_and_a_whole_one_is_not(site: Site, reports: Reports) -> None:
    site.post(view("/a"))
    site.load()
    assert reports.fault() is None
    site.post(view("/a"))
    site.load()
    for commit in (site.root / "hits" / "_delta_log").glob("*.json"):
        commit.unlink()
    assert "hits" in str(reports.fault())
