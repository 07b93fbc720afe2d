"""Cards with views by the values of a dimension, one of several in turn."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from api.dashboard.pages.reading.measured import FILTERED, Measured
from api.dashboard.pages.reading.panels.panel import Panel
from api.dashboard.pages.reading.tables import ROWS, TOO_MANY, Row, known_since, own_hosts, rows_of
from api.dashboard.web.view import View
from api.reports.records import ALL_ROWS
from warehouse.columns.dimensions import OF_VISITS, dimension
from warehouse.errors import TooManyViews
from warehouse.report.results import Counts, Query, ReportPage


@dataclass(frozen=True, slots=True)
class Dimension:
    """A table by a dimension of the API. `traffic` limits the table to one kind of readers.

    `empty` is the sentence for a table without a row; None for the usual one.
    """

    title: str
    by: str
    traffic: str | None = None
    unknown: str = "Unknown"
    empty: str | None = None

    @property
    def column(self) -> str:
        return dimension(self.by).title


CAMPAIGNS = {
    "campaigns": ("source", "Campaigns by source"),
    "media": ("medium", "Campaigns by medium"),
    "names": ("campaign", "Campaigns by name"),
    "terms": ("term", "Campaigns by term"),
    "contents": ("content", "Campaigns by content"),
}
"""UTM field and title of each table of campaigns, by its name in addresses."""
DIMENSIONS = {
    "operators": Dimension("AI operators", "operator", "ai"),
    "agents": Dimension("AI agents", "agent", "ai"),
    "purposes": Dimension("AI purposes", "purpose", "ai"),
    "referrers": Dimension("Referrers", "referrerHost", "human", unknown="Direct or unknown"),
    "channels": Dimension("Channels", "channel", "human", empty="The channels of these views are not known."),
    **{
        name: Dimension(title, "utm" + field.title(), "human", empty=f"No visit came from a link with utm_{field}.")
        for name, (field, title) in CAMPAIGNS.items()
    },
    "countries": Dimension("Countries", "country", "human", empty="The countries of these views are not known."),
    "languages": Dimension("Languages", "language", "human", empty="The languages of these views are not known."),
    "devices": Dimension("Devices", "device", "human"),
    "browsers": Dimension("Browsers", "browser", "human"),
    "systems": Dimension("Operating systems", "os", "human"),
    "sources": Dimension("Sources", "source"),
    "entry": Dimension("Entry pages", "entryPage", "human"),
    "exit": Dimension("Exit pages", "exitPage", "human"),
}
"""The tables by their name in addresses."""
BEGAN_LATER = ("channel", "country", "language")
"""Dimensions that views which an older release stored do not have."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a table, and whether more follow. `name` names its export, and `kind` the readers who are counted.

    `reason` is the reason why nothing was counted; None if the readers were counted. `hides_rows` is whether rows were
    left out: the site's own hosts, or views without a channel or campaign. `since` is the day from which the values are
    known, if the period has views without one.
    """

    name: str
    dimension: Dimension
    kind: str
    reason: str | None
    rows: list[Row]
    has_more: bool
    hides_rows: bool
    since: str | None = None


class Card(NamedTuple):
    """A card with a table for each of `names`, which are keys of DIMENSIONS. The table `opened` is shown."""

    names: tuple[str, ...]
    opened: str
    table: Table


def card(id: str, *names: str) -> Panel:
    """Return the card with the tables `names`, of which the first is open by default."""

    def data(view: View, measurement: Measured) -> Card | None:
        name = opened(view, id, names)
        table = by_dimension(view, name, measurement)
        return None if table.reason == FILTERED else Card(names, name, table)

    return Panel(id, data, "dimension")


def opened(view: View, id: str, names: tuple[str, ...]) -> str:
    """Return the table of a card that the address asks for."""
    name = view.values.get(id)
    return name if name in names else names[0]


def by_dimension(view: View, name: str, measurement: Measured) -> Table:
    dimension = DIMENSIONS[name]
    kind = dimension.traffic or "human"
    if dimension.by in OF_VISITS:
        measurement = replace(measurement, known=view.run().visitors_known)
    reason = measurement.reason(kind)
    nothing = Table(name, dimension, kind, reason, [], has_more=False, hides_rows=False)
    if reason == FILTERED:
        return nothing
    hidden = _hidden(view, dimension)
    try:
        page = _page(view, query(view, dimension), dimension.by, ROWS + len(hidden))
    except TooManyViews:
        return replace(nothing, reason=TOO_MANY)
    shown = without(page, hidden)
    rows = rows_of(view, replace(shown, rows=shown.rows.slice(0, ROWS)), dimension.by, dimension.unknown)
    has_more = shown.has_more or shown.rows.num_rows > ROWS
    if dimension.empty and [row.value for row in rows] == [None]:
        rows = []
    if reason and not rows:
        return nothing
    if view.previous and measurement.compares(kind):
        with suppress(TooManyViews):  # of the previous period only: the rows have no change
            previous = before(view, dimension.by, [row.value for row in rows], traffic=kind)
            rows = [replace(row, before=getattr(previous.get(row.value, Counts()), kind)) for row in rows]
    is_known = dimension.by not in BEGAN_LATER or None not in page.rows["value"].to_pylist()
    since = None if is_known else known_since(view, measurement, dimension.by)
    return Table(name, dimension, kind, None, rows, has_more, shown.rows.num_rows < page.rows.num_rows, since)


def _page(view: View, query: Query, by: str, limit: int) -> ReportPage:
    """Return the first values of a dimension with their views; entry and exit pages have their visits instead."""
    if by not in OF_VISITS:
        return view.reports.breakdown(view.snapshot, query, by, 0, limit)
    counts = view.reports.visitor_counts(view.snapshot, query, by)
    none = pa.array([0] * len(counts), pa.int64())
    rows = pa.table({"value": counts[by], "human": counts["visits"], "ai": none, "bot": none})
    order = [("human", "descending"), ("value", "ascending")]
    return ReportPage.of(Counts(), rows.filter(pc.field("human") > 0).sort_by(order), 0, limit)


def before(view: View, by: str, values: Sequence[str | None], **filters: str | None) -> dict[str | None, Counts]:
    """Return the counts of some values of a dimension in the previous period."""
    rows = _page(view, view.query(view.previous, **filters), by, ALL_ROWS).rows
    listed = rows.filter(pc.is_in(rows["value"], pa.array(values, pa.string()))).to_pylist()
    return {row["value"]: Counts(row["human"], row["ai"], row["bot"]) for row in listed}


def _hidden(view: View, dimension: Dimension) -> frozenset[str | None]:
    """Return the values that the table leaves out, but that the file of the table contains."""
    if dimension.by == "channel" or dimension.by.startswith("utm"):
        return frozenset({None})
    return frozenset(own_hosts(view)) if dimension.by == "referrerHost" else frozenset()


def without(page: ReportPage, values: frozenset[str | None]) -> ReportPage:
    """Return a page of a breakdown without the rows of some values. Its totals include them."""
    is_hidden = pc.is_in(page.rows["value"], pa.array(list(values), pa.string()))
    return replace(page, rows=page.rows.filter(pc.invert(is_hidden)))


def query(view: View, dimension: Dimension) -> Query:
    """Return the query of a dimension's table: the view's query, limited to the readers of the dimension.

    If the page is filtered by other readers, the table is of these readers instead.
    """
    return view.query(traffic=view.filters["traffic"] or dimension.traffic)
