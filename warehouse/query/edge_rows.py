"""Rows of `hits` at the edge of a range that begins or ends within a UTC day, shared by all reports.

A page of a dashboard shows a dozen reports of one range. Without the rows, each of them would read the files of the
days that the range cuts.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.encoding import encoded
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import engine
from warehouse.query.hits_snapshot import HOT_COLUMNS
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange

Bounds = tuple[str, str | None]
"""First path, and the first one after all others, in byte order; None if no path is after them."""
ROWS_MAX = 200_000
"""Maximum number of rows that an edge is expected to have. More rows would displace too many other results."""
NOT_AT_EDGES = ("user_agent", "verified_by")
"""Columns of hot rows that few reports read, and the rows of an edge do not have."""
COLUMNS = tuple(name for name in HOT_COLUMNS if name not in NOT_AT_EDGES)
_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
_READ = f"SELECT {', '.join(COLUMNS)} FROM {{rows}} WHERE project_id = $project AND ts >= $start AND ts < $end"


def files_of(files: Iterable[File], time_range: TimeRange) -> list[File]:
    """Return the files of the days in which a range has an instant."""
    if time_range.start >= time_range.end:
        return []
    first, last = (each.date().isoformat() for each in (time_range.start, time_range.end - _MICROSECOND))
    return [file for file in files if first <= file.partition <= last]


def read(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    project: str,
    edge: TimeRange,
    bounds: Bounds | None = None,
) -> pa.Table | None:
    """Return the rows of a project at an edge, with COLUMNS, from the `files_of` its days, or from the cache.

    With `bounds`, only the rows of the paths within them are returned. Return None if the edge may have more than
    ROWS_MAX rows.
    """
    if sum(file.rows for file in files) * min((edge.end - edge.start) / _DAY, 1) > ROWS_MAX:
        return None
    key = ("edge", project, edge, *(file.path for file in files))
    table: pa.Table = cached(key, lambda: _read(database, files, project, edge))
    return table if bounds is None else cached((*key, bounds), lambda: _of_paths(table, bounds))


def _of_paths(rows: pa.Table, bounds: Bounds) -> pa.Table:
    first, after = bounds
    column = rows["path"].combine_chunks()
    is_wanted = pc.greater_equal(column.dictionary, first)
    if after is not None:
        is_wanted = pc.and_(is_wanted, pc.less(column.dictionary, after))
    return rows.filter(is_wanted.take(column.indices))


def _read(database: duckdb.DuckDBPyConnection, files: Sequence[File], project: str, edge: TimeRange) -> pa.Table:
    sql = _READ.format(rows=engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE))
    with database.cursor() as cursor:
        rows = cursor.sql(sql, params={"project": project, "start": edge.start, "end": edge.end}).to_arrow_table()
    return pa.table({name: encoded(rows[name]) for name in rows.column_names})
