"""Counts of page views, grouped by an expression: over rollups, files of `hits` and hot rows.

Whole UTC days are counted from rollups, where these are valid. The edges of a range, and files that no rollup covers,
are counted from `hits`. Rollups have no dimension with paths: with a filter by path, all days are counted from `hits`,
except in a series by UTC day, see `series.count_days`. The breakdowns of one path share one scan of `hits`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.encoding import encoded
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import edge_rows, engine
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import Edge, TimeRange, round_to_days, split
from warehouse.report.dimensions import months
from warehouse.report.dimensions.count import count
from warehouse.report.dimensions.rows import of_hits
from warehouse.report.filters import Filters
from warehouse.report.grouping import BREAKDOWNS, Grouping
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
_SHARED = frozenset(
    BREAKDOWNS[name]
    for name in ("source", "agent", "operator", "purpose", "verification", "referrerHost", "format", "status")
)
"""Groupings of one path that are counted from the same rows: those of a page of the dashboard, and those by agent."""
_SHARED_ROWS = """
SELECT source, traffic, agent, operator, purpose, verification, referrer_host, format, status,
       count(*) * $sign::BIGINT AS views
FROM {rows} WHERE project_id = $project AND path = $only_path AND {condition} GROUP BY ALL
"""


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
) -> pa.Table:
    """Return counts of the hits in `files`. `coverage` is the coverage of `files` by rollups.

    The columns are `value`, human, ai and bot. A value may have several rows, whose counts add up; a count may be
    negative.

    The rows of rollups are cached, and the counts of whole months.
    """
    dimension = grouping.dimension_for(scope.filters)
    if dimension is None:
        return _count_hits_in(database, edge_rows.files_of(files, scope.time_range), scope, grouping)
    tables = _count_uncovered(database, cached, files, coverage, scope, grouping)
    for days in round_to_days(scope.time_range).whole_days:
        tables += _count_rollups(cached, valid_days(coverage, days), scope, grouping, dimension)
    return pa.concat_tables(tables or [_count_hits_in(database, [], scope, grouping)])


def _count_rollups(
    cached: ResultCache, rollups: Sequence[RollupDays], scope: Scope, grouping: Grouping, dimension: str
) -> list[pa.Table]:
    """Return the counts of each rollup. Counts of whole months are cached: one takes 0.5 ms, and a year has ten."""
    keys = {each: ("counts", each.file, scope.project, scope.filters, grouping) for each in rollups}
    known = {each: cached.get(keys[each]) for each in rollups if each.is_whole}
    missing = [each for each in rollups if known.get(each) is None]
    of_months = months.read(cached, {each.month: each.file for each in missing}, scope.project, dimension)
    for each, rows in zip(missing, of_months, strict=True):
        known[each] = count(rows if each.is_whole else rows.on(each.days), scope.filters, grouping.columns)
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
    return pa.concat_tables(tables or [_count_hits_in(database, [], scope, grouping)])


def count_paths(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    viewed_days: Collection[str],
    scope: Scope,
    grouping: Grouping,
) -> pa.Table:
    """Return counts of the hits in `files` for filters by path, in the columns of `count_files`.

    Of the whole days, only `viewed_days` (YYYY-MM-DD) are counted: the others have no view of the paths.
    """
    if grouping in _SHARED and not scope.filters.is_prefix and not scope.filters.policy:
        within = edge_rows.files_of(files, scope.time_range)
        key = ("hits of a path", scope.project, scope.filters.path, scope.time_range, *(file.path for file in within))
        rows = cached(key, partial(_read_shared, database, cached, files, viewed_days, scope))
        return _count_shared(database, rows, scope, grouping)
    parts = round_to_days(scope.time_range)
    tables = [_count_edge(database, cached, files, edge, scope, grouping) for edge in parts.edges]
    for days in parts.whole_days:
        viewed = [file for file in edge_rows.files_of(files, days) if file.partition in viewed_days]
        tables.append(_count_hits_in(database, viewed, replace(scope, time_range=days), grouping))
    return pa.concat_tables(tables or [_count_hits_in(database, [], scope, grouping)])


def _read_shared(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    viewed_days: Collection[str],
    scope: Scope,
) -> pa.Table:
    """Return the views of one path by the columns of all groupings in _SHARED. Views may be negative: they add up.

    In the files of whole days, the column `ts`, the largest one, is not read.
    """
    parts, tables = round_to_days(scope.time_range), []
    with database.cursor() as cursor:
        for days in parts.whole_days:
            viewed = [file for file in edge_rows.files_of(files, days) if file.partition in viewed_days]
            tables.append(_share(cursor, scope, _rows_of(viewed), 1))
        for edge in parts.edges:
            within = edge_rows.files_of(files, edge.time_range)
            hits = edge_rows.read(database, cached, within, scope.project, edge.time_range)
            rows = _rows_of(within) if hits is None else "hits"
            if hits is not None:
                cursor.register(rows, hits)
            tables.append(_share(cursor, scope, rows, edge.sign, edge.time_range))
        shared = pa.concat_tables(tables or [_share(cursor, scope, _rows_of([]), 1)])
    return pa.table({name: encoded(shared[name]) for name in shared.column_names})


def _share(
    cursor: duckdb.DuckDBPyConnection, scope: Scope, rows: str, sign: int, time_range: TimeRange | None = None
) -> pa.Table:
    """Return the views of one path by the columns of all groupings in _SHARED, multiplied by `sign`."""
    times = {"start": time_range.start, "end": time_range.end} if time_range else {}
    sql = _SHARED_ROWS.format(rows=rows, condition=_IS_WITHIN if time_range else "true")
    values = {"project": scope.project, "only_path": scope.filters.path, "sign": sign, **times}
    return cursor.sql(sql, params=values).to_arrow_table()


def _count_shared(database: duckdb.DuckDBPyConnection, rows: pa.Table, scope: Scope, grouping: Grouping) -> pa.Table:
    condition, values = replace(scope.filters, path=None).condition()
    with database.cursor() as cursor:
        cursor.register("shared", rows)
        with_project = "(SELECT *, $project AS project_id FROM shared)"
        sql = _COUNT.format(value=grouping.hits, count="sum(views)", rows=with_project, condition=condition)
        return cursor.sql(sql, params={"project": scope.project, **values}).to_arrow_table()


def _count_uncovered(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    coverage: Coverage,
    scope: Scope,
    grouping: Grouping,
) -> list[pa.Table]:
    parts = round_to_days(scope.time_range)
    tables = [_count_edge(database, cached, files, edge, scope, grouping) for edge in parts.edges]
    tables += [
        _count_hits_in(database, uncovered, replace(scope, time_range=days), grouping)
        for days in parts.whole_days
        if (uncovered := edge_rows.files_of(coverage.uncovered, days))
    ]
    return tables


def _count_edge(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    edge: Edge,
    scope: Scope,
    grouping: Grouping,
) -> pa.Table:
    """Return the counts of an edge, which are negative if its hits are subtracted."""
    scope, files = replace(scope, time_range=edge.time_range), edge_rows.files_of(files, edge.time_range)
    read = partial(edge_rows.read, database, cached, files, scope.project, edge.time_range)
    rows = None if grouping.needs_files else read()
    dimension = grouping.dimension_for(scope.filters)
    if rows is not None and dimension is not None:
        return count(of_hits(rows, dimension), scope.filters, grouping.columns, edge.sign)
    counts = (
        _count_hits_in(database, files, scope, grouping)
        if rows is None
        else count_rows(database, rows, scope, grouping)
    )
    if edge.sign == 1:
        return counts
    return pa.table({"value": counts["value"], **{name: pc.negate(counts[name]) for name in ("human", "ai", "bot")}})


def valid_days(coverage: Coverage, time_range: TimeRange) -> tuple[RollupDays, ...]:
    """Return the valid days of rollups that are whole days in a range."""
    first, end = whole_days(time_range)
    days = ((part.rollup, tuple(sorted(day for day in part.days if first <= day < end))) for part in coverage.parts)
    return tuple(
        RollupDays(rollup.month, str(rollup.dimensions), each, len(each) == len(rollup.files))
        for rollup, each in days
        if each
    )


def count_rows(database: duckdb.DuckDBPyConnection, hot: pa.Table, scope: Scope, grouping: Grouping) -> pa.Table:
    """Return counts of hot rows, in the columns of `count_files`."""
    with database.cursor() as cursor:
        cursor.register("hot", hot)
        return _count_hits(cursor, "hot", scope, grouping)


def _count_hits(cursor: duckdb.DuckDBPyConnection, rows: str, scope: Scope, grouping: Grouping) -> pa.Table:
    condition, values = scope.filters.condition()
    condition = f"{_IS_WITHIN} AND {grouping.condition} AND {condition}"
    sql = _COUNT.format(value=grouping.hits, count="count(*)", rows=rows, condition=condition)
    times = {"start": scope.time_range.start, "end": scope.time_range.end}
    return cursor.sql(sql, params={"project": scope.project, **times, **values}).to_arrow_table()


def _count_hits_in(
    database: duckdb.DuckDBPyConnection, files: Sequence[File], scope: Scope, grouping: Grouping
) -> pa.Table:
    with database.cursor() as cursor:
        return _count_hits(cursor, _rows_of(files), scope, grouping)


def _rows_of(files: Sequence[File]) -> str:
    return engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)


def rollup_rows(rollups: Sequence[RollupDays]) -> str:
    """Return the subquery of the rows of some days, with their `date`, of the dimension that is bound to $dimension."""
    return _ROLLUPS.format(files=engine.parquet_at(each.file for each in rollups), days=in_days(rollups))


def in_days(rollups: Sequence[RollupDays]) -> str:
    """Return the SQL condition that a row of the rollups counts one of the days."""
    partial_months = {each.month: [int(day[-2:]) for day in each.days] for each in rollups if not each.is_whole}
    conditions = (
        f"(month <> '{month}' OR day IN ({', '.join(map(str, days))}))" for month, days in partial_months.items()
    )
    return " AND ".join(conditions) or "true"


def whole_days(time_range: TimeRange) -> tuple[str, str]:
    """Return the first whole UTC day (YYYY-MM-DD) of a range, and the day after the last one; "" without any."""
    whole = split(time_range).whole_days
    return (_day(whole[0].start), _day(whole[0].end)) if whole else ("", "")


def _day(instant: datetime) -> str:
    return instant.date().isoformat()
