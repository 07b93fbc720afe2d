"""Events by name, and by the value of a column, a property, or a dimension of the visitor's views.

An event has the values that its visitor's views have on the same UTC day: filters other than OWN choose events of
visitors with a view that matches them.
"""

from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from warehouse.columns import evidence
from warehouse.columns.dimensions import BREAKDOWNS, OF_VISITS
from warehouse.columns.filters import Bound, Filters
from warehouse.columns.sources import BITS, TRAFFIC
from warehouse.columns.visits import ENGAGEMENT
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.report.audience import visitors
from warehouse.report.cells import Cells, Scope
from warehouse.report.statements import Statements
from warehouse.rollups import days
from warehouse.tables import EVENTS_TABLE, HITS_TABLE

COLUMNS = ("path", "agent", "source", "traffic")
"""Columns of an event. A name that is not a dimension either names a property, with or without `props.`."""
OWN = {*COLUMNS, "operator", "purpose"}
"""Filters of the event itself. Its agent has the operator and purpose: see ChosenEvents."""
_EVENTS = f"""
(FROM {{events}} WHERE name <> '{ENGAGEMENT}' AND name = coalesce($name, name) AND project_id = $project
    AND ts >= $start AND ts < $end
    AND ($agents::VARCHAR[] IS NULL OR (traffic = 'ai' AND list_contains($agents, agent))) AND {{conditions}})
"""
_OF_VIEWS = """
(SELECT events.*, value FROM {rows} AS events {join} (
    SELECT DISTINCT day, visitor, kind, {value}::VARCHAR AS value FROM ({of_scope}) {by_set},
        (VALUES ('human', {human}), ('ai', {ai}), ('bot', {bot})) AS kinds (kind, mask)
    WHERE {matches} AND {seen} & mask <> 0
    QUALIFY value IS NOT NULL OR count(value) OVER (PARTITION BY day, visitor, kind) = 0
) AS of_view ON of_view.day = events.date AND of_view.visitor = events.visitor AND kind = traffic)
"""
DIMENSIONS = {*BREAKDOWNS, *OF_VISITS} - OWN
_OF_AGENT, _OF_PROPERTY = "if(traffic = 'ai', $by_agent[agent], NULL)", "json_extract_string(props, $property)"
_VALUES = {"": "NULL", **dict.fromkeys(DIMENSIONS, "value"), **dict.fromkeys(OWN, _OF_AGENT)}
_VALUES |= zip(COLUMNS, COLUMNS, strict=True)
ROWS_MAX = 10_000
"""Maximum number of rows: strangers choose the values of properties."""
_COUNTED = f"""
SELECT name, value, traffic, sum(times)::BIGINT AS events, nullif(count(visitor), 0)::BIGINT AS visitors,
    coalesce(list_sort(list_distinct(flatten(list(agents)))), []) AS agents
FROM (SELECT name, {{value}}::VARCHAR AS value, traffic, day, visitor, count(*) AS times,
    coalesce(list(DISTINCT agent) FILTER (agent IS NOT NULL), []) AS agents
FROM (SELECT *, date AS day, {BITS} AS sources FROM {{rows}}) WHERE {{counted}} GROUP BY ALL)
GROUP BY ALL ORDER BY events DESC, name, value NULLS LAST, traffic LIMIT {{limit}}
"""
_NUMBERS = {"events": pa.int64(), "visitors": pa.int64(), "agents": pa.list_(pa.string())}
_SCHEMA = pa.schema(dict.fromkeys(("name", "value", "traffic"), pa.string()) | _NUMBERS)


class ChosenEvents(NamedTuple):
    """Which events are counted, and how they are grouped: by a column, dimension or property, or by name alone.

    Without a `name`, events of all names are counted. `agents` are the agents of an operator. `rows` is the maximum
    number of groups. `by_agent` are AI agents, each with its operator or purpose, to count by it.
    """

    name: str | None = None
    by: str = ""
    agents: tuple[str, ...] | None = None
    rows: int = ROWS_MAX
    by_agent: tuple[tuple[str, str], ...] = ()


