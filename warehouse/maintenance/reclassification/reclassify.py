"""Apply the current rules to stored hits: rewrite `hits` one day at a time.

Only days that have a hit of another ruleset are rewritten. The rows stay in DuckDB, which spills what exceeds its
memory limit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from warehouse.batch import actions, driver
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, rewriting
from warehouse.lake.delta_table import File
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance.load import load
from warehouse.maintenance.reclassification.diff import Diff, DiffTable, changed
from warehouse.maintenance.reclassification.verdicts import new_value
from warehouse.query import engine
from warehouse.query.engine import Share
from warehouse.schema import CLASSIFICATION, HITS
from warehouse.tables import HITS_TABLE

OnDay = Callable[[int, int], None]
"""Function that is called after each day, with the number of days done and the total."""
CLASSIFY_BATCH = 2_000
"""User agents in one call of `Rules.classify`."""
PASSES = 3
"""Maximum number of times that all days are examined: more than once for hits that other processes wrote meanwhile."""

_CREATE = f"CREATE TEMP TABLE classified ({', '.join(f'{name} VARCHAR' for name in CLASSIFICATION.names)})"
_USER_AGENTS = "CREATE TEMP TABLE user_agents AS SELECT DISTINCT user_agent FROM {files}"
_SLICE = "SELECT user_agent FROM user_agents WHERE rowid >= $first AND rowid < $end"
_COUNT_OUTDATED = "SELECT count(*) FROM {files} WHERE ruleset <> $ruleset"
_OUTDATED_DAYS = "SELECT DISTINCT date::VARCHAR AS day FROM {files} WHERE ruleset <> $ruleset ORDER BY day"
_RECLASSIFIED = f"""
SELECT {", ".join(f"{new_value(name)} AS {name}" for name in HITS.names)}
FROM {{files}} AS stored LEFT JOIN classified USING (user_agent)
ORDER BY {", ".join(f"stored.{name}" for name in HITS_TABLE.order)}
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """The current rules: their version, and a function from user agents to a table of schema CLASSIFICATION.

    The function caches what it has classified on earlier days.
    """

    ruleset: str
    classify: Callable[[list[str]], pa.Table]


@dataclass(frozen=True, slots=True)
class Reclassified:
    """Result of a run: number of days with hits of another ruleset, of these hits, and of user agents, and the diff.

    The command line prints the result as JSON with these names.
    """

    days: int
    hits: int
    user_agents: int
    moves: Diff


@dataclass(frozen=True, slots=True)
class Day:
    """A day with its files. `is_preview`: nothing is written."""

    root: Root
    rules: Rules
    share: Share
    day: str
    files: tuple[File, ...]
    is_preview: bool

    def __str__(self) -> str:
        return self.day


@dataclass(frozen=True, slots=True)
class NewDay:
    """The reclassified files of a day, which no commit names yet: number of outdated hits, hashes of the user agents,
    and the differences: see `diff.changed`."""

    files: tuple[File, ...]
    outdated: int
    user_agents: list[int]
    changed: pa.Table


def reclassify(  # noqa: PLR0913  # where, what, and how
    hot: HotConnection,
    root: Root,
    share: Share,
    rules: Rules,
    wait_s: float,
    on_day: OnDay = lambda done, total: None,
    *,
    executor: Executor = THIS_PROCESS,
    is_preview: bool = False,
) -> Reclassified:
    """Replace the classification of each stored hit by that of the current rules for its user agent.

    A hit with a verdict on its agent may retain the verdict: see `verdicts`. A preview loads the hot log, and changes
    nothing else.

    The executor writes the new files of a day, without the lake's lock, and this process commits them. Readers see each
    day either before or after its change. The others are rewritten if one fails. After an interruption the next call
    continues.

    Raises:
        LakeBusy: see `durability.durable_writes`.
        HotLogBehind: see `load.load`.
        WorkerDied: processes died with the same day again and again.
    """

    def commit(day: Day, new: NewDay) -> None:
        if new.outdated:
            with durable_writes(hot, root, wait_s):
                is_replaced = rewriting.replace_live(root, HITS_TABLE, day.files, new.files)
            if is_replaced:
                run.count(day, new)
            pause_for_waiters()

    with _Run(root, share, rules, is_preview=is_preview) as run:
        for _ in range(1 if is_preview else PASSES):
            load(hot, root, wait_s)
            if days := run.outdated_days():
                actions.run_all(run.commits(executor, days, run.count if is_preview else commit, on_day))
        return run.result()


