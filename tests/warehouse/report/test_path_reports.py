"""Views by path from blocks are those of a plain count, whichever files have a rollup."""

from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.blocks import hits_files
from warehouse.blocks.paths import PathIds
from warehouse.report.path_reports import PathReports

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.blocks import rollup_files
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import ROWS, SCOPES
from tests.warehouse.site import DAY, NOON, Row, Site, view
from warehouse.columns.filters import Filters
from warehouse.columns.sources import SOURCES, TRAFFIC
from warehouse.control.policy import Period, Periods, Policy
from warehouse.lake import delta_table
from warehouse.lake.delta_table import File
from warehouse.query.hits_snapshot import HOT_COLUMNS, HitsSnapshot
from warehouse.query.moment import Moment
from warehouse.query.result_cache import ResultCache
from warehouse.report.cells import Scope
from warehouse.report.results import Counts, Listing, Page, Query
from warehouse.rollups import writer
from warehouse.rollups.coverage import Coverage, Part
from warehouse.schema import HOT

LISTINGS = st.builds(
    Listing,
    st.sampled_from(["total", "human", "ai", "bot", "path"]),
    st.sampled_from(["all", "ai_only", "people_only"]),
    st.booleans(),
)
rows = st.lists(ROWS, max_size=25)
covered_and_invalid_days = st.tuples(st.sets(st.integers(1, 31)), st.sets(st.integers(1, 31), max_size=3))


def hot_rows(batches: list[list[Row]], first_id: int) -> pa.Table:
    """Return the hot rows of batches with consecutive ids."""
    schema = pa.schema([*map(HOT.field, HOT_COLUMNS), pa.field("batch_id", pa.int64())])
    listed = [{**row, "batch_id": first_id + number} for number, batch in enumerate(batches) for row in batch]
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in listed], schema)


def snapshot(files: list[File], batches: list[list[Row]], first_id: int = 1) -> HitsSnapshot:
    moment = Moment(1, first_id + len(batches), 0, 0)
    return HitsSnapshot(moment, tuple(files), hot_rows(batches, first_id))


def coverage(folder: Path, files: list[File], stored: list[Row], covered: set[int], invalid: set[int]) -> Coverage:
    """Write a rollup of the covered days of each month. The `invalid` days of a rollup count other hits."""
    parts = []
    is_covered = {file.partition: int(file.partition[-2:]) in covered for file in files}
    for month in sorted({file.partition[:7] for file in files}):
        counted_rows: list[Row] = []
        counted, by_agent = Counter[rollup_files.Key](), Counter[tuple[*rollup_files.Key, rollup_files.Agent]]()
        days = {file.partition for file in files if file.partition[:7] == month and is_covered[file.partition]}
        for row in stored:
            day = row["ts"].date()
            if day.isoformat() in days:
                wrong = "/wrong" if day.day in invalid else ""
                counted_rows.append({**row, "path": row["path"] + wrong})
                key = row["project_id"], day, row["path"] + wrong, *_codes(row)
                counted[key] += 1
                agent = row["purpose"], row["operator"], row["agent"]
                by_agent[*key, agent] += agent != (None, None, None)
        if counted:
            rollup = rollup_files.write(folder / month, month, counted, +by_agent)
            rollup_files.write_views(rollup, counted_rows)
            valid = frozenset(day for day in rollup.files if int(day[-2:]) not in invalid)
            parts.append(Part(rollup, valid, len(valid) == len(rollup.files)))
    valid_days = {day for part in parts for day in part.days}
    return Coverage(tuple(parts), tuple(file for file in files if file.partition not in valid_days))


def _codes(row: Row) -> tuple[int, int]:
    return SOURCES.index(row["source"]), TRAFFIC.index(row["traffic"])


def shown(page: Page | None) -> list[tuple[str | None, int, int, int, int]]:
    assert page is not None
    return [tuple(row.values()) for row in page.rows.to_pylist()]  # type: ignore[misc]


