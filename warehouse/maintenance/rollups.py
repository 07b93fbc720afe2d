"""Write the rollups of the months that need one, and remove those that no reader uses any more.

The files of a version of `hits` never change, so a rollup is written without the lake's lock. The rollups have a lock
of their own: one process at a time writes them.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain

import duckdb

from warehouse.batch import driver, steps
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.hotlog import disk_space
from warehouse.lake import delta_table, roots
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import Root
from warehouse.query.engine import Share
from warehouse.rollups import catalog, ranked, writer
from warehouse.rollups.catalog import ChosenRollups
from warehouse.rollups.writer import OnPoint, Prepared

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

IsDue = Callable[[ChosenRollups, Sequence[File]], bool]
"""Function that returns whether files need a new rollup, by their coverage."""
Choose = Callable[[Sequence[File]], Sequence[File]]
"""Function that returns some of the files of a month."""
OnMonth = Callable[[int, int], None]
"""Function that is called after each month, with the number of months done and the total."""


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a call: rollups written, and the rows of `hits` that they count."""

    rollups: int
    rows: int


def write_due(
    root: Root,
    database: duckdb.DuckDBPyConnection,
    today: date,
    wait_s: float,
    settle_s: float = SETTLE_S,
    on_point: OnPoint = lambda point: None,
    on_month: OnMonth = lambda done, total: None,
) -> Written:
    """Write a rollup for each month whose rollup counts too little of it, and one for today: see `is_due`.

    The rollup of the present month ends yesterday, so that the month is not written again for each part of today.
    `settle_s` replaces SETTLE_S. `on_point` is called between the queries of a rollup, without the lake's lock.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
    """
    day = today.isoformat()
    is_chosen = partial(is_due, current_month=day[:7], settled_s=time.time() - settle_s)

    def until_yesterday(files: Sequence[File]) -> Sequence[File]:
        return [file for file in files if file.partition < day or file.partition[:7] != day[:7]]

    def of_today(files: Sequence[File]) -> Sequence[File]:
        return [file for file in files if file.partition == day]

    def is_today_due(chosen: ChosenRollups, files: Sequence[File]) -> bool:
        rows = sum(file.rows for file in files)
        return sum(file.rows for file in chosen.uncovered) >= max(UNCOVERED_ROWS_MIN, UNCOVERED_SHARE * rows)

    written = list[Written]()

    def write(is_chosen: IsDue, choose_files: Choose, on_month: OnMonth = lambda done, total: None) -> None:
        written.append(_write(root, database, wait_s, is_chosen, on_point, on_month, choose_files))

    steps.run_all(
        [
            ("the rollups of months", partial(write, is_chosen, until_yesterday, on_month)),
            ("the rollup of today", partial(write, is_today_due, of_today)),
            ("the ranking of paths", partial(_rank, root, database, wait_s)),
        ]
    )
    return Written(sum(each.rollups for each in written), sum(each.rows for each in written))


def write_stale(root: Root, database: duckdb.DuckDBPyConnection, wait_s: float) -> Written:
    """Write a rollup for each month whose rollup counts files that are not in `hits` any more, after a deletion.

    The old rollup still counts deleted rows. `vacuum` removes it GRACE_H hours later, like the files of `hits`.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
    """

    def is_stale(chosen: ChosenRollups, files: Sequence[File]) -> bool:
        has_whole = any(part.is_whole for part in chosen.parts)
        return not has_whole and any(catalog.list_rollups(root, files[0].partition[:7]))

    written = _write(root, database, wait_s, is_stale)
    _rank(root, database, wait_s)
    return written


def rebuild(
    root: Root,
    share: Share,
    wait_s: float,
    on_month: OnMonth = lambda done, total: None,
    executor: Executor = THIS_PROCESS,
) -> Written:
    """Write a rollup for each month from `hits` alone, and take all others out of use.

    The executor prepares the months, and this process commits them under the lock. The others are written if one fails.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
        WorkerDied: processes died with the same month again and again.
    """
    done: list[Written] = []

    def commit(task: Month, prepared: Prepared | None) -> None:
        with lock(root, wait_s):
            done.append(Written(int(prepared is not None), _replace(root, task.month, prepared)))
        on_month(len(done), len(months))

    def rank() -> None:
        with share.database() as database:
            _rank(root, database, wait_s)

    months = [Month(root, month, share) for month in sorted({*files_by_month(root), *catalog.list_months(root)})]
    commits = driver.commits(executor, prepare, months, commit)
    steps.run_all(chain(commits, [("the ranking of paths", rank)]))
    return Written(sum(each.rollups for each in done), sum(each.rows for each in done))


@dataclass(frozen=True, slots=True)
class Month:
    """A month (YYYY-MM) whose rollup is prepared."""

    root: Root
    month: str
    share: Share

    def __str__(self) -> str:
        return f"the rollup of {self.month}"


