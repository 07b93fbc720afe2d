"""Upkeep of the lake: small files into large ones, partial counts added up, closed days sorted, old files removed.

Nothing here changes an answer. A reader that began before goes on with the old files, which stay on disk
for `delta_table.GRACE_H` hours.
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
"""So many small files in a partition slow every append and every query: each costs about 0.2 ms."""
SMALL_BYTES = delta_table.TARGET_FILE_BYTES // 2


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one compaction did: partitions rewritten, their files before and after."""

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
    """Rewrite every partition that has more than `small_files_max` small files, sorted, a commit each.

    With `closed_before`, only the partitions whose days and months ended before it. The lake's lock is taken for one
    partition at a time. `between` is called after each, the lake free: a service's own loader waits while it compacts,
    so that what is due must be loaded there.

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


def _crowded(listed: Iterable[delta_table.File], small_files_max: int) -> list[str]:
    small = Counter(file.partition for file in listed if file.size < SMALL_BYTES)
    return sorted(partition for partition, files in small.items() if files > small_files_max)


def _rewrite(
    root: Path, database: duckdb.DuckDBPyConnection, spec: delta_table.Spec, partition: str
) -> tuple[int, int]:
    table = delta_table.open_table(root, spec)
    files = delta_table.list_files(table, spec, partition)
    if files:
        with database.cursor() as cursor:
            rows = cursor.sql(_SORTED[spec.name].format(files=engine.rows(spec, files))).to_arrow_reader()
            delta_table.replace_partition(table, spec, partition, rows.cast(spec.schema))
    return len(files), len(delta_table.list_files(table, spec, partition))


def _select(spec: delta_table.Spec) -> str:
    return ", ".join(spec.schema.names)


_SORTED = {
    "hits": (
        f"SELECT {_select(delta_table.HITS_TABLE)} FROM {{files}} ORDER BY {', '.join(delta_table.HITS_TABLE.order)}"
    ),
    "daily_views": f"{daily_count.add_up_sql('{files}')} ORDER BY {', '.join(delta_table.DAILY_VIEWS_TABLE.order)}",
}


def tidy(hot: sqlite3.Connection, root: Path, wait_s: float) -> None:
    """Shorten both tables' logs, remove the files that nothing refers to any more, and empty the hot log's WAL.

    Staged files that wait for the loader are in no table's log: they are loaded first.
    """
    load(hot, root, wait_s)
    for spec in delta_table.TABLES:
        with durable_writes(hot, root, wait_s):
            delta_table.vacuum(delta_table.open_table(root, spec))
    wal.empty(hot)
