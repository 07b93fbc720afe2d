"""Events by name, and by the value of a column or property."""

from typing import NamedTuple

import pyarrow as pa

from warehouse.columns import evidence
from warehouse.columns.filters import Filters
from warehouse.columns.sources import BITS
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange
from warehouse.report.cells import Cells, Scope
from warehouse.report.statements import Statements
from warehouse.rollups.days import files_of
from warehouse.tables import EVENTS_TABLE

COLUMNS = ("path", "agent", "source")
"""Columns by which events are counted. Any other name is that of a property, also with `props.` before it."""
ROWS_MAX = 10_000
"""Maximum number of rows: strangers choose the values of properties."""
_READ = "project_id, {date}, ts, name, path, visitor, traffic, agent, source, props, NULL::VARCHAR AS format"
_COUNTED = """
SELECT name, {value}::VARCHAR AS value, traffic, count(*)::BIGINT AS events,
    nullif(count(DISTINCT if(visitor IS NULL, NULL, (day, visitor))), 0)::BIGINT AS visitors,
    coalesce(list_sort(list(DISTINCT agent) FILTER (agent IS NOT NULL)), []) AS agents
FROM (SELECT *, date AS day, {bits} AS sources FROM {rows})
WHERE project_id = $project AND ts >= $start AND ts < $end AND name = coalesce($name, name)
    AND ($agents::VARCHAR[] IS NULL OR list_contains($agents, agent)) AND {conditions}
GROUP BY ALL ORDER BY events DESC, name, value NULLS LAST, traffic LIMIT {limit}
"""


def relation(events: Snapshot, time_range: TimeRange) -> str:
    """Return the events of a snapshot on the days of a range, beside the relation `hot_events` of waiting ones."""
    files = files_of(events.files, time_range)
    stored = f"SELECT {_READ.format(date='date')} FROM {engine.rows(EVENTS_TABLE, files)} UNION ALL " if files else ""
    return f"({stored}SELECT {_READ.format(date='ts::DATE AS date')} FROM hot_events)"


class ChosenEvents(NamedTuple):
    """Events of one name, or of all, by one of COLUMNS, a property, or nothing. `agents` are those of an operator."""

    name: str | None = None
    by: str = ""
    agents: tuple[str, ...] | None = None


def counts(statements: Statements, events: Snapshot, scope: Scope, chosen: ChosenEvents) -> pa.Table:
    """Return name, value, traffic, events, visitors and agents: most events first. Visitors are null if unknown.

    Without a filter by traffic, bots are left out. A property is read by its JSON pointer.
    """
    filters, by = scope.filters, chosen.by
    counted, bound = Filters(filters.policy, source=filters["source"]).condition()
    bound |= {"project": scope.project, "start": scope.time_range.start, "end": scope.time_range.end}
    bound |= {"name": chosen.name, "agents": chosen.agents}
    conditions = [counted, *filters.conditions(("path", "traffic", "agent"), bound)]
    if by and by not in COLUMNS:
        bound["property"] = "/" + by.removeprefix("props.").replace("~", "~0").replace("/", "~1")
    sql = _COUNTED.format(
        value=by if by in COLUMNS else "json_extract_string(props, $property)" if by else "NULL",
        bits=BITS,
        limit=ROWS_MAX,
        rows=evidence.unknown(relation(events, scope.time_range)),
        conditions=" AND ".join(conditions if filters["traffic"] else [*conditions, "traffic <> 'bot'"]),
    )
    cells = Cells("", bound, sum(file.rows for file in files_of(events.files, scope.time_range)))
    key, hot = ("events", scope, chosen, events.rows_key), {"hot_events": events.hot}
    return statements.cached(key, lambda: statements.fetch(events, scope, cells, sql, hot))
