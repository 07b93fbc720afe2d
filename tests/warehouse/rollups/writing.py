"""A rollup written by one call."""

from collections.abc import Sequence

import duckdb

from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.rollups import writer
from warehouse.rollups.catalog import Rollup
from warehouse.rollups.cubes import NOTHING, Beside
from warehouse.rollups.writer import OnPoint


def write_rollup(
    root: Root,
    database: duckdb.DuckDBPyConnection,
    month: str,
    files: Sequence[File],
    on_point: OnPoint = lambda point: None,
    beside: Beside = NOTHING,
) -> Rollup:
    return writer.commit(root, writer.prepare(root, database, month, files, on_point, beside=beside), on_point)
