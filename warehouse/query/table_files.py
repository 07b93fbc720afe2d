"""The Parquet files of a table, for tools that do not read Delta."""

from contextlib import closing
from dataclasses import dataclass

from warehouse.hotlog.connection import HotLogPlace
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.query.snapshot import SnapshotReader

HOT_COLUMNS = ("status", "traffic")
"""Columns of the hot rows by which page views and errors are divided. The rows are only counted."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Files of one table in a snapshot, and the number of rows of the snapshot that are only in the hot log."""

    files: tuple[File, ...]
    waiting: int


def read(hot: HotLogPlace, root: Root, table: str) -> TableFiles:
    """Return the files of the table `hits` or `daily_errors`.

    Raises:
        DataIncomplete: see `SnapshotReader.take`.
    """
    with closing(SnapshotReader(hot, root, HOT_COLUMNS)) as reader:
        snapshot = reader.take()
    if table == "hits":
        return TableFiles(snapshot.hits.files, snapshot.hits_hot.num_rows)
    return TableFiles(snapshot.daily_errors.files, snapshot.daily_errors_hot.num_rows)
