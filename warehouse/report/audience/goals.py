"""Conversions: the visitors of a scope who reached a goal, in stored hits and events.

A visitor converts on each UTC day on which the visitor reaches the goal and has a view that matches the filters: the
goal itself need not match them. With a dimension, the visitor converts in each value that the visitor had that day.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from warehouse.columns import evidence, visits
from warehouse.columns.dimensions import dimension
from warehouse.columns.filters import Bound, Filters, match_path
from warehouse.columns.sources import BITS
from warehouse.control.goals import Goal
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.report.audience import visitors
from warehouse.report.cells import SLOW_ROWS, Cells, Scope
from warehouse.report.statements import Statements
from warehouse.rollups import days
from warehouse.rollups.days import files_of
from warehouse.tables import HITS_TABLE

_WITHIN = "project_id = $project AND ts >= $start AND ts < $end"
_DONE = """
SELECT goal, day, visitor, traffic, sum(1)::BIGINT AS times FROM ({reached}) WHERE {counted}
GROUP BY goal, day, visitor, traffic
"""
_PLAIN = """
SELECT goal, traffic, sum(times)::BIGINT AS times, count(visitor) AS converted FROM ({done}) GROUP BY goal, traffic
"""
_JOINED = """
WITH done AS MATERIALIZED ({done})
SELECT goal, traffic, sum(times)::BIGINT AS times, count(visitor) FILTER (is_counted) AS converted {value}
FROM (SELECT *, {matches} AND {seen} & (CASE traffic WHEN 'human' THEN {human} ELSE {ai} END) <> 0 AS is_counted
    FROM done LEFT JOIN ({of_scope}) AS of_scope USING (day, visitor) {by_set})
WHERE {within} GROUP BY ALL
"""


class Conversion(NamedTuple):
    """A goal of people or AI: how often they reached it, how many visitors did, and how many visitors there were."""

    goal: str
    value: str | None
    traffic: str
    times: int
    converted: int
    visitors: int


def _order(row: Conversion) -> tuple[bool, int, int, bool, str]:
    return row.traffic != "human", -row.converted, -row.visitors, row.value is None, row.value or ""


@dataclass(frozen=True, slots=True)
class Conversions:
    """Goals in a scope by a dimension, or by none."""

    statements: Statements
    snapshot: Snapshot
    scope: Scope
    goals: Sequence[Goal]
    by: str = ""
    bound: Bound = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        """Return the readers that the filters select, and who can have a value of the dimension."""
        readers = dimension(self.by).readers if self.by else ("human", "ai")
        return [kind for kind in ("human", "ai") if kind in self.scope.filters.selected_traffic and kind in readers]

    def each_goal(self) -> Iterator[list[Conversion]]:
        """Yield the rows of each goal: people before AI; by dimension, values of most converted visitors first.

        Raises:
            TooManyViews
        """
        if not self.goals:
            return
        by = (self.by,) if self.by else ()
        counts = visitors.counts(self.statements, self.snapshot, self.scope, *by).to_pylist()
        of_value = {row[self.by] if by else None: row for row in counts} or ({} if by else {None: {}})
        key = "goals", self.scope, tuple(self.goals), self.by, self.snapshot.rows_key
        reached = {
            (row["goal"], row.get("value"), row["traffic"]): (row["times"], row["converted"])
            for row in self.statements.cached(key, self._reached).to_pylist()
        }
        for number, goal in enumerate(self.goals):
            for_each = [
                Conversion(goal.name, value, kind, *reached.get((number, value, kind), (0, 0)), row.get(kind, 0))
                for kind in self.kinds
                for value, row in of_value.items()
            ]
            rows = [each for each in for_each if each.visitors or not by]
            rows.sort(key=_order)
            yield rows

    def _reached(self) -> pa.Table:
        """Return how often each goal was reached, and by how many visitors: goal, traffic, times, converted, value."""
        scope, bound = self.scope, self.bound
        bound |= {"project": scope.project, "start": scope.time_range.start, "end": scope.time_range.end}
        files = files_of(self.snapshot.files, scope.time_range)
        rows = days.rows(self.snapshot, scope.time_range, files) or engine.no_rows(HITS_TABLE)
        counted, values = Filters(scope.filters.policy, source=scope.filters["source"]).condition()
        bound |= values
        kinds = ", ".join(f"'{each}'" for each in self.kinds)
        reached = " UNION ALL ".join(self._each_reached(rows))
        done = _DONE.format(reached=reached, counted=f"traffic IN ({kinds}) AND {counted}" if kinds else "false")
        filters = scope.filters
        is_plain = not self.by and not filters.by_evidence and not filters.columns - {"traffic", "sources", "day"}
        read, _ = visitors.parts(self.statements, self.snapshot, scope, (), by_evidence=filters.by_evidence)
        if is_plain and all(goal.kind == "path" for goal in self.goals):
            sql = _PLAIN.format(done=done)
        else:
            sql = self._joined(rows, done, "true" if is_plain else "is_counted")
            read *= SLOW_ROWS // visitors.FAST_VIEWS_MAX
        return self.statements.fetch(self.snapshot, scope, Cells("", bound, read), sql)

    def _each_reached(self, rows: str) -> Iterator[str]:
        """Yield the SELECT of the views or events that reach each goal."""
        events = days.events(self.snapshot, self.scope.time_range) or days.NO_EVENTS
        for number, goal in enumerate(self.goals):
            if goal.kind == "event":
                self.bound[f"event_{number}"] = goal.value
                relation, matches = events, f"name = $event_{number} AND name <> '{visits.ENGAGEMENT}'"
            else:
                relation = rows
                matches = " AND ".join(match_path(goal.value, self.bound, f"goal_{number}"))
            yield (
                f"SELECT {number} AS goal, date AS day, visitor, traffic, {BITS} AS sources"
                f" FROM {evidence.unknown(relation)} WHERE {_WITHIN} AND {matches}"
            )

    def _joined(self, rows: str, done: str, within: str) -> str:
        """Return the statement of the goals that visitors of the scope reached.

        `within` is the condition on what `times` counts: without filters also what unknown visitors did.
        """
        filters, bound = self.scope.filters, self.bound
        share = "project_id = $project AND visitor IN (SELECT visitor FROM done)"
        return _JOINED.format(
            done=done,
            value=f", {self.by}::VARCHAR AS value" if self.by else "",
            within=within,
            **visitors.matching(self.snapshot, self.scope, self.by, share, rows, bound),
            **{kind: filters.visitor_mask((kind,), bound) for kind in ("human", "ai")},
        )
