"""Pages of paths are those of a plain sort, whichever files have a rollup, and however few ranks are read."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.report.lake import STATES, settle
from tests.warehouse.report.laws import model, reference
from tests.warehouse.report.laws.reference import LOADS, SCOPES, SEEN, LakeIn, SmallLake
from tests.warehouse.site import DAY, NOON, Row, Site, rank, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods, Policy
from warehouse.query.time_range import FIRST, LAST
from warehouse.report import pages
from warehouse.report.cells import Scope
from warehouse.report.reports import Reports
from warehouse.report.results import Counts, Listing, Query
from warehouse.tables import ASSET_LOADS_TABLE, HITS_TABLE, TABLES

AI = {"traffic": "ai", "agent": "GPTBot"}
LISTINGS = st.builds(
    Listing,
    st.sampled_from(["total", "total", "human", "ai", "bot", "path"]),
    st.sampled_from(["all", "ai_only", "people_only"]),
    st.booleans(),
)
NEW_PATHS = SEEN.flatmap(lambda row: st.builds(lambda path: {**row, "path": path}, st.sampled_from(["/new", "/0"])))


@pytest.mark.long
@settings(max_examples=rounds(36))
@given(
    rolled_up=st.lists(SEEN, max_size=25),
    later=st.lists(SEEN | NEW_PATHS, max_size=10),
    waiting=st.lists(SEEN | NEW_PATHS, max_size=5),
    loads=st.tuples(LOADS, LOADS),
    newer_rollups=st.booleans(),
    scopes=st.lists(st.tuples(SCOPES, LISTINGS), min_size=1, max_size=3),
    limit=st.integers(1, 4),
)
def test_pages_are_those_of_a_plain_sort(  # noqa: PLR0917  # what is drawn
    lake_in: LakeIn,
    rolled_up: list[Row],
    later: list[Row],
    waiting: list[Row],
    loads: tuple[list[Row], ...],
    newer_rollups: bool,
    scopes: list[tuple[Scope, Listing]],
    limit: int,
) -> None:
    """Check a ranking of all rollups, and one that lacks rollups that were written later."""
    with temporary.folder() as name:
        lake = lake_in(Path(name))
        lake.add(rolled_up, "first")
        lake.add_beside(ASSET_LOADS_TABLE, loads[0], "first")
        lake.write_rollups()
        lake.add(later, "later")
        lake.add_beside(ASSET_LOADS_TABLE, loads[1], "later")
        if newer_rollups:
            lake.write_rollups(with_ranking=False)
        lake.waiting = reference.hot(waiting)
        rows = model.with_evidence([*rolled_up, *later, *waiting], [*loads[0], *loads[1]])
        for scope, listing in scopes:
            check_pages(lake, rows, scope, listing, limit)


def check_pages(lake: SmallLake, rows: list[Row], scope: Scope, listing: Listing, limit: int) -> None:
    statements, snapshot = lake.use(), lake.snapshot
    expected = reference.listed(rows, scope, listing)
    totals = Counts(*reference.counts(rows, scope, lambda row: None).get(None, (0, 0, 0)))
    for offset in range(0, len(expected) + limit, limit):
        page = pages.page(statements, snapshot, scope, offset, limit, listing)
        assert [tuple(row.values()) for row in page.rows.to_pylist()] == expected[offset : offset + limit]
        assert (page.totals, page.has_more) == (totals, offset + limit < len(expected))
    all_totals, batches = pages.every(statements, snapshot, scope, 2, listing)
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == expected
    assert all_totals == totals
    some = pages.some(statements, snapshot, scope, ["/a", "/b", "/new"])
    counted = reference.counts(rows, scope, lambda row: row["path"])
    assert {path: each for path, each in some.items() if each != Counts()} == {
        path: Counts(*counted[path]) for path in ("/a", "/b", "/new") if path in counted
    }


def paths(reports: Reports, start: datetime = FIRST, end: datetime | None = LAST) -> list[tuple[str, int, int, int]]:
    """Return the rows of the report of the project `site`."""
    rows = rank(reports, "site", start, end, NOON).paths.to_pylist()
    return [(row["path"], row["human"], row["ai"], row["total"]) for row in rows]


def remove_files(site: Site) -> None:
    for spec in TABLES:
        for file in site.state(spec).files:
            Path(file.path).unlink()


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_range_without_an_end_excludes_views_from_now_on(site: Site, reports: Reports, is_loaded: bool) -> None:
    site.post(view("/before", ts=NOON - timedelta(microseconds=1)), view("/now"), view("/after", ts=NOON + 40 * DAY))
    if is_loaded:
        site.load()
    assert paths(reports, FIRST, None) == [("/before", 1, 0, 1)]
    assert paths(reports, FIRST, LAST) == [("/after", 1, 0, 1), ("/before", 1, 0, 1), ("/now", 1, 0, 1)]


def test_page_asked_for_again_reads_no_file(site: Site, reports: Reports) -> None:
    site.post(view("/a"), view("/b", ts=NOON - DAY))
    site.load()
    query = Query("site", NOON - DAY / 2, NOON + DAY, Filters(), NOON)
    first = reports.views(reports.take(), query, 0, 9)
    remove_files(site)
    assert reports.views(reports.take(), query, 0, 9) == first
    assert first.rows["path"].to_pylist() == ["/a"]


@pytest.fixture
def page_of(site: Site) -> Callable[..., dict[str, tuple[int, int]]]:
    """Return a function that returns people and AI by path on a day in a rollup, whose hits cannot be read."""
    agent = {**AI, "operator": "OpenAI", "purpose": "training"}
    site.post(view("/page", source="beacon"), view("/page"), view("/log"))
    site.post(view("/doc", format="md", source="beacon"), view("/doc", format="md", source="server"))
    site.post(view("/ai", **agent, source="beacon"), view("/ai", **agent, verification="verified"))
    settle(site, "rollups")
    midnight, policies = NOON - timedelta(hours=12), dict[str, Periods]()

    def page(policy: Policy, **filters: str) -> dict[str, tuple[int, int]]:
        policies["site"] = (Period(midnight.date(), policy),)
        with_reports = site.reports(policies.__getitem__)
        snapshot, query = with_reports.take(), Query("site", midnight, midnight + DAY, Filters(**filters), NOON)
        listed = with_reports.views(snapshot, query, 0, 9).rows.to_pylist()
        by_path = with_reports.breakdown(snapshot, query, "path", 0, 9).rows["value"].to_pylist()
        with_reports.close()
        assert by_path == [row["path"] for row in listed]
        return {row["path"]: (row["human"], row["ai"]) for row in listed}

    for file in site.state(HITS_TABLE).files:
        file_path = Path(file.path)
        file_path.write_bytes(bytes(file_path.stat().st_size))
    return page


@pytest.mark.long
def test_pages_of_a_policy_and_of_an_agent_read_no_hits_on_whole_days(
    page_of: Callable[..., dict[str, tuple[int, int]]],
) -> None:
    assert page_of("all") == {"/page": (2, 0), "/log": (1, 0), "/doc": (2, 0), "/ai": (0, 2)}
    assert page_of("beacon_only") == {"/page": (1, 0), "/doc": (1, 0), "/ai": (0, 1)}
    assert page_of("log_only") == {"/page": (1, 0), "/log": (1, 0), "/doc": (1, 0), "/ai": (0, 1)}
    assert page_of("beacon_people_log_machines") == {"/page": (1, 0), "/doc": (1, 0), "/ai": (0, 1)}
    assert page_of("beacon_people_log_machines", source="server") == {"/doc": (1, 0)}
    assert page_of("beacon_people_log_machines", traffic="ai") == {"/ai": (0, 1)}
    assert page_of("all", verification="verified") == page_of("log_only", operator="OpenAI") == {"/ai": (0, 1)}
    assert page_of("beacon_only", verification="verified") == page_of("all", purpose="search") == {}
    assert page_of("beacon_only", verification="not_checked") == {"/ai": (0, 1)}
    assert page_of("all", path="*o*") == {"/log": (1, 0), "/doc": (2, 0)}


@STATES
def test_counts_of_some_paths_are_those_of_their_pages(site: Site, reports: Reports, state: str) -> None:
    site.post(view("/a"), view("/a", **AI), view("/b", traffic="bot"), view("/c", NOON - DAY), view("/é"))
    settle(site, state)
    site.post(view("/a"), view("/hot", **AI))
    query = Query("site", NOON, NOON + DAY, Filters(), NOON)
    counts = reports.views_of(reports.take(), query, ["/a", "/b", "/c", "/hot", "/nothing"])
    expected = {"/a": Counts(2, 1, 0), "/b": Counts(0, 0, 1), "/hot": Counts(0, 1, 0)}
    assert {path: each for path, each in counts.items() if each != Counts()} == expected
    assert reports.views_of(reports.take(), replace(query, filters=Filters(path="/b*")), ["/a", "/b"]).keys() <= {"/b"}
