"""Apply the current rules to stored hits: rewrite `hits` one day at a time.

Only days that have a hit of another ruleset are rewritten. Each distinct user agent is classified once. The rows stay
in DuckDB, which spills what exceeds its memory limit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import duckdb
import pyarrow as pa

from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, rewriting, row_groups
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance.catch_up import OnStep, catch_up
from warehouse.maintenance.load import load
from warehouse.maintenance.reclassification.diff import Diff, DiffTable
from warehouse.maintenance.reclassification.verdicts import new_value
from warehouse.query import engine
from warehouse.schema import CLASSIFICATION, HITS

OnDay = Callable[[int, int], None]
"""Function that is called after each day, with the number of days done and the total."""
STEPS = ("before commit of hits", "after commit of hits")
CLASSIFY_BATCH = 2_000
"""User agents in one call of `Rules.classify`."""
CACHED_MAX = 200_000
"""User agents whose classification is cached from one day to the next. A larger cache is emptied between two days."""

_CREATE = f"CREATE OR REPLACE TEMP TABLE classified ({', '.join(f'{name} VARCHAR' for name in CLASSIFICATION.names)})"
_UNCLASSIFIED = """
CREATE OR REPLACE TEMP TABLE unclassified AS
SELECT DISTINCT user_agent FROM {files} AS stored ANTI JOIN classified USING (user_agent)
"""
_SLICE = "SELECT user_agent FROM unclassified WHERE rowid >= $first AND rowid < $end"
_COUNT_OUTDATED = "SELECT count(*) FROM {files} WHERE ruleset <> $ruleset"
_OUTDATED_DAYS = "SELECT DISTINCT date::VARCHAR AS day FROM {files} WHERE ruleset <> $ruleset ORDER BY day"
_RECLASSIFIED = f"""
SELECT {", ".join(f"{new_value(name)} AS {name}" for name in HITS.names)}
FROM {{files}} AS stored LEFT JOIN classified USING (user_agent)
ORDER BY {", ".join(f"stored.{name}" for name in HITS_TABLE.order)}
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """The current rules: their version, and a function from user agents to a table of schema CLASSIFICATION."""

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


def preview(
    hot: HotConnection,
    root: Root,
    database: duckdb.DuckDBPyConnection,
    rules: Rules,
    wait_s: float,
    on_day: OnDay = lambda done, total: None,
) -> Reclassified:
    """Return what `reclassify` would do now. The hot log is loaded first; nothing else changes.

    Raises:
        LakeBusy, HotLogBehind: see `load.load`.
    """
    load(hot, root, wait_s)
    with database.cursor() as cursor:
        return Run(cursor, root, rules).for_each_day(partial(list_day, root), on_day)


def reclassify(
    hot: HotConnection,
    root: Root,
    database: duckdb.DuckDBPyConnection,
    rules: Rules,
    wait_s: float,
    on_day: OnDay = lambda done, total: None,
    on_step: OnStep = lambda step: None,
) -> Reclassified:
    """Replace the classification of each stored hit by that of the current rules for its user agent.

    A hit with a verdict on its agent may retain the verdict: see `verdicts`.

    The lake is locked for one day at a time, and readers see each day either before or after its change. After an
    interruption the next call continues.

    Raises:
        LakeBusy: see `durability.durable_writes` and `rewriting.retry_commit`.
        HotLogBehind: see `load.load`.
    """
    load(hot, root, wait_s)
    with database.cursor() as cursor:
        run = Run(cursor, root, rules)

        def rewrite(day: str) -> Sequence[File]:
            with durable_writes(hot, root, wait_s):
                catch_up(hot, root)
                files = rewriting.retry_commit(partial(rewrite_day, root, run, day, on_step))
            pause_for_waiters()
            return files

        return run.for_each_day(rewrite, on_day)


def rewrite_day(root: Root, run: "Run", day: str, on_step: OnStep = lambda step: None) -> Sequence[File]:
    """Rewrite a day, and return the files that were replaced: none if another process has rewritten the day."""
    table = delta_table.open_table(root, HITS_TABLE)
    files = delta_table.list_files(table, HITS_TABLE, day)
    if not run.count_outdated(files):
        return []
    run.classify(files)
    on_step("before commit of hits")
    rows_max = row_groups.rows_for(file.path for file in files)
    rewriting.replace_partition(table, HITS_TABLE, day, run.reclassified(files), rows_max)
    on_step("after commit of hits")
    return files


