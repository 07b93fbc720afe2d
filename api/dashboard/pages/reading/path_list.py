"""The pages of a site: views by people and by AI for each path, and lists of the pages that only people read, that only
AI reads, and that AI read for the first time."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from starlette.responses import Response

from api.dashboard.pages.reading import measured, tables
from api.dashboard.pages.reading.export import table_file
from api.dashboard.pages.reading.measured import Measured
from api.dashboard.pages.reading.overview import SEARCH, to_pages
from api.dashboard.pages.reading.panels import pages
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import View
from api.dashboard.web.visit import ProjectVisit
from api.http.operation import CSV
from api.reports.records import VIEWS
from api.reports.report import Table
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST
from warehouse.report.pages import PATHS_MAX
from warehouse.report.results import Audience, Counts, Query, ReportPage

ROWS = 50
"""Number of paths on a page of the table."""
NEW, NOT_AI = "new", "not-ai"
FIRST_READ = "first"
"""Order of the table by the day of the first view by AI, the newest first."""
TABS: dict[str, Audience] = {"all": "all", "ai-only": "ai_only", NOT_AI: "people_only", NEW: "all"}
"""Audience of the paths of each tab. The tab NEW has the paths that AI read for the first time in the period."""
DEFAULT_SORTS = dict.fromkeys(TABS, "views") | {NEW: FIRST_READ}
TAB_NAMES = {"all": "All pages", "ai-only": "Read by AI only", NOT_AI: "Not read by AI", NEW: "New to AI"}
WITH_BOTS = VIEWS.columns.insert(3, pa.field("bot", pa.int64()))
FIRST_READ_COLUMN = "first_read_by_ai"
WITH_FIRST_READ = VIEWS.columns.append(pa.field(FIRST_READ_COLUMN, pa.date32()))
"""Columns of the list as CSV in the order FIRST_READ. A page that AI never read has no day."""


def path_list(visit: ProjectVisit) -> Response:
    view = View(visit)
    view.drop("traffic")
    if SEARCH in view.values:
        return to_pages(view, show=view.values.get("show"))
    tab, number = _tab(view), view.page_number()
    sort = _order(view, tab)
    measurement = measured.measured_in(view)
    is_known = _is_known(tab, measurement)
    shown = _page(view, tab, sort, (number - 1) * ROWS) if measurement.sources and is_known else None
    paths = shown.rows["path"].to_pylist() if shown else []
    return render.counts_page(
        view,
        "reading/path_list.html",
        title=f"Pages of {view.project.id}",
        tab="Pages",
        measured=measurement,
        tabs=TAB_NAMES,
        default_sort=DEFAULT_SORTS[tab],
        sorted_max=PATHS_MAX,
        chosen=tab,
        sort=sort,
        number_of_page=number,
        first=(number - 1) * ROWS + 1,
        rows=tables.rows_of(view, shown, "path") if shown else [],
        first_days=view.reports.first_ai_days(view.snapshot, view.query(), paths) if paths else {},
        is_known=is_known,
        has_more=shown is not None and shown.has_more,
        known=measurement.shown(Counts(), view.period.start, view.period.end),
    )


def export(visit: ProjectVisit) -> Response:
    view = View(visit)
    view.drop("traffic")
    tab = _tab(view)
    sort = _order(view, tab)
    view.require_valid()
    name = "pages" if tab == "all" else f"pages-{tab}"
    if not _is_known(tab, measured.measured_in(view)):
        return table_file(view, CSV, name, Table(VIEWS.columns, tuple))
    if sort == FIRST_READ:
        rows = pa.Table.from_batches(_all(view, tab, "views"), WITH_BOTS)
        return table_file(view, CSV, name, Table(WITH_FIRST_READ, _by_first_read(view, rows).to_batches))
    return table_file(view, CSV, name, Table(VIEWS.columns, lambda: _all(view, tab, sort)))


def _is_known(tab: str, measurement: Measured) -> bool:
    """Return whether the paths of a tab are known: without a count of AI, AI never read any page."""
    return tab != NOT_AI or measurement.extent("ai") != "none"


def _tab(view: View) -> str:
    tab = view.values.get("show", "all")
    if tab not in TABS:
        view.faults.append(f"There is no list “{tab[:40]}” of pages; these are all of them.")
        return "all"
    return tab


def _order(view: View, tab: str) -> str:
    """Return the name of the order of the paths: a key of `pages.SORTS`, or FIRST_READ."""
    return FIRST_READ if view.values.get("sort", DEFAULT_SORTS[tab]) == FIRST_READ else pages.order(view)


def _page(view: View, tab: str, sort: str, offset: int, limit: int = ROWS) -> ReportPage:
    if sort == FIRST_READ:
        rows = _by_first_read(view, _page(view, tab, "views", 0, PATHS_MAX).rows)
    elif tab == NEW:
        rows = pa.Table.from_batches(_all(view, tab, sort), WITH_BOTS)
    else:
        return view.reports.views(view.snapshot, view.query(), offset, limit, pages.SORTS[sort], TABS[tab])
    return ReportPage.of(Counts(), rows, offset, limit)


def _by_first_read(view: View, rows: pa.Table) -> pa.Table:
    """Return rows in the order of FIRST_READ, with the day. Rows of one day, and those without, keep their order.

    The days are read in parts of PATHS_MAX paths.
    """
    paths = rows["path"].to_pylist()
    first: dict[str, date] = {}
    for start in range(0, len(paths), PATHS_MAX):
        first |= view.reports.first_ai_days(view.snapshot, view.query(), paths[start : start + PATHS_MAX])
    days = pa.array(map(first.get, paths), pa.date32())
    keys = pa.table({"day": days, "rank": range(len(paths))})
    order = pc.sort_indices(keys, [("day", "descending"), ("rank", "ascending")])
    return rows.append_column(FIRST_READ_COLUMN, days).take(order)


def _all(view: View, tab: str, sort: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all paths of a tab in an order of `pages.SORTS`."""
    _, batches = view.reports.all_views(view.snapshot, view.query(), pages.SORTS[sort], TABS[tab])
    if tab != NEW:
        yield from batches
        return
    rows = pa.Table.from_batches(batches, WITH_BOTS)
    is_new = pc.and_not(pc.greater(rows["ai"], 0), pc.is_in(rows["path"], _read_before(view)))
    yield from rows.filter(is_new).to_batches()


def _read_before(view: View) -> pa.Array:
    """Return the paths that any AI agent read before the period, or on the day on which counting of AI began."""
    spans = view.reports.measured(view.snapshot, view.query()).spans["ai"]
    began = spans[0].start.astimezone(view.zone).date() if spans else date.min
    end = datetime.combine(began + timedelta(days=1), time(), view.zone).astimezone(UTC)
    filters = Filters(path=view.filters.path, traffic="ai")
    query = Query(view.project.id, FIRST, max(view.period.start, end), filters, view.now)
    _, batches = view.reports.all_views(view.snapshot, query)
    return pa.concat_arrays([pa.array([], pa.string()), *(batch["path"].cast(pa.string()) for batch in batches)])


PAGES = (
    Page("GET", "/projects/{project}/pages", path_list, Access.PROJECT),
    Page("GET", "/projects/{project}/pages.csv", export, Access.PROJECT),
)
