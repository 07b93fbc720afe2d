"""Counts of page views, grouped by an expression: over rollups, files of `hits` and hot rows.

Whole UTC days are counted from rollups, where these are valid. The edges of a range, and files that no rollup covers,
are counted from `hits`. With a filter by path or a source policy, the days are counted from the page views in rollups:
see `dimensions.path_months`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.project import ProjectBlock
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import edge_rows, engine
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import Edge, TimeRange, round_to_days
from warehouse.report.dimensions import month_rows
from warehouse.report.dimensions.count import count
from warehouse.report.dimensions.rows import of_hits, without_value
from warehouse.report.filters import Filters
from warehouse.report.grouping import Grouping
from warehouse.rollups.coverage import Coverage

_COUNT = """
SELECT {value} AS value,
       coalesce({count} FILTER (traffic = 'human'), 0)::BIGINT AS human,
       coalesce({count} FILTER (traffic = 'ai'), 0)::BIGINT AS ai,
       coalesce({count} FILTER (traffic = 'bot'), 0)::BIGINT AS bot
FROM {rows}
WHERE project_id = $project AND {condition}
GROUP BY 1
"""
_IS_WITHIN = "ts >= $start AND ts < $end"
_ROLLUPS = """
(SELECT *, (month || '-01')::DATE + (day::INTEGER - 1) AS date FROM {files} WHERE dimension = $dimension AND {days})
"""


MEMORY_DAYS = timedelta(days=31)
"""Longest time between the first and the last day of rows that are counted in memory, by quarters of an hour."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The hits that a report counts: those of a project in a time range that match the filters."""

    project: str
    time_range: TimeRange
    filters: Filters


@dataclass(frozen=True, slots=True)
class RollupDays:
    """Days (YYYY-MM-DD) that are counted from one rollup. `file` is its file of dimensions.

    `is_whole`: the rollup has no other days.
    """

    month: str
    file: str
    days: tuple[str, ...]
    is_whole: bool


def count_files(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    coverage: Coverage,
    scope: Scope,
    grouping: Grouping,
    block: ProjectBlock | None = None,
) -> pa.Table:
    """Return counts of the hits in `files`. `coverage` is the coverage of `files` by rollups.

    The columns are `value`, human, ai and bot. A value may have several rows, whose counts add up; a count may be
    negative.

    `block` is the block of the project, which is required if the filters need page views. The rows of rollups are
    cached, and the counts of whole months.
    """
    dimension = grouping.dimension_for(scope.filters)
    if dimension is None:
        return count_hits_in(database, edge_rows.files_of(files, scope.time_range), scope, grouping)
    tables = _count_uncovered(database, cached, files, coverage, scope, grouping)
    for days in round_to_days(scope.time_range).whole_days:
        tables += _count_rollups(cached, valid_days(coverage, days), scope, grouping, dimension, block)
    return pa.concat_tables(tables or [count_hits_in(database, [], scope, grouping)])


def _count_rollups(
    cached: ResultCache,
    rollups: Sequence[RollupDays],
    scope: Scope,
    grouping: Grouping,
    dimension: str,
    block: ProjectBlock | None,
) -> list[pa.Table]:
    """Return the counts of each rollup. Those of whole months are cached: a year has ten of them, 0.5 ms each."""
    filters = replace(scope.filters, path=None)
    keys = {each: ("counts", each.file, scope.project, scope.filters, grouping) for each in rollups}
    known = {each: cached.get(keys[each]) for each in rollups if each.is_whole}
    missing = [each for each in rollups if known.get(each) is None]
    if not missing:
        return [known[each] for each in rollups]
    files = {each.month: each.file for each in missing}
    of_months = month_rows.read(cached, files, scope.project, dimension, scope.filters, block)
    for each, signed in zip(missing, of_months, strict=True):
        known[each] = pa.concat_tables(
            count(part.rows.on(each.days), filters, grouping.columns, part.sign) for part in signed
        )
        if each.is_whole:
            cached.put(keys[each], known[each])
    return [known[each] for each in rollups]


def count_uncovered(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    coverage: Coverage,
    scope: Scope,
    grouping: Grouping,
) -> pa.Table:
    """Return what the hits in `files` add to the whole days of rollups, in the columns of `count_files`.

    These are the hits that no rollup covers, and the edges of the range, whose counts may be negative.
    """
    tables = _count_uncovered(database, cached, files, coverage, scope, grouping)
    return pa.concat_tables(tables or [count_hits_in(database, [], scope, grouping)])


def count_paths(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    viewed_days: Collection[str],
    scope: Scope,
    grouping: Grouping,
) -> pa.Table:
    """Return counts of the hits in `files` for a filter by path and a grouping that rollups do not have.

    The columns are those of `count_files`. Of the whole days, only `viewed_days` (YYYY-MM-DD) are counted: the others
    have no view of the paths.
    """
    parts = round_to_days(scope.time_range)
    tables = [_count_edge(database, cached, files, edge, scope, grouping) for edge in parts.edges]
    for days in parts.whole_days:
        viewed = [file for file in edge_rows.files_of(files, days) if file.partition in viewed_days]
        tables.append(count_hits_in(database, viewed, replace(scope, time_range=days), grouping))
    return pa.concat_tables(tables or [count_hits_in(database, [], scope, grouping)])