def list_day(root: Root, day: str) -> Sequence[File]:
    return delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE, day)


class Run:
    """State of one run: classified user agents and the diff, both in temporary tables of its cursor."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, root: Root, rules: Rules) -> None:
        self._cursor, self._root, self._rules = cursor, root, rules
        self._user_agents = 0
        cursor.execute(_CREATE)
        self._diff = DiffTable(cursor)

    def for_each_day(self, replace: Callable[[str], Sequence[File]], on_day: OnDay) -> Reclassified:
        """Call `replace` for each outdated day, and compare the files that it returns with the current rules."""
        days = hits = 0
        outdated_days = self.outdated_days()
        for done, day in enumerate(outdated_days, start=1):
            self._limit_cache()
            self.classify(list_day(self._root, day))  # without the lake's lock: a large day takes a while
            files = replace(day)
            if files:
                days, hits = days + 1, hits + self.count_outdated(files)
                self._diff.add(files)
            on_day(done, len(outdated_days))
        return Reclassified(days, hits, self._user_agents, self._diff.read())

    def count_outdated(self, files: Sequence[File]) -> int:
        """Return the number of rows of another ruleset."""
        if not files:
            return 0
        return self._number(_COUNT_OUTDATED.format(files=engine.parquet(files)), ruleset=self._rules.ruleset)

    def classify(self, files: Sequence[File]) -> None:
        """Classify the user agents of the files that are not in the cache."""
        if not files:
            return
        self._cursor.execute(_UNCLASSIFIED.format(files=engine.parquet(files)))
        unclassified = self._number("SELECT count(*) FROM unclassified")
        for first in range(0, unclassified, CLASSIFY_BATCH):
            values = {"first": first, "end": first + CLASSIFY_BATCH}
            user_agents = self._cursor.sql(_SLICE, params=values).to_arrow_table()["user_agent"].to_pylist()
            self._cursor.register("batch", self._rules.classify(user_agents))
            self._cursor.execute(f"INSERT INTO classified SELECT {', '.join(CLASSIFICATION.names)} FROM batch")
            self._cursor.unregister("batch")
        self._user_agents += unclassified

    def reclassified(self, files: Sequence[File]) -> pa.RecordBatchReader:
        """Return the rows of the files under the current rules, in the order of the table."""
        rows = self._cursor.sql(_RECLASSIFIED.format(files=engine.rows(HITS_TABLE, files)))
        return rows.to_arrow_reader(engine.STREAM_ROWS).cast(HITS)

    def hashes(self) -> list[int]:
        """Return a hash of each user agent in the cache."""
        return [number for (number,) in self._cursor.execute("SELECT hash(user_agent) FROM classified").fetchall()]

    def add(self, files: Sequence[File]) -> None:
        """Add the differences of replaced files to the diff."""
        if files:
            self._diff.add(files)

    def changed(self, files: Sequence[File]) -> pa.Table:
        """Return the differences of files: see `DiffTable.take_changed`."""
        self.add(files)
        return self._diff.take_changed()

    def add_changed(self, changed: pa.Table) -> None:
        self._diff.add_changed(changed)

    def diff(self) -> Diff:
        return self._diff.read()

    def outdated_days(self) -> list[str]:
        files = delta_table.list_files(delta_table.open_table(self._root, HITS_TABLE), HITS_TABLE)
        if not files:
            return []
        sql = _OUTDATED_DAYS.format(files=engine.parquet(files))
        return [day for (day,) in self._cursor.execute(sql, {"ruleset": self._rules.ruleset}).fetchall()]

    def _limit_cache(self) -> None:
        if self._number("SELECT count(*) FROM classified") > CACHED_MAX:
            self._cursor.execute(_CREATE)

    def _number(self, sql: str, **values: str) -> int:
        return int(self._cursor.execute(sql, values).fetchall()[0][0])
