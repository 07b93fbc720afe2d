"""Counts of page views, grouped by an expression: over rollups, files of `hits` and hot rows.

Whole UTC days are counted from rollups, where these are valid. Partial days, and files that no rollup covers, are
counted from `hits`. Rollups have no paths by dimension: a filter by path makes `hits` the source of all days.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import engine
from warehouse.query.time_range import TimeRange, split
from warehouse.report.filters import Filters
from warehouse.report.grouping import Grouping
from warehouse.rollups.coverage import Coverage, Rollup

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


@dataclass(frozen=True, slots=True)
class Scope:
    """The hits that a report counts: those of a project in a time range that match the filters."""

    project: str
    time_range: TimeRange
    filters: Filters


def count_files(
    database: duckdb.DuckDBPyConnection, files: Sequence[File], coverage: Coverage, scope: Scope, grouping: Grouping
) -> pa.Table:
    """Return counts of the hits in `files`, of which `coverage` is the coverage.

    The columns are `value`, human, ai and bot. The counts of several rows with one value add up.
    """
    if grouping.dimension is None or scope.filters.path is not None:
        coverage = Coverage((), tuple(files))
    first, end = _whole_days(scope.time_range)
    read = [file for file in coverage.uncovered if first <= file.partition < end]
    read += [file for file in _overlapping(files, scope.time_range) if not first <= file.partition < end]
    valid = [(part.rollup, sorted(day for day in part.days if first <= day < end)) for part in coverage.parts]
    used = [(rollup, days) for rollup, days in valid if days]
    with database.cursor() as cursor:
        counts = [_count_hits(cursor, engine.rows(HITS_TABLE, read), scope, grouping)] if read else []
        counts += [_count_rollups(cursor, used, scope, grouping)] if used else []
        return pa.concat_tables(counts) if counts else _count_hits(cursor, engine.no_rows(HITS_TABLE), scope, grouping)


def count_rows(database: duckdb.DuckDBPyConnection, hot: pa.Table, scope: Scope, grouping: Grouping) -> pa.Table:
    """Return counts of hot rows, in the columns of `count_files`."""
    with database.cursor() as cursor:
        cursor.register("hot", hot)
        return _count_hits(cursor, "hot", scope, grouping)


def _count_hits(cursor: duckdb.DuckDBPyConnection, rows: str, scope: Scope, grouping: Grouping) -> pa.Table:
    condition, values = scope.filters.condition()
    sql = _COUNT.format(value=grouping.hits, count="count(*)", rows=rows, condition=f"{_IS_WITHIN} AND {condition}")
    times = {"start": scope.time_range.start, "end": scope.time_range.end}
    return cursor.sql(sql, params={"project": scope.project, **times, **values}).to_arrow_table()


def _count_rollups(
    cursor: duckdb.DuckDBPyConnection, used: Sequence[tuple[Rollup, list[str]]], scope: Scope, grouping: Grouping
) -> pa.Table:
    """Return counts of the days of each rollup."""
    condition, values = scope.filters.condition()
    rows = _ROLLUPS.format(files=engine.parquet_at(str(rollup.dimensions) for rollup, _ in used), days=_days(used))
    sql = _COUNT.format(value=grouping.rollup, count="sum(views)", rows=rows, condition=condition)
    values |= {"project": scope.project, "dimension": grouping.dimension}
    return cursor.sql(sql, params=values).to_arrow_table()


def _days(used: Sequence[tuple[Rollup, list[str]]]) -> str:
    """Return the SQL condition that a row of the rollups counts one of the days."""
    partial = [(rollup.month, days) for rollup, days in used if len(days) < len(rollup.files)]
    numbers = {month: ", ".join(str(int(day[-2:])) for day in days) for month, days in partial}
    return " AND ".join(["true", *(f"(month <> '{month}' OR day IN ({days}))" for month, days in numbers.items())])


def _whole_days(time_range: TimeRange) -> tuple[str, str]:
    """Return the first whole UTC day (YYYY-MM-DD) of a range, and the day after the last one; equal without any."""
    whole = split(time_range).whole_days
    return (_day(whole[0].start), _day(whole[0].end)) if whole else ("", "")


def _overlapping(files: Sequence[File], time_range: TimeRange) -> Iterator[File]:
    """Yield the files of the days in a range, and perhaps of the day after it."""
    return (file for file in files if _day(time_range.start) <= file.partition <= _day(time_range.end))


def _day(instant: datetime) -> str:
    return instant.date().isoformat()
