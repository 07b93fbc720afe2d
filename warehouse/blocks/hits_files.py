"""Counts and the last hit of a project in each file of `hits`. A file never changes: results are cached by its path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.cumulative import Array
from warehouse.blocks.paths import PathIds
from warehouse.blocks.sums import Rows
from warehouse.encoding import decoded, encoded
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import engine
from warehouse.query.time_range import TimeRange
from warehouse.rollups.schema import SOURCES, TRAFFIC

ALWAYS = TimeRange()


@dataclass(frozen=True, slots=True)
class Latest:
    """Time of the last hit of a project in a file, in microseconds since 1970; None without a hit."""

    time_us: int | None
    nbytes: int = 0


_COUNT = """
SELECT filename, path, source,
       count(*) FILTER (traffic = 'human') AS human,
       count(*) FILTER (traffic = 'ai') AS ai,
       count(*) FILTER (traffic = 'bot') AS bot
FROM {files}
WHERE project_id = $project AND ts >= $start AND ts < $end AND {condition}
GROUP BY filename, path, source
"""
_LATEST = """
SELECT filename, epoch_us(max(ts)) AS latest_us FROM {files} WHERE project_id = $project GROUP BY filename
"""


def count(
    database: duckdb.DuckDBPyConnection,
    files: Sequence[File],
    project: str,
    paths: PathIds,
    condition: tuple[str, Mapping[str, object]] = ("true", {}),
    time_range: TimeRange = ALWAYS,
) -> dict[str, Rows]:
    """Return the views in each file, by the path of the file. Paths of pages that have no id are added to `paths`.

    `condition` is an SQL condition of the hits that are counted, and the values that the condition binds.
    """
    times = {"start": time_range.start, "end": time_range.end}
    sql, values = condition
    counted = _run(database, _COUNT.replace("{condition}", sql), files, {"project": project, **times, **values})
    path_ids = ids(counted["path"], paths)
    sources = pc.index_in(counted["source"], value_set=pa.array(SOURCES)).to_numpy().astype(np.uint8)
    human, ai, bot = (counted[traffic].to_numpy().astype(np.uint32) for traffic in TRAFFIC)
    return {
        name: Rows(path_ids[rows], sources[rows], (human[rows], ai[rows], bot[rows]))
        for name, rows in _rows_by_file(counted["filename"], files).items()
    }


def convert(hits: pa.Table, paths: PathIds) -> Rows:
    """Return the views of rows of `hits` in memory. Paths that have no id are added to `paths`."""
    sources, traffic = (decoded(encoded(hits[name])) for name in ("source", "traffic"))
    kinds = pc.index_in(traffic, value_set=pa.array(TRAFFIC)).to_numpy()
    human, ai, bot = ((kinds == kind).astype(np.uint32) for kind in range(len(TRAFFIC)))
    codes = pc.index_in(sources, value_set=pa.array(SOURCES)).to_numpy().astype(np.uint8)
    return Rows(ids(hits["path"], paths), codes, (human, ai, bot))


def latest(database: duckdb.DuckDBPyConnection, files: Sequence[File], project: str) -> dict[str, Latest]:
    """Return the time of the last hit in each file, by the path of the file."""
    read = _run(database, _LATEST, files, {"project": project})
    times = dict(zip(read["filename"].to_pylist(), read["latest_us"].to_pylist(), strict=True))
    return {file.path: Latest(times.get(file.path)) for file in files}


def ids(paths_column: pa.ChunkedArray, paths: PathIds) -> Array:
    """Return the ids of the paths of a column. Those that have no id are added to `paths`."""
    column = encoded(paths_column)
    path_ids: Array = paths.add(column.dictionary)[column.indices.to_numpy()]
    return path_ids


def _run(
    database: duckdb.DuckDBPyConnection, sql: str, files: Sequence[File], values: Mapping[str, object]
) -> pa.Table:
    with engine.reader(database) as cursor:
        rows = engine.rows(HITS_TABLE, files, columns="*, filename")
        return cursor.sql(sql.format(files=rows), params=values).to_arrow_table()


def _rows_by_file(names: pa.ChunkedArray, files: Sequence[File]) -> dict[str, Array]:
    """Return the indices of the rows of each file: an empty array for a file without hits of the project."""
    numbers = pc.index_in(names, value_set=pa.array([file.path for file in files])).to_numpy()
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(1, len(files)))
    return {file.path: rows for file, rows in zip(files, np.split(order, bounds), strict=True)}
