"""What other rules would change, or changed: which hits moved from one rule to another, on how many paths."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from warehouse.lake.delta_table import File
from warehouse.query import engine

GATHERED_MAX = 1_000_000
"""Rows gathered before those of several days are added up."""

_MOVED = "traffic rule agent".split()
_CREATE = f"""
CREATE OR REPLACE TEMP TABLE moved (
    {", ".join(f"{age}_{name} VARCHAR" for age in ("old", "new") for name in _MOVED)},
    project_id VARCHAR, path VARCHAR, hits BIGINT
)
"""
_GATHER = f"""
INSERT INTO moved
SELECT {", ".join(f"stored.{name}" for name in _MOVED)}, {", ".join(f"said.{name}" for name in _MOVED)},
       project_id, path, count(*)
FROM {{files}} AS stored JOIN said USING (user_agent)
WHERE {" OR ".join(f"stored.{name} IS DISTINCT FROM said.{name}" for name in _MOVED)}
GROUP BY ALL
"""
_ADD_UP = """
CREATE OR REPLACE TEMP TABLE moved AS
SELECT * EXCLUDE (hits), sum(hits)::BIGINT AS hits FROM moved GROUP BY ALL
"""
_BY_RULE = """
SELECT old_traffic, old_rule, new_traffic, new_rule, sum(hits)::BIGINT AS hits, count(*) AS paths
FROM (SELECT old_traffic, old_rule, new_traffic, new_rule, project_id, path, sum(hits) AS hits FROM moved GROUP BY ALL)
GROUP BY ALL ORDER BY hits DESC, old_traffic, old_rule, new_traffic, new_rule
"""
_TOTAL = """
SELECT coalesce(sum(hits), 0)::BIGINT, count(*)
FROM (SELECT sum(hits) AS hits FROM moved GROUP BY project_id, path)
"""
_SIGNED = """
(SELECT new_traffic AS traffic, new_agent AS agent, hits FROM moved
 UNION ALL SELECT old_traffic, old_agent, -hits FROM moved)
"""
_BY_TRAFFIC = f"""
SELECT traffic, NULL, sum(hits)::BIGINT AS change FROM {_SIGNED} GROUP BY traffic HAVING change <> 0 ORDER BY traffic
"""
_BY_AGENT = f"""
SELECT traffic, agent, sum(hits)::BIGINT AS change FROM {_SIGNED} WHERE agent IS NOT NULL
GROUP BY traffic, agent HAVING change <> 0 ORDER BY traffic, abs(change) DESC, agent
"""


@dataclass(frozen=True, slots=True)
class Move:
    """Hits that one rule had, and another has; `paths` are pages of projects."""

    old_traffic: str
    old_rule: str
    new_traffic: str
    new_rule: str
    hits: int
    paths: int


@dataclass(frozen=True, slots=True)
class Change:
    """By how many hits a kind of traffic, or an agent of it, grew; negative where it shrank."""

    traffic: str
    agent: str | None
    hits: int


@dataclass(frozen=True, slots=True)
class Moves:
    """All moves, most hits first, and what they come to. Each hit is in one move at most."""

    hits: int
    paths: int
    by_rule: tuple[Move, ...]
    by_traffic: tuple[Change, ...]
    by_agent: tuple[Change, ...]


class Gathering:
    """Moves gathered over many days, in a table of the cursor, beside the table `said` of `reclassify`."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        cursor.execute(_CREATE)

    def add(self, files: Sequence[File]) -> None:
        """Compare the rows of these files with what is said of their user agents."""
        self._cursor.execute(_GATHER.format(files=engine.parquet(files)))
        if self._number("SELECT count(*) FROM moved") > GATHERED_MAX:
            self._cursor.execute(_ADD_UP)

    def moves(self) -> Moves:
        hits, paths = self._cursor.execute(_TOTAL).fetchall()[0]
        return Moves(
            hits,
            paths,
            tuple(Move(*row) for row in self._cursor.execute(_BY_RULE).fetchall()),
            tuple(Change(*row) for row in self._cursor.execute(_BY_TRAFFIC).fetchall()),
            tuple(Change(*row) for row in self._cursor.execute(_BY_AGENT).fetchall()),
        )

    def _number(self, sql: str) -> int:
        return int(self._cursor.execute(sql).fetchall()[0][0])
