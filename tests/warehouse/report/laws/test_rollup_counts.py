"""Counts from rollups are those of the hits that they count, whatever happened to the files since."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.blocks import project
from warehouse.report.grouping import BREAKDOWNS, SOURCE_DAYS, TIME_UNITS, Grouping

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import AGENTS, ROWS, SCOPES
from tests.warehouse.site import DAY, NOON, Row, view
from warehouse.columns.filters import Filters
from warehouse.columns.sources import QUARTER_S, SOURCES
from warehouse.control.policy import BY_FORMAT, DEFAULT, Period, Policy
from warehouse.lake.delta_table import File
from warehouse.lake.roots import LocalPath
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.report.cells import Scope, count_files
from warehouse.rollups import coverage, writer
from warehouse.rollups.coverage import Coverage

GROUPINGS = [*BREAKDOWNS.values(), *TIME_UNITS.values(), SOURCE_DAYS]
EVERYTHING = Scope("site", TimeRange(), Filters())
QUARTERS = TIME_UNITS[QUARTER_S]
BY_SOURCE_AND_TRAFFIC = [Filters(), Filters(traffic="ai"), Filters(source="log")]
BY_AGENT = [
    Filters(verification="not_checked"),
    Filters(agent="GPTBot"),
    Filters(operator="OpenAI"),
    Filters(purpose="training"),
    Filters(agent="GPTBot", traffic="ai", source="log"),
    Filters(agent="Googlebot", operator="OpenAI"),
]


def write_rollups(root: Path, database: duckdb.DuckDBPyConnection, files: Sequence[File]) -> None:
    """Write one rollup for each month of the files."""
    by_month: defaultdict[str, list[File]] = defaultdict(list)
    for file in files:
        by_month[file.partition[:7]].append(file)
    for month, of_month in by_month.items():
        writer.write(LocalPath(root), database, month, of_month)


def counts(
    database: duckdb.DuckDBPyConnection, files: Sequence[File], covered: Coverage, scope: Scope, grouping: Grouping
) -> dict[str, list[int]]:
    """Return the counts of each value that has any, by the text of the value, which may be a dictionary."""
    result: dict[str, list[int]] = {}
    block = project.read(covered.parts, scope.project)
    for row in count_files(database, reference.UNCACHED, files, covered, scope, grouping, block).to_pylist():
        before = result.get(str(row["value"]), [0, 0, 0])
        result[str(row["value"])] = [a + row[name] for a, name in zip(before, ("human", "ai", "bot"), strict=True)]
    return {value: counted for value, counted in result.items() if any(counted)}


def empty_files_of(root: Path, covered: Coverage) -> None:
    """Take the rows out of the files of `hits` that the rollups cover, to recognise counts that read them."""
    for part in covered.parts:
        for day in part.days:
            for name in part.rollup.files[day]:
                path = root / "hits" / f"date={day}" / name
                pq.write_table(pq.read_table(path, partitioning=None).slice(0, 0), path)


def remove_other_dimensions(covered: Coverage, dimension: str) -> None:
    """Take the rows of all other dimensions out of the rollups, to recognise counts that read them."""
    for part in covered.parts:
        table = pq.read_table(part.rollup.dimensions, partitioning=None)
        pq.write_table(table.filter(pc.field("dimension") == dimension), part.rollup.dimensions)


@pytest.mark.long
@settings(max_examples=rounds(50))
@given(
    rolled_up=st.lists(ROWS, max_size=12),
    later=st.lists(ROWS, max_size=6),
    removed=st.sets(st.integers(0, 11)),
    scope=SCOPES,
    grouping=st.sampled_from(GROUPINGS),
)
def test_counts_with_rollups_are_those_of_the_hits(
    database: duckdb.DuckDBPyConnection,
    rolled_up: list[Row],
    later: list[Row],
    removed: set[int],
    scope: Scope,
    grouping: Grouping,
) -> None:
    """Check files after some of them were removed, which invalidates their days, and others were added."""
    with temporary.folder() as folder:
        root = Path(folder)
        first = reference.write_hits(root / "hits", rolled_up, "first")
        write_rollups(root, database, first)
        remaining = [file for number, file in enumerate(first) if number not in removed]
        files = [*remaining, *reference.write_hits(root / "hits", later, "later")]
        covered = coverage.choose(LocalPath(root), files)
        expected = counts(database, files, Coverage((), tuple(files)), scope, grouping)
        assert counts(database, files, covered, scope, grouping) == expected


@pytest.mark.long
def test_whole_valid_days_are_counted_without_reading_hits(tmp_path: Path, database: duckdb.DuckDBPyConnection) -> None:
    cases = [
        (Scope("site", TimeRange(), Filters(path)), each)
        for path in (None, "/a", "/*")
        for each in GROUPINGS
        if each.dimension
    ]
    rows = [
        view(("/a", "/b")[number % 2], NOON + number * DAY, source="log", status=200, referrer_host=f"{number}.example")
        for number in range(-20, 20)
    ]
    files = reference.write_hits(tmp_path / "hits", rows, "one")
    expected = [counts(database, files, Coverage((), tuple(files)), *case) for case in cases]
    write_rollups(tmp_path, database, files)
    covered = coverage.choose(LocalPath(tmp_path), files)
    empty_files_of(tmp_path, covered)
    assert [counts(database, files, covered, *case) for case in cases] == expected


@pytest.mark.parametrize(
    ("filters", "dimension"),
    [*((each, "quarter") for each in BY_SOURCE_AND_TRAFFIC), *((each, "agentQuarter") for each in BY_AGENT)],
    ids=str,
)
def test_quarters_of_an_hour_are_counted_from_the_dimension_that_has_the_columns_of_the_filters(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, filters: Filters, dimension: str
) -> None:
    scope = Scope("site", TimeRange(), filters)
    rows = [
        view(**agent, source=source, ts=NOON + minutes * timedelta(minutes=1))
        for agent in AGENTS
        for source in SOURCES
        for minutes in (0, 7, 15, 3 * 24 * 60)
    ]
    files = reference.write_hits(tmp_path / "hits", rows, "one")
    expected = counts(database, files, Coverage((), tuple(files)), scope, QUARTERS)
    write_rollups(tmp_path, database, files)
    covered = coverage.choose(LocalPath(tmp_path), files)
    empty_files_of(tmp_path, covered)
    remove_other_dimensions(covered, dimension)
    assert counts(database, files, covered, scope, QUARTERS) == expected


def test_partial_days_are_counted_from_hits(tmp_path: Path, database: duckdb.DuckDBPyConnection) -> None:
    files = reference.write_hits(tmp_path / "hits", [view(ts=NOON - DAY), view(ts=NOON), view(ts=NOON + DAY)], "one")
    write_rollups(tmp_path, database, files)
    covered = coverage.choose(LocalPath(tmp_path), files)
    empty_files_of(tmp_path, covered)
    middle = TimeRange(NOON - DAY / 2 - DAY / 4, NOON + DAY)
    assert counts(database, files, covered, Scope("site", middle, Filters()), BREAKDOWNS["agent"]) == {
        "None": [1, 0, 0]
    }


@pytest.mark.long
@pytest.mark.parametrize("grouping", [each for each in GROUPINGS if each.dimension])
def test_day_that_lost_a_file_is_counted_from_its_other_files(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, grouping: Grouping
) -> None:
    days = [view(ts=NOON + number * DAY) for number in range(4)]
    remaining = reference.write_hits(tmp_path / "hits", days, "one")
    lost = reference.write_hits(tmp_path / "hits", days[2:3], "two")
    write_rollups(tmp_path, database, [*remaining, *lost])
    covered = coverage.choose(LocalPath(tmp_path), remaining)
    assert (len(covered.parts[0].days), len(covered.uncovered)) == (3, 1)
    expected = counts(database, remaining, Coverage((), tuple(remaining)), EVERYTHING, grouping)
    assert counts(database, remaining, covered, EVERYTHING, grouping) == expected


def test_cached_counts_of_a_month_are_those_of_one_project_grouping_and_filter(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    cached = ResultCache(1_000_000)
    rows = [
        view(**agent, source=source, project_id=project_id)
        for agent in AGENTS
        for source in SOURCES
        for project_id in ("site", "site", "another")
    ]
    files = reference.write_hits(tmp_path / "hits", rows, "one")
    write_rollups(tmp_path, database, files)
    covered = coverage.choose(LocalPath(tmp_path), files)
    for project_id, filters, by in product(
        ("site", "another"), (*BY_SOURCE_AND_TRAFFIC, *BY_AGENT), ("agent", "source")
    ):
        scope = Scope(project_id, TimeRange(), filters)
        expected = counts(database, files, Coverage((), tuple(files)), scope, BREAKDOWNS[by])
        for _ in range(2):
            rows_of_value = count_files(database, cached, files, covered, scope, BREAKDOWNS[by]).to_pylist()
            result = {str(row["value"]): [row["human"], row["ai"], row["bot"]] for row in rows_of_value}
            assert result == expected


def test_rollups_of_earlier_months_are_read_once(tmp_path: Path, database: duckdb.DuckDBPyConnection) -> None:
    cached = ResultCache(1_000_000)
    august, september = (
        reference.write_hits(tmp_path / "hits", [view(ts=NOON - days * DAY)], "one") for days in (31, 0)
    )
    write_rollups(tmp_path, database, [*august, *september])
    covered = coverage.choose(LocalPath(tmp_path), [*august, *september])
    count_files(database, cached, [*august, *september], covered, EVERYTHING, BREAKDOWNS["agent"])
    covered.parts[0].rollup.dimensions.unlink()
    later = reference.write_hits(tmp_path / "hits", [view()], "later")
    files, covered = [*august, *september, *later], replace(covered, uncovered=tuple(later))
    counts = count_files(database, cached, files, covered, EVERYTHING, BREAKDOWNS["agent"])
    assert sum(counts["human"].to_pylist()) == 3


def remove_page_views(covered: Coverage, paths: set[str], formats: set[str | None]) -> None:
    """Take page views of these paths and formats out of the rollups, to recognise counts that read them."""
    for part in covered.parts:
        views = pq.read_table(part.rollup.path_views, partitioning=None)
        listed = pq.read_table(part.rollup.paths, partitioning=None)["path"].to_pylist()
        format = pq.read_table(part.rollup.profiles, partitioning=None)["format"].to_pylist()
        ids = zip(views["path_id"].to_pylist(), views["profile_id"].to_pylist(), strict=True)
        is_left = [not (listed[path] in paths and format[profile] in formats) for path, profile in ids]
        pq.write_table(views.filter(pa.array(is_left)), part.rollup.path_views)


@pytest.mark.parametrize("path", [None, "/a*", "/*"])
@pytest.mark.parametrize("policy", [DEFAULT, BY_FORMAT])
def test_views_of_most_paths_are_counted_without_their_page_views(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, path: str | None, policy: Policy
) -> None:
    """Check that only the page views of other paths are read, and people's Markdown for a policy that depends on it."""
    scope = Scope("site", TimeRange(), Filters(path, policy=(Period(date.min, policy),)))
    agents = [{"traffic": "human"}, {"traffic": "ai", "agent": "GPTBot"}]
    formats = [None, "md"]
    rows = [
        view(path, NOON - days * DAY, source=source, format=format, referrer_host=source, **agent)
        for path, times in (("/", 1), ("/a", 2), ("/ab", 1), ("/z", 1))
        for days, source, agent, format in product(range(times), SOURCES, agents, formats)
    ]
    files = reference.write_hits(tmp_path / "hits", rows, "one")
    groupings = [BREAKDOWNS["agent"], BREAKDOWNS["browser"], BREAKDOWNS["referrerHost"], QUARTERS, SOURCE_DAYS]
    expected = [counts(database, files, Coverage((), tuple(files)), scope, each) for each in groupings]
    write_rollups(tmp_path, database, files)
    covered = coverage.choose(LocalPath(tmp_path), files)
    remove_page_views(covered, {"/a", "/ab"}, {None})
    if path != "/a*":
        remove_page_views(covered, {"/", "/z"}, {None})
    assert [counts(database, files, covered, scope, each) for each in groupings] == expected