def prepare(task: Month) -> Prepared | None:
    """Write the files of a rollup of a month from the newest version of `hits`; return None if it has no hits."""
    files = files_by_month(task.root).get(task.month, ())
    if not files:
        return None
    with task.share.database() as database:
        return writer.prepare(task.root, database, task.month, files, is_copied=False)


def _replace(root: Root, month: str, prepared: Prepared | None) -> int:
    """Commit a rollup, take all others of its month out of use, and return the number of rows that it counts."""
    new = writer.commit(root, prepared) if prepared else None
    for folder in catalog.list_folders(root, month):
        if new is None or folder != new.folder:
            _take_out_of_use(folder)
    catalog.change_written_key(root)
    return new.rows if new else 0


def is_due(chosen: ChosenRollups, files: Sequence[File], *, current_month: str, settled_s: float) -> bool:
    """Return whether a month needs a new rollup. `chosen` is the coverage of the month's `files`.

    It needs one if many rows are uncovered; if rollups of single days are to be merged; or if files that were last
    written before `settled_s` (seconds since 1970) are uncovered, in a month that has ended or on a day that the rollup
    counts and that was replaced since.
    """
    if len(chosen.parts) > (PARTS_MAX if files[0].partition[:7] >= current_month else 1):
        return True
    uncovered_rows = sum(file.rows for file in chosen.uncovered)
    if uncovered_rows >= max(UNCOVERED_ROWS_MIN, UNCOVERED_SHARE * sum(file.rows for file in files)):
        return True
    if any(file.partition[:7] < current_month and _written_s(file) <= settled_s for file in chosen.uncovered):
        return True
    counted = {day for part in chosen.parts for day in part.days}
    replaced = {day for part in chosen.parts for day in part.rollup.files.keys() - counted}
    return any(
        all(_written_s(file) <= settled_s for file in chosen.uncovered if file.partition == day) for day in replaced
    )


def _write(
    root: Root,
    database: duckdb.DuckDBPyConnection,
    wait_s: float,
    is_chosen: IsDue,
    on_point: OnPoint = lambda point: None,
    on_month: OnMonth = lambda done, total: None,
    choose_files: Choose = lambda files: files,
) -> Written:
    """Write a rollup for each month for which `is_chosen` is true, one month at a time under the lock.

    `choose_files` returns the files of a month that the rollup counts. The other months are written if one fails, such
    as for a damaged file: see `steps.run_all`.
    """
    done = Written(0, 0)

    def write(number: int, month: str) -> None:
        nonlocal done
        with lock(root, wait_s):
            files = choose_files(files_by_month(root).get(month, []))
            if files and is_chosen(catalog.choose(root, files), files):  # still, after the wait for the lock
                rollup = writer.write(root, database, month, files, on_point)
                done = Written(done.rollups + 1, done.rows + rollup.rows)
        on_month(number, len(months))

    months = [
        month
        for month, of_month in sorted(files_by_month(root).items())
        if (files := choose_files(of_month))
        and is_chosen(catalog.choose(root, files), files)
        and _has_space(root, files)
    ]
    numbered = enumerate(months, start=1)
    steps.run_all((f"the rollup of {month}", partial(write, number, month)) for number, month in numbered)
    return done


def _rank(root: Root, database: duckdb.DuckDBPyConnection, wait_s: float) -> None:
    """Write the ranking of the rollups that readers use now."""
    if catalog.list_months(root):
        with lock(root, wait_s):
            files = chain.from_iterable(files_by_month(root).values())
            ranked.write(root, database, catalog.choose(root, [*files]).parts)


def _has_space(root: Root, files: Sequence[File]) -> bool:
    """Return whether the disk has space for a rollup and its intermediate results, beside new hits."""
    return disk_space.free_bytes(root.local) >= disk_space.MARGIN_BYTES + SPACE_SHARE * sum(file.size for file in files)


@contextmanager
def lock(root: Root, wait_s: float) -> Iterator[None]:
    folder = root / catalog.FOLDER
    folder.make_folder()
    with write_lock(folder.local, wait_s):
        yield


def files_by_month(root: Root) -> Mapping[str, Sequence[File]]:
    """Return the files of the newest version of `hits`."""
    by_month: defaultdict[str, list[File]] = defaultdict(list)
    for file in delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE):
        by_month[file.partition[:7]].append(file)
    return by_month


def _written_s(file: File) -> float:
    """Return the time at which a file was written, in seconds since 1970; 0 if the file is missing."""
    return roots.modified_s(file.path)


def _take_out_of_use(folder: Root) -> None:
    """Make a rollup garbage, so that no reader chooses it from now on."""
    (folder / catalog.COVERAGE).unlink(missing_ok=True)
    folder.sync()
