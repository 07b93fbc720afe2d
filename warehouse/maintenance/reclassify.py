"""Stored hits under today's rules: `hits` rewritten a day at a time, and `daily_views` with it.

Only days that hold a row of another ruleset are touched. The rules are asked about each distinct user agent once, and
the rows never leave DuckDB, which spills what is too large for its memory.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.hotlog import dirty_days
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.lake.lock import pause_for_waiters
from warehouse.maintenance import rollup
from warehouse.maintenance.catch_up import OnStep, catch_up
from warehouse.maintenance.load import load
from warehouse.maintenance.reclassify_diff import Gathering, Moves
from warehouse.query import engine
from warehouse.schema import CLASSIFICATION, HITS

OnDay = Callable[[int, int], None]
"""Told how many days are done, of how many."""
STEPS = ("before commit of hits", "before commit of daily_views", "before clear", "after clear")
ASKED_AT_ONCE = 2_000
REMEMBERED_MAX = 200_000
"""User agents remembered from day to day. With more all are forgotten between two days."""

_SAID = frozenset(CLASSIFICATION.names) - {"user_agent"}
_CREATE = f"CREATE OR REPLACE TEMP TABLE said ({', '.join(f'{name} VARCHAR' for name in CLASSIFICATION.names)})"
_UNKNOWN = """
CREATE OR REPLACE TEMP TABLE unknown AS
SELECT DISTINCT user_agent FROM {files} AS stored ANTI JOIN said USING (user_agent)
"""
_SLICE = "SELECT user_agent FROM unknown WHERE rowid >= $first AND rowid < $end"
_OTHER = "SELECT count(*) FROM {files} WHERE ruleset <> $ruleset"
_DAYS = "SELECT DISTINCT date::VARCHAR AS day FROM {files} WHERE ruleset <> $ruleset ORDER BY day"
_RULED = f"""
SELECT {", ".join(f"said.{name}" if name in _SAID else f"stored.{name}" for name in HITS.names)}
FROM {{files}} AS stored LEFT JOIN said USING (user_agent)
ORDER BY {", ".join(f"stored.{name}" for name in HITS_TABLE.order)}
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """Today's rules: their version, and a function from user agents to a table of schema `CLASSIFICATION`."""

    ruleset: str
    classify: Callable[[list[str]], pa.Table]


@dataclass(frozen=True, slots=True)
class Reclassified:
    """Days that held hits of another ruleset, how many hits, the user agents looked at; and what moved."""

    days: int
    hits: int
    user_agents: int
    moves: Moves


def survey(
    hot: sqlite3.Connection,
    root: Path,
    database: duckdb.DuckDBPyConnection,
    rules: Rules,
    wait_s: float,
    on_day: OnDay = lambda done, of: None,
) -> Reclassified:
    """What `reclassify` would do now. Nothing is changed, but that the hot log is loaded first.

    Raises:
        LakeBusy, HotLogBehind: see `load.load`.
    """
    load(hot, root, wait_s)
    with database.cursor() as cursor:
        return _Run(cursor, rules).over(
            root,
            lambda run, day: delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE, day),
            on_day,
        )


def reclassify(
    hot: sqlite3.Connection,
    root: Path,
    database: duckdb.DuckDBPyConnection,
    rules: Rules,
    wait_s: float,
    on_day: OnDay = lambda done, of: None,
    on_step: OnStep = lambda step: None,
) -> Reclassified:
    """Give every stored hit the columns that today's rules give its user agent.

    The lake is held for a day at a time. Readers see a day, its hits and its counts, as it was or as it is. Cut short,
    it goes on where it was when it is called again; the day it was at is counted by the next load.

    Raises:
        LakeBusy: see `durability.durable_writes` and `rollup.retry_commit`.
        HotLogBehind: see `load.load`.
    """

    def rewritten(run: "_Run", day: str) -> Sequence[File]:
        with durable_writes(hot, root, wait_s):
            catch_up(hot, root)
            rollup.recount_dirty(hot, root)
            files = rollup.retry_commit(partial(_rewrite, hot, root, database, run, day, on_step))
        pause_for_waiters()
        return files

    load(hot, root, wait_s)
    with database.cursor() as cursor:
        return _Run(cursor, rules).over(root, rewritten, on_day)


