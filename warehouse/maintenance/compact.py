"""Compact and vacuum the lake: merge small files, add up partial counts, sort closed days, and remove old files.

No query result changes. A reader that opened the old files can read them for another `delta_table.GRACE_H` hours.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import duckdb

from warehouse.batch import items, steps
from warehouse.batch.items import OpenWorkers
from warehouse.hotlog import wal
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, rewriting, row_groups
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance.load import load
from warehouse.maintenance.sorting import write_sorted
from warehouse.query import engine, result_cache

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
    hot: HotConnection,
    root: Root,
    database: duckdb.DuckDBPyConnection,
    small_files_max: int,
    wait_s: float,
    closed_before: date | None = None,
    between: Callable[[], object] = lambda: None,
) -> Compacted:
    """Rewrite and sort each partition that has more than `small_files_max` small files, or an older release's large row
    group, one commit a partition.

    With `closed_before`, only partitions whose day or month ended before that date are rewritten. The lake is locked
    for one partition at a time. `between` is called after each partition, without the lock: a service, which does not
    load while it compacts, runs the loads that are due in `between`.

    The others are rewritten if one fails, such as for a damaged file: see `steps.run_all`. Each error has a note that
    names its partition.

    Raises:
        LakeBusy, DataIncomplete: see `durability.durable_writes`.
        ExceptionGroup: several partitions failed.
    """
    done: list[tuple[int, int]] = []

    def rewrite(spec: delta_table.Spec, partition: str) -> None:
        result_cache.release_memory()  # that loads have freed: a sort takes 290 MiB
        with durable_writes(hot, root, wait_s):
            done.append(_rewrite(root, database, spec, partition))
        pause_for_waiters()

    chosen = [
        (spec, partition)
        for spec, partition in _choose(root, small_files_max)
        if closed_before is None or partition < closed_before.isoformat()[: len(partition)]
    ]
    rewritings = ((_name(spec, partition), partial(rewrite, spec, partition)) for spec, partition in chosen)
    steps.run_all(step for rewriting in rewritings for step in (rewriting, ("a load", between)))
    return _compacted(done)


def compact_in_workers(
    hot: HotConnection,
    root: Root,
    database: duckdb.DuckDBPyConnection,
    open_workers: OpenWorkers,
    wait_s: float,
    between: Callable[[], object] = lambda: None,
) -> Compacted:
    """Rewrite and sort each partition that is due with a `small_files_max` of 1, in workers: see `compact`.

    A worker writes the new files, without the lock. This process commits them if the partition still has the files that
    the worker read; otherwise it rewrites the partition itself. The workers spill into the folder of `database`.

    Raises:
        LakeBusy, DataIncomplete: see `durability.durable_writes`.
        WorkerDied: workers died with the same partition again and again.
        ExceptionGroup: several partitions failed.
    """
    done: list[tuple[int, int]] = []
    started: dict[str, Partition] = {}

    def commit(name: str, outcome: "Future[tuple[delta_table.File, ...]]") -> None:
        task, new = started.pop(name), outcome.result()
        with durable_writes(hot, root, wait_s):
            done.append(_replace(root, database, task, new))
        pause_for_waiters()

    chosen = _choose(root, 1)
    with open_workers(len(chosen)) as workers:
        tasks = _tasks(root, chosen, engine.spill_folder(database), len(workers), started)
        outcomes = items.run_each(workers, sort_partition, tasks)
        commits = ((name, partial(commit, name, outcome)) for name, outcome in outcomes)
        steps.run_all(step for each in commits for step in (each, ("a load", between)))
    return _compacted(done)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition with its files, for one of `workers` workers. A worker makes a folder in `spill` for larger sorts."""

    root: Root
    spec: delta_table.Spec
    partition: str
    files: tuple[delta_table.File, ...]
    spill: Path
    workers: int


