"""The Parquet files of a table, for readers that know nothing of Delta."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warehouse.lake.delta_table import File
from warehouse.query.snapshot import Reader

COUNTED = ("project_id",)
"""Hot rows are only counted: one column of them is enough."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files that are one table at one moment, and the rows of that moment that they lack.

    `waiting` is the number of hits in the hot log that are in no file. `stale_days` (YYYY-MM-DD) are days of
    `daily_views` whose counts are being rewritten; `hits` never has one.
    """

    files: tuple[File, ...]
    waiting: int
    stale_days: tuple[str, ...]


def of(hot: Path, root: Path, table: str) -> TableFiles:
    """Return the files of the table `hits` or `daily_views`.

    Raises:
        DataIncomplete: see `Reader`.
    """
    with closing(Reader(hot, root, COUNTED)) as reader:
        snapshot = reader.take()
    if table == "hits":
        return TableFiles(snapshot.hits.files, snapshot.hits_hot.num_rows, ())
    stale_days = tuple(sorted(snapshot.dirty_days))
    return TableFiles(snapshot.daily_views.files, snapshot.daily_views_hot.num_rows, stale_days)
