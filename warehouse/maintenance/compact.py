"""Compact and vacuum the lake: merge small files, add up partial counts, sort closed days, and remove old files.

No query result changes. A reader that opened the old files can read them for another `delta_table.GRACE_H` hours.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import accumulate

from warehouse.batch import actions, driver
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.hotlog import wal
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.integrity.lake_lock import COMPACTION, lake_lock
from warehouse.lake import delta_table, rewriting, row_groups
from warehouse.lake.delta_table import File
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance.load import load
from warehouse.maintenance.sorting import write_sorted
from warehouse.query import result_cache
from warehouse.query.engine import Share
from warehouse.tables import TABLES, Spec

CROWDED_FILES = 16
"""Small files of a partition above which it is due for compaction. Each adds about 0.2 ms to an append or a query."""
SMALL_BYTES = delta_table.TARGET_FILE_BYTES // 2
"""Size below which a file is small, in bytes."""
GROWTH = 4
"""Least ratio of the rows that `tier` merges to the rows of each of their files."""

Choice = Callable[[Sequence[File]], Sequence[File]]
"""Function that returns which files of a partition are merged; none if the partition is not due."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """Result of a compaction: partitions rewritten, and their files before and after."""

    partitions: int
    files_before: int
    files_after: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Files of a partition that are merged."""

    root: Root
    share: Share
    spec: Spec
    partition: str
    files: tuple[File, ...]

    def __str__(self) -> str:
        return f"{self.spec.name} of {self.partition}"


def whole(files: Sequence[File], small_files_max: int = 1) -> Sequence[File]:
    """Return all files of a partition that has more than `small_files_max` small ones, or a large row group.

    Older releases wrote large row groups.
    """
    is_crowded = sum(file.size < SMALL_BYTES for file in files) > small_files_max
    return files if is_crowded or any(row_groups.has_large(file.path) for file in files) else ()


def ended(before: date, files: Sequence[File]) -> Sequence[File]:
    """Return `whole` for a partition whose day or month ended before a date."""
    partition = files[0].partition
    return whole(files) if partition < before.isoformat()[: len(partition)] else ()


def tier(files: Sequence[File]) -> Sequence[File]:
    """Return the smallest files of a partition that has more than CROWDED_FILES small ones, or a large row group.

    This is tiered compaction: a file is merged only with so many smaller ones that all of them have GROWTH times its
    rows. The number of times that a hit is rewritten is therefore logarithmic in the hits of its day. The new file of
    `requests` may have fewer rows, because the counts of a key are added up to one row: it is merged again sooner.
    """
    small = sorted((file for file in files if file.size < SMALL_BYTES), key=lambda file: (file.rows, file.path))
    if len(small) <= CROWDED_FILES:
        return whole(files, len(files))
    sums = accumulate(file.rows for file in small)
    return small[: max((n for n, rows in enumerate(sums, start=1) if rows >= GROWTH * small[n - 1].rows), default=0)]


def compact(  # noqa: PLR0913  # where, what, and how
    hot: HotConnection,
    root: Root,
    share: Share,
    wait_s: float,
    choose: Choice = whole,
    *,
    executor: Executor = THIS_PROCESS,
    between: Callable[[], object] = lambda: None,
    turn_wait_s: float = 0,
) -> Compacted:
    """Merge and sort the files of each partition that `choose` returns, one commit a partition.

    One process compacts at a time, and another waits for its turn for `turn_wait_s` seconds. The executor writes the
    new files, without the lake's lock, so that loads and deletions run meanwhile. This process commits them, unless
    one of the merged files was replaced meanwhile. `between` is called after each commit: a service, which does not
    load while it compacts, runs the loads that are due in `between`.

    The others are merged if one fails, such as for a damaged file: see `actions.run_all`. Each error has a note that
    names its partition.

    Raises:
        LakeBusy: another process compacts; or see `durability.durable_writes`.
        DataIncomplete: see `durability.durable_writes`.
        WorkerDied: processes died with the same partition again and again.
        ExceptionGroup: several partitions failed.
    """
    done: list[tuple[int, int]] = []

    def commit(merge: Merge, new: Sequence[File]) -> None:
        with durable_writes(hot, root, wait_s):
            if rewriting.replace_live(root, merge.spec, merge.files, new):
                done.append((len(merge.files), len(new)))
        pause_for_waiters()

    commits = driver.commits(executor, write_merged, _merges(root, share, choose), commit)
    with lake_lock(hot, root, turn_wait_s, COMPACTION):
        actions.run_all(step for each in commits for step in (each, ("a load", between)))
    return Compacted(len(done), sum(before for before, _ in done), sum(after for _, after in done))


def _merges(root: Root, share: Share, choose: Choice) -> Iterator[Merge]:
    """Yield the files that are due.

    Those of a partition are listed when it is taken: a deletion may replace them while it waits, and a vacuum deletes
    the replaced files `delta_table.GRACE_H` hours later.
    """
    due = [(spec, name) for spec in TABLES for name, files in _partitions(root, spec) if choose(files)]
    for spec, partition in due:
        files = delta_table.list_files(delta_table.open_table(root, spec), spec, partition)
        if files and (chosen := choose(files)):
            yield Merge(root, share, spec, partition, tuple(chosen))


def _partitions(root: Root, spec: Spec) -> list[tuple[str, list[File]]]:
    by_partition: defaultdict[str, list[File]] = defaultdict(list)
    for file in delta_table.list_files(delta_table.open_table(root, spec), spec):
        by_partition[file.partition].append(file)
    return sorted(by_partition.items())


def write_merged(merge: Merge) -> tuple[File, ...]:
    """Write the sorted rows of files to new files, which no commit names yet, and return the files."""
    result_cache.release_memory()  # that loads have freed: a sort takes 290 MiB
    with merge.share.database() as database:
        return write_sorted(merge.root, database, merge.spec, merge.partition, merge.files)


def vacuum(hot: HotConnection, root: Root, wait_s: float) -> None:
    """Truncate the tables' logs, remove files that no reader needs any more, and empty the hot log's WAL.

    This machine's copies of removed files are deleted too, whichever machine has removed the files.

    The hot log is loaded first, because staged files that wait for the loader are in no table's log. A table that
    fails does not prevent the vacuum of the others: see `actions.run_all`.
    """

    def vacuum_table(spec: Spec) -> None:
        with durable_writes(hot, root, wait_s):
            delta_table.vacuum(delta_table.open_table(root, spec))

    load(hot, root, wait_s)
    tasks: list[actions.Action] = [(spec.name, partial(vacuum_table, spec)) for spec in TABLES]
    tasks += [("the cache", root.evict_deleted), ("the hot log", partial(wal.shrink, hot))]
    actions.run_all(tasks)