def _rewrite(
    hot: sqlite3.Connection,
    root: Path,
    database: duckdb.DuckDBPyConnection,
    run: "_Run",
    day: str,
    on_step: OnStep,
) -> Sequence[File]:
    """The files that were replaced; none if another process was first."""
    table = delta_table.open_table(root, HITS_TABLE)
    files = delta_table.list_files(table, HITS_TABLE, day)
    if not run.others(files):
        return []
    run.ask(files)
    dirty_days.mark_dirty(hot, [day])
    on_step("before commit of hits")
    delta_table.replace_partition(table, HITS_TABLE, day, run.ruled(files))
    rollup.recount_days(root, database, [day], on_step)
    on_step("before clear")
    dirty_days.clear_dirty(hot, [day])
    on_step("after clear")
    return files


class _Run:
    """What one run remembers: the answers to the user agents it met, and the moves, in tables of its cursor's own."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, rules: Rules) -> None:
        self._cursor, self._rules = cursor, rules
        self._asked = 0
        cursor.execute(_CREATE)
        self._gathering = Gathering(cursor)

    def over(self, root: Path, replaced: Callable[["_Run", str], Sequence[File]], on_day: OnDay) -> Reclassified:
        """Each day in turn; `replaced` gives the files whose rows are compared with today's rules."""
        days = hits = 0
        every = self._days(delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE))
        for done, day in enumerate(every, start=1):
            self._forget()
            self.ask(
                delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE, day)
            )  # before the lake is held: of a large day it takes a while
            files = replaced(self, day)
            if files:
                days, hits = days + 1, hits + self.others(files)
                self._gathering.add(files)
            on_day(done, len(every))
        return Reclassified(days, hits, self._asked, self._gathering.moves())

    def others(self, files: Sequence[File]) -> int:
        """Rows of another ruleset than today's."""
        return self._number(_OTHER.format(files=engine.parquet(files)), ruleset=self._rules.ruleset) if files else 0

    def ask(self, files: Sequence[File]) -> None:
        """Have an answer to every user agent of the files."""
        if not files:
            return
        self._cursor.execute(_UNKNOWN.format(files=engine.parquet(files)))
        unknown = self._number("SELECT count(*) FROM unknown")
        for first in range(0, unknown, ASKED_AT_ONCE):
            values = {"first": first, "end": first + ASKED_AT_ONCE}
            asked = self._cursor.sql(_SLICE, params=values).to_arrow_table()["user_agent"].to_pylist()
            self._cursor.register("answers", self._rules.classify(asked))
            self._cursor.execute(f"INSERT INTO said SELECT {', '.join(CLASSIFICATION.names)} FROM answers")
            self._cursor.unregister("answers")
        self._asked += unknown

    def ruled(self, files: Sequence[File]) -> pa.RecordBatchReader:
        """The rows of the files under today's rules, in the order of the table."""
        return self._cursor.sql(_RULED.format(files=engine.rows(HITS_TABLE, files))).to_arrow_reader().cast(HITS)

    def _days(self, files: Sequence[File]) -> list[str]:
        if not files:
            return []
        values = {"ruleset": self._rules.ruleset}
        return [day for (day,) in self._cursor.execute(_DAYS.format(files=engine.parquet(files)), values).fetchall()]

    def _forget(self) -> None:
        if self._number("SELECT count(*) FROM said") > REMEMBERED_MAX:
            self._cursor.execute(_CREATE)

    def _number(self, sql: str, **values: str) -> int:
        return int(self._cursor.execute(sql, values).fetchall()[0][0])
