"""Reclassify stored hits in workers of `warehouse.batch`, a day each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.batch import items
from warehouse.batch.items import OpenWorkers
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, rewriting
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance.catch_up import catch_up
from warehouse.maintenance.load import load
from warehouse.maintenance.reclassification.reclassify import OnDay, Reclassified, Rules, Run, list_day, rewrite_day
from warehouse.query import engine


def reclassify_in_workers(
    hot: HotConnection,
    root: Root,
    database: duckdb.DuckDBPyConnection,
    rules: Rules,
    wait_s: float,
    open_workers: OpenWorkers,
    on_day: OnDay = lambda done, total: None,
) -> Reclassified:
    """Reclassify stored hits in workers, a day each: see `reclassify`.

    A worker writes the new files of a day, without the lock. This process commits them if the day still has the files
    that the worker read; otherwise it reclassifies the day itself. The workers spill into the folder of `database`.

    Raises:
        LakeBusy, HotLogBehind: see `reclassify`.
        WorkerDied: workers died with the same day again and again.
    """
    load(hot, root, wait_s)
    with database.cursor() as cursor:
        run = Run(cursor, root, rules)
        outdated_days = run.outdated_days()
        days: dict[str, Day] = {}
        done = hits = 0
        user_agents: set[int] = set()
        with open_workers(len(outdated_days)) as workers:
            new_day = partial(Day, root, rules, engine.spill_folder(database), len(workers))
            tasks = _tasks(root, outdated_days, new_day, days)
            results = items.run(workers, reclassify_day, tasks, is_ordered=False)
            for number, (day, new) in enumerate(results, start=1):
                with durable_writes(hot, root, wait_s):
                    catch_up(hot, root)
                    count = rewriting.retry_commit(partial(_replace, root, run, days.pop(day), new))
                pause_for_waiters()
                user_agents.update(new.user_agents)
                done, hits = done + (count > 0), hits + count
                on_day(number, len(outdated_days))
        return Reclassified(done, hits, len(user_agents), run.diff())


@dataclass(frozen=True, slots=True)
class Day:
    """A day with its files, for one of `workers` workers. A worker makes a folder in `spill` for larger sorts."""

    root: Root
    rules: Rules
    spill: Path
    workers: int
    day: str
    files: Sequence[File]


@dataclass(frozen=True, slots=True)
class NewDay:
    """The reclassified files of a day, which no commit names yet: number of outdated hits, hashes of the user agents,
    and the diff of `DiffTable.take_changed`."""

    files: tuple[File, ...]
    outdated: int
    user_agents: list[int]
    changed: pa.Table


def _tasks(
    root: Root, outdated_days: Sequence[str], new_day: Callable[[str, Sequence[File]], Day], days: dict[str, Day]
) -> Iterator[tuple[str, Day]]:
    """Yield the days that still have files, and add each to `days`.

    The files of a day are listed when the day is taken: another process may compact the day while it waits for a
    worker, and delete its old files `delta_table.GRACE_H` hours later.
    """
    for day in outdated_days:
        if files := list_day(root, day):
            days[day] = new_day(day, files)
            yield day, days[day]


def reclassify_day(day: Day) -> NewDay:
    """Write the hits of a day under the current rules to new files."""
    with engine.share(day.spill, day.workers) as database, database.cursor() as cursor:
        run = Run(cursor, day.root, day.rules)
        outdated = run.count_outdated(day.files)
        run.classify(day.files)
        files = rewriting.write_partition(day.root, HITS_TABLE, day.day, run.reclassified(day.files))
        return NewDay(files, outdated, run.hashes(), run.changed(day.files))


def _replace(root: Root, run: Run, day: Day, new: NewDay) -> int:
    """Commit the new files of a day, and return the number of hits that were outdated."""
    table = delta_table.open_table(root, HITS_TABLE)
    current = delta_table.list_files(table, HITS_TABLE, day.day)
    renewed = rewriting.renewed(new.files)
    if set(current) != set(day.files) or renewed is None:
        files = rewrite_day(root, run, day.day)
        run.add(files)
        return run.count_outdated(files)
    rewriting.replace_files(table, HITS_TABLE, current, renewed)
    run.add_changed(new.changed)
    return new.outdated
