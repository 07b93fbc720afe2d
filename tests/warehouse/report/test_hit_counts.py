"""Page views are counted once each, from rollups, files and hot rows alike, in any range and with any filter."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.report.grouping import BREAKDOWNS, ORIGIN_S, TIME_UNITS, Grouping

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import ROWS, SCOPES
from tests.warehouse.site import Row, view
from warehouse.columns.filters import Filters
from warehouse.lake.delta_table import File
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.cells import Scope, count_files, count_paths, count_rows
from warehouse.rollups.coverage import Coverage

EVERYTHING = Scope("site", TimeRange(FIRST, LAST), Filters())


def added_up(*tables: pa.Table) -> dict[object, list[int]]:
    """Return the counts of each value that has any. Those of an edge may be subtracted from those of a day."""
    result: dict[object, list[int]] = {}
    for row in (row for table in tables for row in table.to_pylist()):
        before = result.get(row["value"], [0, 0, 0])
        result[row["value"]] = [a + row[name] for a, name in zip(before, ("human", "ai", "bot"), strict=True)]
    return {value: counts for value, counts in result.items() if any(counts)}


def count_all(database: duckdb.DuckDBPyConnection, files: Sequence[File], scope: Scope, grouping: Grouping) -> pa.Table:
    """Return the counts of the hits in files that no rollup covers."""
    if scope.filters.path is not None and grouping.dimension_for(scope.filters) is None:
        days = {file.partition for file in files}
        return count_paths(database, reference.UNCACHED, files, days, scope, grouping)
    return count_files(database, reference.UNCACHED, files, Coverage((), tuple(files)), scope, grouping)


def count(
    database: duckdb.DuckDBPyConnection, folder: Path, rows: Sequence[Row], scope: Scope, grouping: Grouping
) -> dict[object, list[int]]:
    """Return the counts of rows, of which a third is hot and the others in two files a day."""
    files = [*reference.write_hits(folder, rows[1::3], "one"), *reference.write_hits(folder, rows[2::3], "two")]
    stored = count_all(database, files, scope, grouping)
    return added_up(stored, count_rows(database, reference.hot(rows[::3]), scope, grouping))


@settings(max_examples=rounds(60))
@given(st.lists(ROWS, max_size=20), SCOPES, st.sampled_from(list(BREAKDOWNS)))
def test_edges_with_too_many_rows_to_cache_are_counted_from_their_files(
    database: duckdb.DuckDBPyConnection, rows: list[Row], scope: Scope, by: str
) -> None:
    with temporary.folder() as folder:
        files = [replace(file, rows=10**12) for file in reference.write_hits(Path(folder), rows, "one")]
        counts = count_all(database, files, scope, BREAKDOWNS[by])
    assert added_up(counts) == reference.counts(rows, scope, lambda row: reference.value(row, by))


def seconds_since_year_1(row: Row) -> int:
    return (row["ts"] - FIRST) // timedelta(seconds=1)


@settings(max_examples=rounds(100))
@given(st.lists(ROWS, max_size=20), SCOPES, st.sampled_from(list(BREAKDOWNS)), st.sampled_from(list(TIME_UNITS)))
def test_each_value_has_the_counts_of_the_reference(
    database: duckdb.DuckDBPyConnection, rows: list[Row], scope: Scope, by: str, unit_s: int
) -> None:
    with temporary.folder() as folder:
        by_value = count(database, Path(folder), rows, scope, BREAKDOWNS[by])
        by_time = count(database, Path(folder), rows, scope, TIME_UNITS[unit_s])
    assert by_value == reference.counts(rows, scope, lambda row: reference.value(row, by))
    assert by_time == reference.counts(rows, scope, lambda row: seconds_since_year_1(row) // unit_s)


@pytest.mark.parametrize("is_hot", [False, True], ids=["files", "hot"])
def test_instant_before_1970_is_in_the_unit_that_contains_it(
    database: duckdb.DuckDBPyConnection, tmp_path: Path, is_hot: bool
) -> None:
    row = view(ts=datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC))
    for unit_s, grouping in TIME_UNITS.items():
        result = count(database, tmp_path, [row] if is_hot else [view(project_id="another"), row], EVERYTHING, grouping)
        assert result == {(-1 - ORIGIN_S) // unit_s: [1, 0, 0]}


@pytest.mark.parametrize("grouping", [*BREAKDOWNS.values(), *TIME_UNITS.values()])
def test_lake_without_files_and_hot_rows_has_empty_counts(
    database: duckdb.DuckDBPyConnection, grouping: Grouping
) -> None:
    stored = count_files(database, reference.UNCACHED, [], Coverage((), ()), EVERYTHING, grouping)
    hot = count_rows(database, reference.hot([]), EVERYTHING, grouping)
    assert pa.concat_tables([stored, hot]).num_rows == 0


def test_breakdowns_of_one_path_share_a_scan_of_the_files(database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rows = [view("/a", agent="GPTBot", traffic="ai"), view("/a", referrer_host="example.org"), view("/b")]
    files, cached = reference.write_hits(tmp_path, rows, "one"), ResultCache(1_000_000)
    scope = replace(EVERYTHING, filters=Filters(path="/a"))
    uncovered = Coverage((), tuple(files))
    sources = count_files(database, cached, files, uncovered, scope, BREAKDOWNS["source"])
    assert list(added_up(sources).values()) == [[1, 1, 0]]
    for file in files:
        Path(file.path).unlink()
    people = replace(scope, filters=Filters(path="/a", traffic="human"))
    assert added_up(count_files(database, cached, files, uncovered, people, BREAKDOWNS["referrerHost"])) == {
        "example.org": [1, 0, 0]
    }
    agents = count_files(database, cached, files, uncovered, scope, BREAKDOWNS["agent"])
    assert added_up(agents) == {"GPTBot": [0, 1, 0], None: [1, 0, 0]}


def test_files_of_days_without_a_view_of_the_path_are_not_opened(
    database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    files = reference.write_hits(tmp_path, [view("/b")], "one")
    Path(files[0].path).unlink()
    scope = replace(EVERYTHING, filters=Filters(path="/a"))
    assert count_paths(database, reference.UNCACHED, files, frozenset(), scope, TIME_UNITS[1]).num_rows == 0
