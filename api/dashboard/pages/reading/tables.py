"""The tables of the overview: the pages, and the views by a dimension. Their numbers are those of the API."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from api.dashboard.charts import bar
from api.dashboard.pages.reading import measured
from api.dashboard.pages.reading.measured import FILTERED, Measured, Shown
from api.dashboard.web import links
from api.dashboard.web.view import SOURCES, View, value_name
from warehouse.columns.dimensions import FILTERS, OF_VISITS, dimension
from warehouse.errors import TooManyViews
from warehouse.report.results import Counts, Order, Query, ReportPage
from warehouse.report.source_coverage import SourceCoverage

PAGE_ROWS = 10
"""Number of rows on a page of the table of pages."""
ROWS = 8
"""Number of rows of the other tables, which have no pages."""
ALL_ROWS = 1 << 40
"""Number of rows that is larger than that of any breakdown."""
TOO_MANY = "counted for shorter periods only, because of these filters"
"""Reason why a period with many views has no visitors and visits."""
NO_NAMES: Mapping[str, str] = MappingProxyType({})
BOTH = ("human", "ai")
"""Kinds of readers in the total of a page."""
SORTS: Mapping[str, Order] = {"views": "total", "people": "human", "ai": "ai", "path": "path"}
"""Orders of the table of pages, by their name in addresses."""


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
        name: Dimension(
            title, "utm" + field.capitalize(), "human", empty=f"No visit came from a link with utm_{field}."
        )
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


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table. `link` is the address of the page with this row as a filter; None for the unknown value.

    `name` is the value as the page shows it. `before` are the views in the previous period; None if they are unknown,
    or if the page does not compare.
    """

    value: str | None
    name: str
    counts: Counts | Shown
    bar: Markup
    link: str | None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a table, and whether more follow. `name` is that of the export, and `kind` that of the counted readers.

    `reason` is the reason why nothing was counted; None if the readers were counted. `hides_rows` is whether rows were
    left out: the site's own hosts, or views without a channel or campaign.
    """

    name: str
    dimension: Dimension
    kind: str
    reason: str | None
    rows: list[Row]
    has_more: bool
    hides_rows: bool


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source. `source` is None if it is not set up. `before` are the views in the previous period, as in Row."""

    name: str
    shown: Shown
    before: int | None
    source: SourceCoverage | None
    link: str


@dataclass(frozen=True, slots=True)
class PathTable:
    """A page of the table of pages. `sort` is a key of SORTS."""

    rows: list[Row]
    sort: str
    number: int
    has_more: bool

    @property
    def first(self) -> int:
        """Return the rank of the first row."""
        return (self.number - 1) * PAGE_ROWS + 1


def paths(view: View, measurement: Measured) -> PathTable:
    """Return the pages of a view by the parameters `sort` and `page`. Add an invalid one to the faults of the view."""
    sort, number = order(view), view.page_number()
    page = view.reports.views(view.snapshot, view.query(), (number - 1) * PAGE_ROWS, PAGE_ROWS, SORTS[sort])
    rows = rows_of(view, page, "path")
    counted = [kind for kind in BOTH if measurement.reason(kind) is None]
    if rows and view.previous and measurement.compares(*counted):
        listed = [row.value for row in rows if row.value is not None]
        counts = view.reports.views_of(view.snapshot, view.query(view.previous), listed)
        before = {path: sum(getattr(each, kind) for kind in counted) for path, each in counts.items()}
        rows = [replace(row, before=before.get(row.value or "", 0)) for row in rows]
    return PathTable(rows, sort, number, page.has_more)


def order(view: View) -> str:
    """Return the name of the order of the pages: a key of SORTS."""
    sort = view.values.get("sort", "views")
    if sort not in SORTS:
        view.faults.append(f"The pages cannot be sorted by “{sort[:40]}”; they are sorted by views.")
        return "views"
    return sort


def by_dimension(view: View, name: str, measurement: Measured) -> Table:
    """Return a table of DIMENSIONS."""
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
            before = _before(view, dimension.by, [row.value for row in rows], traffic=kind)
            rows = [replace(row, before=getattr(before.get(row.value, Counts()), kind)) for row in rows]
    return Table(name, dimension, kind, None, rows, has_more, shown.rows.num_rows < page.rows.num_rows)


