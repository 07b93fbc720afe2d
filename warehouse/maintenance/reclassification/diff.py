"""Differences between the stored classification of hits and the one of the current rules."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.maintenance.reclassification.verdicts import new_value
from warehouse.query import engine

ROWS_MAX = 1_000_000
"""Rows of the diff table above which the rows of several days are added up."""

_COMPARED = "traffic rule agent".split()
_CREATE = f"""
CREATE OR REPLACE TEMP TABLE changed (
    {", ".join(f"{age}_{name} VARCHAR" for age in ("old", "new") for name in _COMPARED)},
    project_id VARCHAR, path VARCHAR, hits BIGINT
)
"""
_ADD_FILES = f"""
INSERT INTO changed
SELECT {", ".join(f"stored.{name}" for name in _COMPARED)}, {", ".join(map(new_value, _COMPARED))},
       project_id, path, count(*)
FROM {{files}} AS stored JOIN classified USING (user_agent)
WHERE {" OR ".join(f"stored.{name} IS DISTINCT FROM {new_value(name)}" for name in _COMPARED)}
GROUP BY ALL
"""
_ADD_UP = """
CREATE OR REPLACE TEMP TABLE changed AS
SELECT * EXCLUDE (hits), sum(hits)::BIGINT AS hits FROM changed GROUP BY ALL
"""
_BY_RULE = """
SELECT old_traffic, old_rule, new_traffic, new_rule, sum(hits)::BIGINT AS hits, count(*) AS paths
FROM (SELECT old_traffic, old_rule, new_traffic, new_rule, project_id, path, sum(hits) AS hits
      FROM changed WHERE old_traffic <> new_traffic OR old_rule <> new_rule GROUP BY ALL)
GROUP BY ALL ORDER BY hits DESC, old_traffic, old_rule, new_traffic, new_rule
"""
_TOTAL = """
SELECT coalesce(sum(hits), 0)::BIGINT, count(*)
FROM (SELECT sum(hits) AS hits FROM changed GROUP BY project_id, path)
"""
_SIGNED = """
(SELECT new_traffic AS traffic, new_agent AS agent, hits FROM changed
 UNION ALL SELECT old_traffic, old_agent, -hits FROM changed)
"""
_BY_TRAFFIC = f"""
SELECT traffic, NULL, sum(hits)::BIGINT AS change FROM {_SIGNED} GROUP BY traffic HAVING change <> 0 ORDER BY traffic
"""
_BY_AGENT = f"""
SELECT traffic, agent, sum(hits)::BIGINT AS change FROM {_SIGNED} WHERE agent IS NOT NULL
GROUP BY traffic, agent HAVING change <> 0 ORDER BY traffic, abs(change) DESC, agent
"""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Hits whose rule changes from one to another, and the number of (project, path) pairs that have them."""

    old_traffic: str
    old_rule: str
    new_traffic: str
    new_rule: str
    hits: int
    paths: int


@dataclass(frozen=True, slots=True)
class CountChange:
    """Difference in the number of hits of a kind of traffic, or of one of its agents; negative for a loss."""

    traffic: str
    agent: str | None
    hits: int


@dataclass(frozen=True, slots=True)
class Diff:
    """Hits whose classification changes, their number of (project, path) pairs, and the changes, most hits first.

    Hits whose rule has a new name for the bot, and nothing else changes, are not in `by_rule`.
    """

    hits: int
    paths: int
    by_rule: tuple[RuleChange, ...]
    by_traffic: tuple[CountChange, ...]
    by_agent: tuple[CountChange, ...]


class DiffTable:
    """Diff of many days, in a temporary table of a cursor that also has the table `classified` of `reclassify`."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        cursor.execute(_CREATE)

    def add(self, files: Sequence[File]) -> None:
        """Add the differences between the rows of files and the table `classified`."""
        self._cursor.execute(_ADD_FILES.format(files=engine.rows(HITS_TABLE, files)))
        self._limit()

    def take_changed(self) -> pa.Table:
        """Return the differences of all files added so far, for `add_changed` of another table."""
        return self._cursor.sql("FROM changed").to_arrow_table()

    def add_changed(self, changed: pa.Table) -> None:
        """Add the differences that `take_changed` returned in another process."""
        self._cursor.register("added", changed)
        self._cursor.execute("INSERT INTO changed FROM added")
        self._cursor.unregister("added")
        self._limit()

    def read(self) -> Diff:
        """Return the diff of all files added so far."""
        hits, paths = self._cursor.execute(_TOTAL).fetchall()[0]
        return Diff(
            hits,
            paths,
            tuple(RuleChange(*row) for row in self._cursor.execute(_BY_RULE).fetchall()),
            tuple(CountChange(*row) for row in self._cursor.execute(_BY_TRAFFIC).fetchall()),
            tuple(CountChange(*row) for row in self._cursor.execute(_BY_AGENT).fetchall()),
        )

    def _limit(self) -> None:
        if self._number("SELECT count(*) FROM changed") > ROWS_MAX:
            self._cursor.execute(_ADD_UP)

    def _number(self, sql: str) -> int:
        return int(self._cursor.execute(sql).fetchall()[0][0])
