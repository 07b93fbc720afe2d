"""The Parquet files of a table, for tools that do not read Delta."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warehouse.lake.delta_table import File
from warehouse.query.snapshot import SnapshotReader

HOT_COLUMNS = ("project_id",)
"""One column of the hot rows, which are only counted."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Files of one table in a snapshot, and the rows of the snapshot that are not in them.

    `waiting` is the number of hits that are only in the hot log. `stale_days` (YYYY-MM-DD) are the dirty days of
    `daily_views`; `hits` has none.
    """

    files: tuple[File, ...]
    waiting: int
    stale_days: tuple[str, ...]


def read(hot: Path, root: Path, table: str) -> TableFiles:
    """Return the files of the table `hits` or `daily_views`.

    Raises:
        DataIncomplete: see `SnapshotReader.take`.
    """
    with closing(SnapshotReader(hot, root, HOT_COLUMNS)) as reader:
        snapshot = reader.take()
    if table == "hits":
        return TableFiles(snapshot.hits.files, snapshot.hits_hot.num_rows, ())
    stale_days = tuple(sorted(snapshot.dirty_days))
    return TableFiles(snapshot.daily_views.files, snapshot.daily_views_hot.num_rows, stale_days)