class _Run(ExitStack):
    """State of a run: the days, user agents and differences counted so far."""

    def __init__(self, root: Root, share: Share, rules: Rules, *, is_preview: bool) -> None:
        super().__init__()
        self._root, self._share, self._rules, self._is_preview = root, share, rules, is_preview
        self._database = self.enter_context(share.database())
        self._diff = DiffTable(self._database)
        self._days, self._user_agents = set[str](), set[int]()
        self._hits = self._done = 0

    def outdated_days(self) -> list[str]:
        files = delta_table.list_files(delta_table.open_table(self._root, HITS_TABLE), HITS_TABLE)
        if not files:
            return []
        sql = _OUTDATED_DAYS.format(files=engine.parquet(files))
        return [day for (day,) in self._database.execute(sql, {"ruleset": self._rules.ruleset}).fetchall()]

    def commits(
        self, executor: Executor, days: Sequence[str], commit: Callable[[Day, NewDay], None], on_day: OnDay
    ) -> Iterator[actions.Action]:
        """Yield a step for each day that still has files: see `driver.commits`.

        The files of a day are listed when the day is taken: another process may compact the day while it waits, and
        delete its old files `delta_table.GRACE_H` hours later.
        """

        def taken() -> Iterator[Day]:
            for day in days:
                if files := delta_table.list_files(delta_table.open_table(self._root, HITS_TABLE), HITS_TABLE, day):
                    yield Day(self._root, self._rules, self._share, day, files, self._is_preview)

        before, self._done = self._done, self._done + len(days)
        total = self._done
        yield from driver.commits(executor, reclassify_day, taken(), commit, lambda done: on_day(before + done, total))

    def count(self, day: Day, new: NewDay) -> None:
        self._days.add(day.day)
        self._hits += new.outdated
        self._user_agents.update(new.user_agents)
        self._diff.add(new.changed)

    def result(self) -> Reclassified:
        return Reclassified(len(self._days), self._hits, len(self._user_agents), self._diff.read())


def reclassify_day(day: Day) -> NewDay:
    """Write the hits of a day under the current rules to new files."""
    with day.share.database() as database:
        count = _COUNT_OUTDATED.format(files=engine.parquet(day.files))
        ((outdated,),) = database.execute(count, {"ruleset": day.rules.ruleset}).fetchall()
        if not outdated:
            return NewDay((), 0, [], pa.table({}))
        hashes = _classify(database, day)
        differences, files = changed(database, day.files), tuple[File, ...]()
        if not day.is_preview:
            rows = database.sql(_RECLASSIFIED.format(files=engine.rows(HITS_TABLE, day.files)))
            batches = rows.to_arrow_reader(engine.STREAM_ROWS).cast(HITS)
            files = rewriting.write_partition(day.root, HITS_TABLE, day.day, batches)
        return NewDay(files, int(outdated), hashes, differences)


def _classify(database: duckdb.DuckDBPyConnection, day: Day) -> list[int]:
    """Write the classification of each user agent of a day into the table `classified`; return their hashes."""
    database.execute(_CREATE)
    database.execute(_USER_AGENTS.format(files=engine.parquet(day.files)))
    hashes = [number for (number,) in database.execute("SELECT hash(user_agent) FROM user_agents").fetchall()]
    for first in range(0, len(hashes), CLASSIFY_BATCH):
        values = {"first": first, "end": first + CLASSIFY_BATCH}
        user_agents = database.sql(_SLICE, params=values).to_arrow_table()["user_agent"].to_pylist()
        database.register("batch", day.rules.classify(user_agents))
        database.execute(f"INSERT INTO classified SELECT {', '.join(CLASSIFICATION.names)} FROM batch")
        database.unregister("batch")
    return hashes