def _page(view: View, query: Query, by: str, limit: int) -> ReportPage:
    """Return the first values of a dimension with their views; entry and exit pages have their visits instead."""
    if by not in OF_VISITS:
        return view.reports.breakdown(view.snapshot, query, by, 0, limit)
    counts = view.reports.visitor_counts(view.snapshot, query, by)
    none = pa.array([0] * len(counts), pa.int64())
    rows = pa.table({"value": counts[by], "human": counts["visits"], "ai": none, "bot": none})
    order = [("human", "descending"), ("value", "ascending")]
    return ReportPage.of(Counts(), rows.filter(pc.field("human") > 0).sort_by(order), 0, limit)


def _before(view: View, by: str, values: Sequence[str | None], **filters: str | None) -> dict[str | None, Counts]:
    """Return the counts of some values of a dimension in the previous period."""
    rows = _page(view, view.query(view.previous, **filters), by, ALL_ROWS).rows
    listed = rows.filter(pc.is_in(rows["value"], pa.array(values, pa.string()))).to_pylist()
    return {row["value"]: Counts(row["human"], row["ai"], row["bot"]) for row in listed}


def _hidden(view: View, dimension: Dimension) -> frozenset[str | None]:
    """Return the values that the table leaves out, but that the file of the table contains."""
    if dimension.by == "channel" or dimension.by.startswith("utm"):
        return frozenset({None})
    return frozenset(own_hosts(view)) if dimension.by == "referrerHost" else frozenset()


def own_hosts(view: View) -> frozenset[str]:
    """Return the hosts of the site itself: links between its pages are not referrers that its owner looks for."""
    return frozenset(host for origin in view.project.origins if (host := urlsplit(origin).hostname))


def without(page: ReportPage, values: frozenset[str | None]) -> ReportPage:
    """Return a page of a breakdown without the rows of some values. Its totals include them."""
    is_hidden = pc.is_in(page.rows["value"], pa.array(list(values), pa.string()))
    return replace(page, rows=page.rows.filter(pc.invert(is_hidden)))


def sources(view: View, measurement: Measured) -> list[SourceRow]:
    """Return a row for each source that the filters of the view select, with None for what was not counted."""
    rows = view.reports.breakdown(view.snapshot, view.query(), "source", 0, len(SOURCES)).rows.to_pylist()
    counts = {row["value"]: Counts(row["human"], row["ai"], row["bot"]) for row in rows}
    by_name = {source.source: source for source in measurement.sources}
    before = _before(view, "source", measurement.selected) if view.previous else {}
    result = []
    for name in measurement.selected:
        source = by_name.get(name)
        now, then = (
            source and each and measurement.known.extent_of(source.spans, each.start, each.end)
            for each in (view.period, view.previous)
        )
        has_counted = now in ("all", "part")
        counted = [kind for kind in BOTH if has_counted and measurement.is_shown(name, kind)]
        numbers = measured.shown(counts.get(name, Counts()), counted)
        total = before.get(name, Counts()).total if now == then == "all" else None
        result.append(SourceRow(SOURCES[name], numbers, total, source, view.link(source=name)))
    return result


def query(view: View, dimension: Dimension) -> Query:
    """Return the query of a dimension's table: that of the view, limited to the readers of the dimension.

    If the page is filtered by other readers, the table is of these readers instead.
    """
    return view.query(traffic=view.filters["traffic"] or dimension.traffic)


def rows_of(
    view: View,
    page: ReportPage,
    by: str,
    unknown: str = "Unknown",
    names: Mapping[str, str] = NO_NAMES,
    **carry: str | None,
) -> list[Row]:
    """Return the rows of a page of a breakdown, or of views, whose rows are paths without other bots.

    `names` are other names of values, and `carry` is in links.
    """
    column = "path" if "path" in page.rows.column_names else "value"
    name = links.readable if by in {"path", *OF_VISITS} else partial(value_name, by)
    listed, has_bots = page.rows.to_pylist(), column == "value"
    counts = [(row[column], Counts(row["human"], row["ai"], row["bot"] if has_bots else 0)) for row in listed]
    largest = max((each.human + each.ai + each.bot for _, each in counts), default=0)
    return [
        Row(
            value,
            unknown if value is None else names.get(value) or name(value),
            each,
            bar.svg(each, largest),
            None if value is None or by not in {"source", *FILTERS} else view.link(**(carry | {by: value})),
        )
        for value, each in counts
    ]