def _compacted(files: Collection[tuple[int, int]]) -> Compacted:
    """Return the result of a compaction from the numbers of files of each partition before and after."""
    return Compacted(len(files), sum(before for before, _ in files), sum(after for _, after in files))


def _choose(root: Root, small_files_max: int) -> list[tuple[delta_table.Spec, str]]:
    """Return the partitions that have more than `small_files_max` small files, or a large row group."""
    return [
        (spec, partition)
        for spec in delta_table.TABLES
        for partition in _due(delta_table.list_files(delta_table.open_table(root, spec), spec), small_files_max)
    ]


def _name(spec: delta_table.Spec, partition: str) -> str:
    return f"{spec.name} of {partition}"


def _tasks(
    root: Root,
    chosen: Iterable[tuple[delta_table.Spec, str]],
    spill: Path,
    workers: int,
    started: dict[str, Partition],
) -> Iterator[tuple[str, Partition]]:
    """Yield the partitions that are still due, and add each to `started`.

    The files of a partition are listed when it is taken: another process may compact it while it waits for a worker,
    and delete its old files `delta_table.GRACE_H` hours later.
    """
    for spec, partition in chosen:
        files = delta_table.list_files(delta_table.open_table(root, spec), spec, partition)
        if _due(files, 1):
            name = _name(spec, partition)
            started[name] = Partition(root, spec, partition, files, spill, workers)
            yield name, started[name]


def sort_partition(task: Partition) -> tuple[delta_table.File, ...]:
    """Write the sorted rows of a partition to new files, which no commit names yet, and return the files."""
    with engine.share(task.spill, task.workers) as database:
        return write_sorted(task.root, database, task.spec, task.partition, task.files)


def _replace(
    root: Root, database: duckdb.DuckDBPyConnection, task: Partition, new: tuple[delta_table.File, ...]
) -> tuple[int, int]:
    """Commit the new files of a partition, and return the number of its files before and after."""
    table = delta_table.open_table(root, task.spec)
    current = delta_table.list_files(table, task.spec, task.partition)
    renewed = rewriting.renewed(new)
    if set(current) != set(task.files) or renewed is None:
        return _rewrite(root, database, task.spec, task.partition)
    rewriting.replace_files(table, task.spec, current, renewed)
    return len(current), len(renewed)


def vacuum(hot: HotConnection, root: Root, wait_s: float) -> None:
    """Truncate the tables' logs, remove files that no reader needs any more, and empty the hot log's WAL.

    This machine's copies of removed files are deleted too, whichever machine has removed the files.

    The hot log is loaded first, because staged files that wait for the loader are in no table's log. A table that
    fails does not prevent the vacuum of the others: see `steps.run_all`.
    """

    def vacuum_table(spec: delta_table.Spec) -> None:
        with durable_writes(hot, root, wait_s):
            delta_table.vacuum(delta_table.open_table(root, spec))

    load(hot, root, wait_s)
    tasks: list[steps.Step] = [(spec.name, partial(vacuum_table, spec)) for spec in delta_table.TABLES]
    tasks += [("the cache", root.evict_deleted), ("the hot log", partial(wal.shrink, hot))]
    steps.run_all(tasks)


def _due(files: Collection[delta_table.File], small_files_max: int) -> list[str]:
    small = Counter(file.partition for file in files if file.size < SMALL_BYTES)
    large = {file.partition for file in files if row_groups.has_large(file.path)}
    return sorted({partition for partition, count in small.items() if count > small_files_max} | large)


def _rewrite(
    root: Root, database: duckdb.DuckDBPyConnection, spec: delta_table.Spec, partition: str
) -> tuple[int, int]:
    """Rewrite a partition, and return the number of its files before and after."""
    table = delta_table.open_table(root, spec)
    files = delta_table.list_files(table, spec, partition)
    new: tuple[delta_table.File, ...] = ()
    if files:
        with database.cursor() as cursor:
            new = write_sorted(root, cursor, spec, partition, files)
        rewriting.replace_files(table, spec, files, new)
    return len(files), len(new)