@settings(max_examples=rounds(60))
@given(
    stored=rows,
    more=rows,
    hot=st.lists(rows.filter(bool), max_size=3),
    days=covered_and_invalid_days,
    scopes=st.lists(st.tuples(SCOPES, LISTINGS), min_size=1, max_size=3),
    limit=st.integers(1, 4),
)
def test_pages_are_those_of_a_plain_count(
    database: duckdb.DuckDBPyConnection,
    stored: list[Row],
    more: list[Row],
    hot: list[list[Row]],
    days: tuple[set[int], set[int]],
    scopes: list[tuple[Scope, Listing]],
    limit: int,
) -> None:
    """Check pages, and all paths, before and after each hot batch, and after a load of `more` rows."""
    with temporary.folder() as name:
        folder = Path(name)
        files = reference.write_hits(folder / "hits", stored, "first")
        covering = coverage(folder / "rollups", files, stored, *days)
        loaded = reference.write_hits(folder / "hits", more, "second")
        reports = PathReports(
            database,
            ResultCache(10_000_000),
            lambda taken: Coverage(
                covering.parts, tuple(f for f in taken.files if f not in files) + covering.uncovered
            ),
        )
        for batches in range(len(hot) + 1):
            posted = [*stored, *(row for batch in hot[:batches] for row in batch)]
            for scope, listing in scopes:
                assert_equal(reports, snapshot(files, hot[:batches]), posted, scope, listing, limit)
        for scope, listing in scopes:
            posted = [*stored, *more, *(row for batch in hot[1:] for row in batch)]
            assert_equal(reports, snapshot([*files, *loaded], hot[1:], 2), posted, scope, listing, limit)


def assert_equal(
    reports: PathReports, taken: HitsSnapshot, posted: list[Row], scope: Scope, listing: Listing, limit: int
) -> None:
    counted = reference.breakdown(posted, scope, "path")
    expected = reference.listed(counted, listing)
    totals = tuple(sum(row[column] for row in counted) for column in (1, 2, 3))
    for offset in range(0, len(expected) + limit, limit):
        page = reports.page(taken, scope, offset, limit, listing)
        assert shown(page) == expected[offset : offset + limit]
        assert page is not None
        assert (page.totals.human, page.totals.ai, page.totals.bot) == totals
        assert page.has_more == (offset + limit < len(expected))
    complete = reports.all(taken, scope, 2, listing)
    assert complete is not None
    assert [tuple(row.values()) for batch in complete[1] for row in batch.to_pylist()] == expected
    assert complete[0] == page.totals


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ({"agent": "GPTBot"}, ["/a", "/b"]),
        ({"operator": "OpenAI", "source": "beacon"}, ["/b"]),
        ({"purpose": "search"}, ["/c"]),
    ],
)
def test_page_of_an_agent_reads_no_hits_on_whole_days(site: Site, filters: dict[str, str], paths: list[str]) -> None:
    agent = {"traffic": "ai", "agent": "GPTBot", "operator": "OpenAI", "purpose": "training"}
    site.post(view("/a", **agent), view("/b", **{**agent, "source": "beacon"}), view("/d"))
    site.post(view("/c", **{**agent, "agent": "OAI-SearchBot", "operator": "Other", "purpose": "search"}))
    site.load()
    files = delta_table.list_files(site.table(delta_table.HITS_TABLE), delta_table.HITS_TABLE)
    writer.write(site.root, site.database, f"{NOON:%Y-%m}", files)
    with closing(site.reports()) as reports:
        taken = reports.take()
        for file in files:
            Path(file.path).unlink()
        midnight = NOON - timedelta(hours=12)
        page = reports.views(taken, Query("site", midnight, midnight + DAY, Filters(**filters), NOON), 0, 9)
        assert page.rows["path"].to_pylist() == paths


def test_pages_of_a_policy_and_of_a_verification_read_no_hits_on_whole_days(site: Site) -> None:
    site.post(view("/page", source="beacon"), view("/page"), view("/log"))
    site.post(view("/doc", format="md", source="beacon"), view("/doc", format="md", source="server"))
    site.post(view("/ai", traffic="ai", source="beacon"), view("/ai", traffic="ai", verification="verified"))
    site.load()
    files = delta_table.list_files(site.table(delta_table.HITS_TABLE), delta_table.HITS_TABLE)
    writer.write(site.root, site.database, f"{NOON:%Y-%m}", files)
    midnight = NOON - timedelta(hours=12)
    policies: dict[str, Periods] = {}
    with closing(site.reports(policies.__getitem__)) as reports:
        taken = reports.take()
        for file in files:
            Path(file.path).unlink()

        def counts(policy: Policy, **filters: str) -> dict[str, tuple[int, int]]:
            policies["site"] = (Period(midnight.date(), policy),)
            query = Query("site", midnight, midnight + DAY, Filters(**filters), NOON)
            rows = reports.views(taken, query, 0, 9).rows.to_pylist()
            assert [row["value"] for row in reports.breakdown(taken, query, "path", 0, 9).rows.to_pylist()] == [
                row["path"] for row in rows
            ]
            return {row["path"]: (row["human"], row["ai"]) for row in rows}

        assert counts("all") == {"/page": (2, 0), "/log": (1, 0), "/doc": (2, 0), "/ai": (0, 2)}
        assert counts("beacon_only") == {"/page": (1, 0), "/doc": (1, 0), "/ai": (0, 1)}
        assert counts("log_only") == {"/page": (1, 0), "/log": (1, 0), "/doc": (1, 0), "/ai": (0, 1)}
        assert counts("beacon_people_log_machines") == {"/page": (1, 0), "/doc": (1, 0), "/ai": (0, 1)}
        assert counts("beacon_people_log_machines", source="server") == {"/doc": (1, 0)}
        assert counts("beacon_people_log_machines", traffic="ai") == {"/ai": (0, 1)}
        assert counts("all", verification="verified") == {"/ai": (0, 1)}
        assert counts("beacon_only", verification="verified") == {}
        assert counts("beacon_only", verification="not_checked") == {"/ai": (0, 1)}


