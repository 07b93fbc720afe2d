"""Write the rollups of the months that need one, and the ranking of paths.

The files of a version of `hits` never change, so a rollup is written without the lake's lock. The rollups have a lock
of their own: one process at a time writes or removes them.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain

from warehouse.batch import actions, driver
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.hotlog import disk_space
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.lake_lock import ROLLUPS, lake_lock
from warehouse.lake import delta_table, roots
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.query.engine import Share
from warehouse.rollups import catalog, ranked, writer
from warehouse.rollups.catalog import ChosenRollups, Part
from warehouse.rollups.cubes import Beside
from warehouse.rollups.writer import OnPoint, Prepared, no_point
from warehouse.tables import HITS_TABLE, VISITOR_TABLES, Spec

UNCOVERED_ROWS_MIN, UNCOVERED_SHARE = 100_000, 0.1
"""Number of rows of a month that no rollup counts, and their share of the month's rows: with both, a rollup is due."""
PARTS_MAX = 3
"""Number of rollups of the present month, beside today's: the month so far and days that ended since."""
SETTLE_S = 600
"""Age of uncovered files at which a rollup is due for fewer rows, in seconds, in a month that has ended and for days
whose files a compaction or a deletion replaced. While files are younger, more are likely to follow."""
SPACE_SHARE = 2
"""Free space that writing a rollup needs, as a multiple of the size of the month's files. Without it the month is
skipped: a rollup only saves time."""

