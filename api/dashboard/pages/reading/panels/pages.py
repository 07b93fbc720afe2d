"""The card of the pages with most views, and of entry and exit pages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from api.dashboard.pages.reading.measured import FILTERED, Measured
from api.dashboard.pages.reading.panels.dimension import Table, by_dimension, opened
from api.dashboard.pages.reading.tables import BOTH, Row, rows_of
from api.dashboard.web.view import View
from warehouse.report.results import Order

TABLES = ("pages", "entry", "exit")
"""The tables of the card: the first one is PathTable, the others are by a dimension."""
PAGE_ROWS = 10
"""Number of rows on a page of the table."""
SORTS: Mapping[str, Order] = {"views": "total", "people": "human", "ai": "ai", "path": "path"}
"""Orders of the table, by their name in addresses."""


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


class Card(NamedTuple):
    """The card with one of TABLES: `paths`, or the `table` of a dimension. Other bots have neither."""

    names: tuple[str, ...]
    opened: str
    paths: PathTable | None = None
    table: Table | None = None


def card(view: View, measurement: Measured) -> Card | None:
    """Return the card; None if entry and exit pages are not part of the filters."""
    name = opened(view, "pages", TABLES)
    if view.filters["traffic"] == "bot":
        return Card(TABLES, name)
    if name == TABLES[0]:
        return Card(TABLES, name, paths(view, measurement))
    table = by_dimension(view, name, measurement)
    return None if table.reason == FILTERED else Card(TABLES, name, table=table)


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