def _count_uncovered(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    coverage: Coverage,
    scope: Scope,
    grouping: Grouping,
) -> list[pa.Table]:
    parts = round_to_days(scope.time_range)
    if not grouping.needs_files:
        edge_rows.read_together(database, cached, files, scope.project, (edge.time_range for edge in parts.edges))
    tables = [_count_edge(database, cached, files, edge, scope, grouping) for edge in parts.edges]
    tables += [
        _count_days(database, cached, uncovered, replace(scope, time_range=days), grouping)
        for days in parts.whole_days
        if (uncovered := edge_rows.files_of(coverage.uncovered, days))
    ]
    return tables


def _count_days(
    database: duckdb.DuckDBPyConnection, cached: ResultCache, files: Sequence[File], scope: Scope, grouping: Grouping
) -> pa.Table:
    """Return the counts of files on whole days: in memory if the files are of few days, as those of new hits are."""
    first, last = (date.fromisoformat(file.partition) for file in (files[0], files[-1]))
    if last - first > MEMORY_DAYS:
        return count_hits_in(database, files, scope, grouping)
    return _count_edge(database, cached, files, Edge(scope.time_range, 1), scope, grouping)


def _count_edge(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    edge: Edge,
    scope: Scope,
    grouping: Grouping,
) -> pa.Table:
    """Return the counts of an edge, or of whole days, which are negative if their hits are subtracted."""
    scope, files = replace(scope, time_range=edge.time_range), edge_rows.files_of(files, edge.time_range)
    bounds = scope.filters.path_bounds
    read = partial(edge_rows.read, database, cached, files, scope.project, edge.time_range, bounds)
    rows = None if grouping.needs_files else read()
    dimension = grouping.dimension_for(scope.filters)
    if rows is not None and dimension is not None:
        key = "without value", *edge_rows.key_of(files, scope.project, edge.time_range, bounds)
        shared = cached(key, lambda: without_value(rows), evict_first=True)
        return count(of_hits(rows, dimension, shared), replace(scope.filters, path=None), grouping.columns, edge.sign)
    counts = (
        count_hits_in(database, files, scope, grouping) if rows is None else count_rows(database, rows, scope, grouping)
    )
    if edge.sign == 1:
        return counts
    return pa.table({"value": counts["value"], **{name: pc.negate(counts[name]) for name in ("human", "ai", "bot")}})


def valid_days(coverage: Coverage, time_range: TimeRange) -> tuple[RollupDays, ...]:
    """Return the valid days of rollups in a range that begins and ends at midnight UTC."""
    first, end = (instant.date().isoformat() for instant in (time_range.start, time_range.end))
    days = ((part.rollup, tuple(sorted(day for day in part.days if first <= day < end))) for part in coverage.parts)
    return tuple(
        RollupDays(rollup.month, str(rollup.dimensions), each, len(each) == len(rollup.files))
        for rollup, each in days
        if each
    )


def count_rows(database: duckdb.DuckDBPyConnection, hot: pa.Table, scope: Scope, grouping: Grouping) -> pa.Table:
    """Return counts of hot rows, in the columns of `count_files`."""
    with engine.interruptible_cursor(database) as cursor:
        cursor.register("hot", hot)
        return _count_hits(cursor, "hot", scope, grouping)


def _count_hits(cursor: duckdb.DuckDBPyConnection, rows: str, scope: Scope, grouping: Grouping) -> pa.Table:
    condition, values = scope.filters.condition()
    condition = f"{_IS_WITHIN} AND {grouping.condition} AND {condition}"
    sql = _COUNT.format(value=grouping.hits, count="count(*)", rows=rows, condition=condition)
    times = {"start": scope.time_range.start, "end": scope.time_range.end}
    return cursor.sql(sql, params={"project": scope.project, **times, **values}).to_arrow_table()


def count_hits_in(
    database: duckdb.DuckDBPyConnection, files: Sequence[File], scope: Scope, grouping: Grouping
) -> pa.Table:
    """Return counts of the hits in files, in the columns of `count_files`, from `hits` alone."""
    with engine.interruptible_cursor(database) as cursor:
        return _count_hits(cursor, _rows_of(files), scope, grouping)


def _rows_of(files: Sequence[File]) -> str:
    return engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)


def rollup_rows_sql(rollups: Sequence[RollupDays]) -> str:
    """Return the subquery of the rows of some days, with their `date`, of the dimension that is bound to $dimension."""
    return _ROLLUPS.format(files=engine.parquet_at(each.file for each in rollups), days=in_days(rollups))


def in_days(rollups: Sequence[RollupDays]) -> str:
    """Return the SQL condition that a row of the rollups counts one of the days."""
    partial_months = {each.month: [int(day[-2:]) for day in each.days] for each in rollups if not each.is_whole}
    conditions = (
        f"(month <> '{month}' OR day IN ({', '.join(map(str, days))}))" for month, days in partial_months.items()
    )
    return " AND ".join(conditions) or "true"