Files = Sequence[File]
Choose = Callable[[str, Files], Sequence[Files]]
"""Function that returns for a month (YYYY-MM) and its files the files of each rollup to write."""
OnMonth = Callable[[int, int], None]
"""Function that is called after each month, with the number of months done and the total."""


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a call: rollups written, and the rows of `hits` that they count."""

    rollups: int
    rows: int


def write_due(  # noqa: PLR0913  # where, what, and how
    hot: HotConnection,
    root: Root,
    share: Share,
    today: date,
    wait_s: float,
    *,
    settle_s: float = SETTLE_S,
    on_point: OnPoint = no_point,
    on_month: OnMonth = lambda done, total: None,
    executor: Executor = THIS_PROCESS,
) -> Written:
    """Write a rollup for each month whose rollup counts too little of it, and one for today: see `is_due`.

    `settle_s` replaces SETTLE_S. `on_point` is called between the queries of a rollup in this process.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
        WorkerDied: processes died with the same month again and again.
    """
    settled_s = time.time() - settle_s

    def due(month: str, files: Files) -> Sequence[Files]:
        chosen, beside = catalog.choose(root, files), [*chain(*files_beside(root, month).values())]
        return [
            each
            for each in until_today(files, today)
            if is_due(chosen, each, str(today), settled_s, beside) and _has_space(root, each)
        ]

    with lake_lock(hot, root, wait_s, ROLLUPS):
        return _write(root, share, executor, due, on_month, on_point)


def write_stale(hot: HotConnection, root: Root, share: Share, today: date, wait_s: float) -> Written:
    """Write the rollups of each month with a day whose rollup counts files that are not in `hits` any more.

    The old rollup still counts deleted rows. `upkeep` removes it GRACE_H hours later, like the files of `hits`.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
    """

    def stale(month: str, files: Files) -> Sequence[Files]:
        parts = catalog.choose(root, files).parts
        of_rollups = {day for rollup in catalog.list_rollups(root, month) for day in rollup.files}
        days = of_rollups & {file.partition for file in files} - _counted_days(parts)
        return until_today(files, today) if days or _replaced_days(parts, parts) else ()

    with lake_lock(hot, root, wait_s, ROLLUPS):
        return _write(root, share, THIS_PROCESS, stale)


def rebuild(
    hot: HotConnection,
    root: Root,
    share: Share,
    today: date,
    wait_s: float,
    on_month: OnMonth = lambda done, total: None,
    executor: Executor = THIS_PROCESS,
) -> Written:
    """Write the rollups of each month from `hits` alone, and take all others out of use.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
        WorkerDied: processes died with the same month again and again.
    """
    with lake_lock(hot, root, wait_s, ROLLUPS):
        months = catalog.list_months(root)
        return _write(
            root, share, executor, lambda _, files: until_today(files, today), on_month, replaced_months=months
        )


@dataclass(frozen=True, slots=True)
class Month:
    """A month (YYYY-MM) with the files of rollups that are written together, and its files of VISITOR_TABLES.

    `is_copied`: see `writer.prepare`.
    """

    root: Root
    share: Share
    month: str
    rollups: Sequence[Files]
    beside: Beside
    is_copied: bool

    def __str__(self) -> str:
        days = {file.partition for files in self.rollups for file in files}
        return f"the rollup of {days.pop() if len(days) == 1 else self.month}"


def prepare(task: Month, on_point: OnPoint = no_point) -> list[Prepared]:
    """Write the files of the rollups of a month, which no reader uses before `writer.commit`."""
    with task.share.database() as database:
        return [
            writer.prepare(
                task.root, database, task.month, files, on_point, beside=task.beside, is_copied=task.is_copied
            )
            for files in task.rollups
        ]


def _write(
    root: Root,
    share: Share,
    executor: Executor,
    choose: Choose,
    on_month: OnMonth = lambda done, total: None,
    on_point: OnPoint = no_point,
    replaced_months: Sequence[str] | None = None,
) -> Written:
    """Write the rollups that `choose` returns, and the ranking of paths. The caller has the lock.

    The executor prepares the rollups, and this process commits them. The others are written if today, the month so far
    or another month fails, such as for a damaged file: see `actions.run_all`. With `replaced_months`, all older rollups
    of these months and of the written ones are taken out of use.
    """
    done = list[int]()

    def tasks() -> Iterator[Month]:
        for month in months:  # its files are listed when it is taken: others may compact and delete them while it waits
            parts = choose(month, files_by_month(root).get(month, ()))
            beside = files_beside(root, month)
            for each in [parts] if replaced_months is not None else [[part] for part in parts]:
                yield Month(root, share, month, each, beside, replaced_months is None)

    def commit(task: Month, prepared: Sequence[Prepared]) -> None:
        new = [writer.commit(root, each, on_point) for each in prepared]
        if replaced_months is not None:
            for folder in set(catalog.list_folders(root, task.month)) - {each.folder for each in new}:
                catalog.take_out_of_use(folder)
            catalog.change_written_key(root)
        done.extend(each.rows for each in new)

    chosen = (month for month, files in files_by_month(root).items() if choose(month, files))
    months = sorted({*chosen, *(replaced_months or ())}, reverse=True)  # most readers look at the newest
    function = partial(prepare, on_point=on_point)
    total = len(months)
    commits = driver.commits(executor, function, tasks(), commit, lambda number: on_month(min(number, total), total))
    actions.run_all(chain(commits, [("the ranking of paths", partial(_rank, root, share))]))
    return Written(len(done), sum(done))


def until_today(files: Files, today: date) -> Sequence[Files]:
    """Return the files of a month before today, and the files of today: each list, if not empty, has its own rollup.

    The month so far is therefore not written again for each part of today.
    """
    of_today = [file for file in files if file.partition == today.isoformat()]
    return [each for each in ([file for file in files if file.partition != today.isoformat()], of_today) if each]


def is_due(chosen: ChosenRollups, files: Files, today: str, settled_s: float, beside: Files = ()) -> bool:
    """Return whether files of a month need a new rollup: see `until_today`. `chosen` is the coverage of the month.

    They need one if many rows are uncovered. Files before today also need one if rollups of single days are to be
    merged; if files that were last written before `settled_s` (seconds since 1970) are uncovered, in a month that has
    ended or on a day that a rollup counts and that was replaced since; or if such files are `beside` a day that was
    computed from others: see VISITOR_TABLES.
    """
    days = {file.partition for file in files}
    uncovered = [file for file in chosen.uncovered if file.partition in days]
    if sum(file.rows for file in uncovered) >= max(
        UNCOVERED_ROWS_MIN, UNCOVERED_SHARE * sum(each.rows for each in files)
    ):
        return True
    if today in days:
        return False
    has_ended = files[0].partition[:7] < today[:7]
    parts = [part for part in chosen.parts if part.rollup.files.keys() != {today}]
    if len(parts) > (1 if has_ended else PARTS_MAX):
        return True
    if has_ended and any(_written_s(file) <= settled_s for file in uncovered):
        return True
    replaced, stale = _replaced_days(parts, chosen.parts), catalog.stale_days(parts, beside)
    changed: list[tuple[str, Files]] = [(day, uncovered) for day in replaced]
    changed += [(day, beside) for day in stale - {file.partition for file in uncovered}]
    return any(all(_written_s(file) <= settled_s for file in new if file.partition == day) for day, new in changed)


def _replaced_days(parts: Sequence[Part], counting: Sequence[Part]) -> set[str]:
    """Return the days of the rollups of `parts` that no part of `counting` counts: their files were replaced."""
    return {day for part in parts for day in part.rollup.files} - _counted_days(counting)


def _counted_days(parts: Sequence[Part]) -> set[str]:
    return {day for part in parts for day in part.days}


def _rank(root: Root, share: Share) -> None:
    """Write the ranking of the rollups that readers use now."""
    if catalog.list_months(root):
        files = chain.from_iterable(files_by_month(root).values())
        with share.database() as database:
            ranked.write(root, database, catalog.choose(root, [*files]).parts)


def _has_space(root: Root, files: Files) -> bool:
    """Return whether the disk has space for a rollup and its intermediate results, beside new hits."""
    return disk_space.free_bytes(root.local) >= disk_space.MARGIN_BYTES + SPACE_SHARE * sum(file.size for file in files)


def files_by_month(root: Root, spec: Spec = HITS_TABLE) -> dict[str, list[File]]:
    """Return the files of the newest version of a table by date. A table that does not exist yet has none."""
    by_month: defaultdict[str, list[File]] = defaultdict(list)
    if spec in delta_table.specs(root):
        for file in delta_table.list_files(delta_table.open_table(root, spec), spec):
            by_month[file.partition[:7]].append(file)
    return by_month


def files_beside(root: Root, month: str) -> Beside:
    """Return the files of a month in the newest version of each of VISITOR_TABLES."""
    return {spec: files_by_month(root, spec).get(month, []) for spec in VISITOR_TABLES}


def _written_s(file: File) -> float:
    """Return the time at which a file was written, in seconds since 1970; 0 if the file is missing."""
    return roots.modified_s(file.path)