def test_verification_is_counted_in_rollups_and_in_hot_rows(site: Site) -> None:
    site.post(view("/a", traffic="ai", verification="verified"), view("/b", traffic="ai"), view("/c"))
    site.load()
    files = delta_table.list_files(site.table(delta_table.HITS_TABLE), delta_table.HITS_TABLE)
    writer.write(site.root, site.database, f"{NOON:%Y-%m}", files)
    site.post(view("/d", traffic="bot", verification="verified"), view("/d", traffic="ai", verification="verified"))
    with closing(site.reports()) as reports:
        query = Query("site", NOON - 9 * DAY, NOON + 9 * DAY, Filters(verification="verified"), NOON)
        page = reports.views(reports.take(), query, 0, 9)
        assert [tuple(row.values()) for row in page.rows.to_pylist()] == [("/a", 0, 1, 0, 1), ("/d", 0, 1, 1, 1)]
        assert page.totals == Counts(0, 2, 1)
        by = reports.breakdown(reports.take(), replace(query, filters=Filters()), "verification", 0, 9)
        values = [tuple(row.values()) for row in by.rows.to_pylist()]
        assert values == [("verified", 0, 2, 1, 2), ("not_checked", 0, 1, 0, 1), (None, 1, 0, 0, 1)]


@pytest.mark.parametrize("newer", [False, True])
def test_files_of_0_1_0_have_no_verified_views(tmp_path: Path, site: Site, newer: bool) -> None:
    rows = [view("/a", traffic="ai"), view("/b", traffic="ai")]
    files = reference.write_hits(tmp_path, rows, "older")
    for file in files:
        older = pq.ParquetFile(file.path).read().drop_columns(["verification", "verified_by", "hints"])
        pq.write_table(older, file.path)
    if newer:
        files += reference.write_hits(tmp_path, [view("/c", traffic="ai", verification="verified")], "newer")
    condition = ("verification = $verification", {"verification": "verified"})
    counted = hits_files.count(site.database, files, "site", PathIds(pa.array([], pa.string())), condition)
    assert [int(rows.views[TRAFFIC.index("ai")].sum()) for rows in counted.values()] == [0, 1][: len(files)]


def test_counts_of_some_paths_are_those_of_their_pages(site: Site) -> None:
    site.post(view("/a"), view("/a", traffic="ai"), view("/b", traffic="bot"), view("/c", NOON - DAY), view("/é"))
    site.load()
    site.post(view("/a"), view("/hot", traffic="ai"))
    with closing(site.reports()) as reports:
        query = Query("site", NOON, NOON + DAY, Filters(), NOON)
        counts = reports.views_of(reports.take(), query, ["/a", "/b", "/c", "/hot", "/nothing"])
        expected = {"/a": Counts(2, 1, 0), "/b": Counts(0, 0, 1), "/hot": Counts(0, 1, 0)}
        assert {path: each for path, each in counts.items() if each != Counts()} == expected


@settings(max_examples=rounds(40))
@given(stored=rows, scope=SCOPES, listing=LISTINGS)
def test_edges_with_too_many_rows_to_cache_are_counted_from_their_files(
    database: duckdb.DuckDBPyConnection, stored: list[Row], scope: Scope, listing: Listing
) -> None:
    with temporary.folder() as name:
        folder = Path(name)
        files = [replace(file, rows=10**12) for file in reference.write_hits(folder / "hits", stored, "first")]
        covering = coverage(folder / "rollups", files, stored, set(range(1, 32)), set())
        reports = PathReports(database, ResultCache(10_000_000), lambda taken: covering)
        assert_equal(reports, snapshot(files, []), stored, scope, listing, 3)