def counts(statements: Statements, snapshot: Snapshot, scope: Scope, chosen: ChosenEvents) -> pa.Table:
    """Return name, value, traffic, events, visitors and agents: most events first. Visitors are null if unknown.

    Without a filter by traffic, bots are left out. A property is read by its JSON pointer. It may raise TooManyViews.
    """
    events = days.events(snapshot, scope.time_range)
    if events is None:  # most projects have none, and planning the statement takes 5 ms
        return _SCHEMA.empty_table()
    filters, by, files = scope.filters, chosen.by, snapshot.beside(EVENTS_TABLE).files
    counted, bound = Filters(filters.policy, source=filters["source"]).condition()
    bound |= {"project": scope.project, "start": scope.time_range.start, "end": scope.time_range.end}
    bound |= {"name": chosen.name, "agents": chosen.agents}
    bound["property"] = "/" + by.removeprefix("props.").replace("~", "~0").replace("/", "~1")
    bound["by_agent"] = dict(zip(("key", "value"), map(list, zip(*chosen.by_agent, strict=True)), strict=False))
    conditions = filters.conditions(("path", "traffic", "agent"), bound)
    conditions.append("true" if filters["traffic"] else "traffic <> 'bot'")
    events = _EVENTS.format(events=events, conditions=" AND ".join(conditions))
    rows, read = _evident(snapshot, scope, events)
    if names := [name for name in (by, *filters.fields) if name in DIMENSIONS]:
        views, _ = visitors.parts(statements, snapshot, scope, (), by_evidence=filters.by_evidence)
        read += visitors.weight(views, names)
        rows = _of_views(snapshot, scope, by if by in DIMENSIONS else "", rows, events, bound)
    sql = _COUNTED.format(value=_VALUES.get(by, _OF_PROPERTY), limit=chosen.rows, rows=rows, counted=counted)
    read += sum(file.rows for file in days.files_of(files, scope.time_range))
    key = "events", scope, chosen, snapshot.rows_key
    return statements.cached(key, lambda: statements.fetch(snapshot, scope, Cells("", bound, read), sql))


def _of_views(snapshot: Snapshot, scope: Scope, by: str, rows: str, events: str, bound: Bound) -> str:
    """Return the relation of the rows with a matching view on the same day, or all without a filter of views."""
    fields = {name: value for name, value in scope.filters.fields.items() if name not in OWN}
    of_views = replace(scope, filters=Filters(scope.filters.policy, **fields))
    share = f"project_id = $project AND visitor IN (SELECT visitor FROM {events})"
    files = days.files_of(snapshot.files, scope.time_range)
    views = days.rows(snapshot, scope.time_range, files) or engine.no_rows(HITS_TABLE)
    masks = {kind: of_views.filters.visitor_mask((kind,), bound) for kind in TRAFFIC}
    parts = visitors.matching(snapshot, of_views, by, share, views, bound)
    return _OF_VIEWS.format(rows=rows, join="JOIN" if fields else "LEFT JOIN", value=by or "NULL", **masks, **parts)


def _evident(snapshot: Snapshot, scope: Scope, rows: str) -> tuple[str, int]:
    """Return the relation of events with the evidence of their visitors, if it counts, and how many rows it reads.

    An event has the evidence of its visitor's views on the same day.
    """
    if not scope.filters.by_evidence:
        return evidence.unknown(rows), 0
    of_events = f"project_id = $project AND visitor IN (SELECT visitor FROM {rows})"
    hits, files = days.evident(snapshot, scope.time_range, of_events, ())
    if hits is None:
        return evidence.unknown(rows), 0
    of_visitors = f"SELECT DISTINCT project_id, date, visitor, evidence FROM {hits}"
    known = f"({of_visitors} WHERE project_id = $project AND traffic = 'human' AND visitor IS NOT NULL)"
    return evidence.joined(rows, known), sum(file.rows for file in files)
