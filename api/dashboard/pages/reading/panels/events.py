"""The card of events, and the card of the files that AI downloaded."""

from typing import Any, NamedTuple

from api.dashboard.pages.reading.measured import Measured
from api.dashboard.pages.reading.panels import goals
from api.dashboard.pages.reading.tables import ROWS
from api.dashboard.web.view import View
from api.reports.parameters import agents_of
from ingest.hits.event import DOWNLOAD
from warehouse.report.audience.events import OWN, ChosenEvents

VALUES = {DOWNLOAD: "url", "Outbound Link: Click": "url", "404": "props.path"}
"""Property by which an event is shown; other events are shown by page."""


class EventTable(NamedTuple):
    """Events, or the values of the event `name`; `rows` is None if the period has too many views to filter by."""

    name: str | None
    by: str
    rows: list[dict[str, Any]] | None
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
    """Return the table; None if there is no event to choose."""
    if view.filters.fields.keys() - OWN and not goals.has_few_views(view):
        return EventTable(name, by, None, has_more=False)
    chosen = ChosenEvents(name, by, agents_of(view.filters["operator"], view.filters["purpose"]), ROWS + 1)
    rows = view.reports.events(view.snapshot, view.query(traffic=traffic), chosen)
    listed = rows.slice(0, ROWS).to_pylist()
    return EventTable(name, by, listed, len(rows) > ROWS) if listed or name else None
