"""The card of events, and the card of the files that AI downloaded."""

from typing import Any, NamedTuple

from api.dashboard.pages.reading.measured import Measured
from api.dashboard.pages.reading.tables import ROWS
from api.dashboard.web.view import View
from api.reports.parameters import agents_of
from ingest.hits.event import DOWNLOAD
from warehouse.report.audience.events import ChosenEvents

FILTERS = frozenset({"path", "traffic", "agent", "operator", "source"})
"""Filters that events have."""
VALUES = {DOWNLOAD: "url", "Outbound Link: Click": "url", "404": "props.path"}
"""Property by which an event is shown; other events are shown by page."""


class EventTable(NamedTuple):
    """Events of one kind of readers, or the values of the event `name` by a property or column."""

    name: str | None
    by: str
    rows: list[dict[str, Any]]
    has_more: bool


def events(view: View, _: Measured) -> EventTable | None:
    """Return the events of people, or of the readers of the filter; None without an event."""
    name = view.values.get("event")
    return _table(view, view.filters["traffic"] or "human", name, VALUES.get(name, "path") if name else "")


def downloads(view: View, _: Measured) -> EventTable | None:
    """Return the files that AI downloaded; None if it downloaded none."""
    table = _table(view, "ai", DOWNLOAD, "path")
    return table if table and table.rows else None


def _table(view: View, traffic: str, name: str | None, by: str) -> EventTable | None:
    """Return the table; None with a filter that events do not have, or if there is no event to choose."""
    if view.filters.fields.keys() - FILTERS:
        return None
    chosen = ChosenEvents(name, by, agents_of(view.filters["operator"], None), ROWS + 1)
    rows = view.reports.events(view.snapshot, view.query(traffic=traffic), chosen)
    listed = rows.slice(0, ROWS).to_pylist()
    return EventTable(name, by, listed, len(rows) > ROWS) if listed or name else None
