"""Compact and vacuum the lake: merge small files, add up partial counts, sort closed days, and remove old files.

No query result changes. A reader that opened the old files can read them for another `delta_table.GRACE_H` hours.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb

from warehouse import daily_count
from warehouse.hotlog import wal
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table
from warehouse.lake.lock import pause_for_waiters
from warehouse.maintenance.load import load
from warehouse.query import engine

CROWDED_FILES = 16
"""Small files of a partition above which it is due for compaction. Each adds about 0.2 ms to an append or a query."""
SMALL_BYTES = delta_table.TARGET_FILE_BYTES // 2
"""Size below which a file is small, in bytes."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """Result of a compaction: partitions rewritten, and their files before and after."""

    partitions: int
    files_before: int
    files_after: int


def compact(
    hot: sqlite3.Connection,
    root: Path,
    database: duckdb.DuckDBPyConnection,
    small_files_max: int,
    wait_s: float,
    closed_before: date | None = None,
    between: Callable[[], object] = lambda: None,
) -> Compacted:
    """Rewrite and sort each partition that has more than `small_files_max` small files, one commit a partition.

    With `closed_before`, only partitions whose day or month ended before that date are rewritten. The lake is locked
    for one partition at a time. `between` is called after each partition, without the lock: a service, which does not
    load while it compacts, runs the loads that are due in `between`.

    Raises:
        LakeBusy, DataIncomplete: see `durability.durable_writes`.
    """
    done = Compacted(0, 0, 0)
    for spec in delta_table.TABLES:
        for partition in _crowded(delta_table.list_files(delta_table.open_table(root, spec), spec), small_files_max):
            if closed_before is not None and partition >= closed_before.isoformat()[: len(partition)]:
                continue
            with durable_writes(hot, root, wait_s):
                before, after = _rewrite(root, database, spec, partition)
            pause_for_waiters()
            between()
            done = Compacted(done.partitions + 1, done.files_before + before, done.files_after + after)
    return done


def vacuum(hot: sqlite3.Connection, root: Path, wait_s: float) -> None:
    """Truncate the tables' logs, remove files that no reader needs any more, and empty the hot log's WAL.

    The hot log is loaded first, because staged files that wait for the loader are in no table's log.
    """
    load(hot, root, wait_s)
    for spec in delta_table.TABLES:
        with durable_writes(hot, root, wait_s):
            delta_table.vacuum(delta_table.open_table(root, spec))
    wal.empty(hot)


def _crowded(files: Iterable[delta_table.File], small_files_max: int) -> list[str]:
    small = Counter(file.partition for file in files if file.size < SMALL_BYTES)
    return sorted(partition for partition, count in small.items() if count > small_files_max)


def _rewrite(
    root: Path, database: duckdb.DuckDBPyConnection, spec: delta_table.Spec, partition: str
) -> tuple[int, int]:
    """Rewrite a partition, and return the number of its files before and after."""
    table = delta_table.open_table(root, spec)
    files = delta_table.list_files(table, spec, partition)
    if files:
        with database.cursor() as cursor:
            rows = cursor.sql(_SORTED[spec.name].format(files=engine.rows(spec, files))).to_arrow_reader()
            delta_table.replace_partition(table, spec, partition, rows.cast(spec.schema))
    return len(files), len(delta_table.list_files(table, spec, partition))


_SORTED = {
    "hits": (
        f"SELECT {', '.join(delta_table.HITS_TABLE.schema.names)} FROM {{files}} "
        f"ORDER BY {', '.join(delta_table.HITS_TABLE.order)}"
    ),
    "daily_views": f"{daily_count.add_up_sql('{files}')} ORDER BY {', '.join(delta_table.DAILY_VIEWS_TABLE.order)}",
    "daily_errors": (
        f"SELECT {', '.join(delta_table.DAILY_ERRORS_TABLE.schema.names)} "
        f"FROM ({daily_count.add_up_errors_sql('{files}')}) "
        f"ORDER BY {', '.join(delta_table.DAILY_ERRORS_TABLE.order)}"
    ),
}
