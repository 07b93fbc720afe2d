"""Differences between the stored classification of hits and the one of the current rules."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from warehouse.lake.delta_table import File
from warehouse.maintenance.reclassification.verdicts import new_value
from warehouse.query import engine
from warehouse.tables import HITS_TABLE

ROWS_MAX = 1_000_000
"""Rows of the diff table above which the rows of several days are added up."""

_COMPARED = "traffic rule agent".split()
_CREATE = f"""
CREATE OR REPLACE TEMP TABLE changed (
    {", ".join(f"{age}_{name} VARCHAR" for age in ("old", "new") for name in _COMPARED)}, page UBIGINT, hits BIGINT
)
"""
_CHANGED = f"""
SELECT {", ".join(f"stored.{name} AS old_{name}" for name in _COMPARED)},
       {", ".join(f"{new_value(name)} AS new_{name}" for name in _COMPARED)},
       hash(project_id, path) AS page, count(*) AS hits
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
FROM (SELECT old_traffic, old_rule, new_traffic, new_rule, page, sum(hits) AS hits
      FROM changed WHERE old_traffic <> new_traffic OR old_rule <> new_rule GROUP BY ALL)
GROUP BY ALL ORDER BY hits DESC, old_traffic, old_rule, new_traffic, new_rule
"""
_TOTAL = """
SELECT coalesce(sum(hits), 0)::BIGINT, count(*)
FROM (SELECT sum(hits) AS hits FROM changed GROUP BY page)
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


def changed(database: duckdb.DuckDBPyConnection, files: Sequence[File]) -> pa.Table:
    """Return the differences between the rows of files and the table `classified` of a database, for `DiffTable.add`.

    A pair of project and path is a hash: the texts of a day may not fit into memory.
    """
    return database.sql(_CHANGED.format(files=engine.rows(HITS_TABLE, files))).to_arrow_table()


class DiffTable:
    """Diff of many days, in a temporary table of a database."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database
        database.execute(_CREATE)

    def add(self, changed: pa.Table) -> None:
        """Add the differences of a day."""
        self._database.register("added", changed)
        self._database.execute("INSERT INTO changed FROM added")
        self._database.unregister("added")
        if int(self._database.execute("SELECT count(*) FROM changed").fetchall()[0][0]) > ROWS_MAX:
            self._database.execute(_ADD_UP)

    def read(self) -> Diff:
        """Return the diff of all files added so far."""
        hits, paths = self._database.execute(_TOTAL).fetchall()[0]
        return Diff(
            hits,
            paths,
            tuple(RuleChange(*row) for row in self._database.execute(_BY_RULE).fetchall()),
            tuple(CountChange(*row) for row in self._database.execute(_BY_TRAFFIC).fetchall()),
            tuple(CountChange(*row) for row in self._database.execute(_BY_AGENT).fetchall()),
        )
