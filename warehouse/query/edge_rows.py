"""Rows of `hits` at the edge of a range that begins or ends within a UTC day, shared by all reports.

A page of a dashboard shows a dozen reports of one range. Without the rows, each of them would read the files of the
days that the range cuts.
"""

from collections.abc import Hashable, Iterable, Sequence
from datetime import timedelta

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.encoding import encoded
from warehouse.lake import row_groups
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import engine
from warehouse.query.hits_snapshot import HOT_COLUMNS
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.schema import PathBounds

ROWS_MAX = 200_000
"""Maximum number of rows that an edge is expected to have. More rows would displace too many other results."""
PATH_BYTES_MAX = 32 * 1024 * 1024
"""Maximum size of the paths that an edge may have, in bytes."""
NOT_AT_EDGES = ("user_agent", "verified_by")
"""Columns of hot rows that few reports read, and the rows of an edge do not have."""
COLUMNS = tuple(name for name in HOT_COLUMNS if name not in NOT_AT_EDGES)
_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
_READ = f"SELECT {', '.join(COLUMNS)} FROM {{rows}} WHERE project_id = $project AND ({{condition}})"


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
    bounds: PathBounds | None = None,
) -> pa.Table | None:
    """Return the rows of a project at an edge, with COLUMNS, from the cache or from `files`, the `files_of` the edge.

    With `bounds`, only the rows of the paths within them are returned. Return None if the edge may have more than
    ROWS_MAX rows or PATH_BYTES_MAX.
    """
    if _is_large(files, project, edge):
        return None
    key = key_of(files, project, edge)
    table: pa.Table = cached(key, lambda: _read(database, files, project, [edge])[0], evict_first=True)
    return table if bounds is None else cached((*key, bounds), lambda: _of_paths(table, bounds), evict_first=True)


def read_together(
    database: duckdb.DuckDBPyConnection,
    cached: ResultCache,
    files: Sequence[File],
    project: str,
    edges: Iterable[TimeRange],
) -> None:
    """Read the rows at several edges into the cache, by one query of `files`, which are those of a snapshot.

    Of days with 27,000 hits, three edges take 20 ms of processor time by one query, and 31 ms by three. Other threads
    that ask for the same edges wait for the rows.
    """
    missing: dict[tuple[Hashable, ...], tuple[TimeRange, list[File]]] = {}
    for edge in edges:
        of_edge = files_of(files, edge)
        key = key_of(of_edge, project, edge)
        if of_edge and not _is_large(of_edge, project, edge) and cached.get(key) is None:
            missing[key] = edge, of_edge
    if len(missing) < 2:  # `read` reads a single one
        return
    with cached.computing(("edges", *missing)):
        missing = {key: each for key, each in missing.items() if cached.get(key) is None}
        of_all = {file.path: file for _, of_edge in missing.values() for file in of_edge}
        tables = _read(database, [*of_all.values()], project, [edge for edge, _ in missing.values()])
        for key, table in zip(missing, tables, strict=True):
            cached.put(key, table, evict_first=True)


def key_of(
    files: Sequence[File], project: str, edge: TimeRange, bounds: PathBounds | None = None
) -> tuple[Hashable, ...]:
    """Return the key of the rows at an edge in the cache. `files` are the `files_of` the edge."""
    key = ("edge", project, edge, *(file.path for file in files))
    return key if bounds is None else (*key, bounds)


def _is_large(files: Sequence[File], project: str, edge: TimeRange) -> bool:
    """Return whether an edge may have more than ROWS_MAX rows or PATH_BYTES_MAX."""
    share = min((edge.end - edge.start) / _DAY, 1)
    rows = sum(file.rows for file in files)
    return rows * share > ROWS_MAX or sum(row_groups.path_bytes(file.path, project) for file in files) > PATH_BYTES_MAX


def _of_paths(rows: pa.Table, bounds: PathBounds) -> pa.Table:
    first, after = bounds
    column = rows["path"].combine_chunks()
    is_wanted = pc.greater_equal(column.dictionary, first)
    if after is not None:
        is_wanted = pc.and_(is_wanted, pc.less(column.dictionary, after))
    return rows.filter(is_wanted.take(column.indices))


def _read(
    database: duckdb.DuckDBPyConnection, files: Sequence[File], project: str, edges: Sequence[TimeRange]
) -> list[pa.Table]:
    """Return the rows at each edge."""
    if not files:  # a query takes 3 ms, even without rows
        return [_in_memory(HITS_TABLE.schema.empty_table().select(COLUMNS)) for _ in edges]
    times = [(f"start_{number}", f"end_{number}") for number in range(len(edges))]
    condition = " OR ".join(f"(ts >= ${start} AND ts < ${end})" for start, end in times)
    instants = {
        name: instant
        for (start, end), edge in zip(times, edges, strict=True)
        for name, instant in ((start, edge.start), (end, edge.end))
    }
    sql = _READ.format(rows=engine.rows(HITS_TABLE, files), condition=condition)
    with engine.reader(database) as cursor:
        rows = cursor.sql(sql, params={"project": project, **instants}).to_arrow_table()
    if len(edges) == 1:
        return [_in_memory(rows)]
    ts = pc.field("ts")
    return [_in_memory(rows.filter((ts >= edge.start) & (ts < edge.end))) for edge in edges]


def _in_memory(rows: pa.Table) -> pa.Table:
    return pa.table({name: _narrowed(encoded(rows[name])) for name in rows.column_names})


def _narrowed(column: pa.Array) -> pa.Array:
    """Return a column of texts with indices of 8, 16 or 32 bits, whichever suffice. Other columns are not changed."""
    if not pa.types.is_dictionary(column.type):
        return column
    types = (pa.int8(), pa.int16(), pa.int32())
    chosen = next(each for each in types if len(column.dictionary) < 1 << each.bit_width - 1)
    return pa.DictionaryArray.from_arrays(column.indices.cast(chosen), column.dictionary)
