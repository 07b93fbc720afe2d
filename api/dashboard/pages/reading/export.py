"""The tables of the overview as CSV and Parquet: all rows of what the page shows, with its period and filters."""

from functools import partial
from itertools import chain

from starlette.responses import Response, StreamingResponse

from api.dashboard.pages.reading.panels import dimension, pages
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import View
from api.dashboard.web.visit import ProjectVisit
from api.http.cors import AS_OF
from api.http.operation import CSV, PARQUET
from api.reports import threads
from api.reports.formats import FORMATS, file_stem, rebatched
from api.reports.records import BREAKDOWN, SERIES, VIEWS
from api.reports.report import Table

TIME, PAGES_REPORT = "time", "pages"
REPORTS = (TIME, PAGES_REPORT, *dimension.DIMENSIONS)
"""Names of the reports in addresses."""


def export(media_type: str, visit: ProjectVisit) -> Response:
    """Respond to GET /projects/{project}/export.csv or export.parquet."""
    view = View(visit)
    name = view.values.get("report", PAGES_REPORT)
    if name not in REPORTS:
        view.faults.append(f"There is no report “{name[:40]}”: it is one of {', '.join(REPORTS)}.")
    report = _report(view, name, media_type)
    view.require_valid()
    return table_file(view, media_type, name, report)


def table_file(view: View, media_type: str, name: str, table: Table) -> Response:
    """Return the response with a table as a file, whose name has the project's id and the days of the page.

    The file has no ETag, which would need the rows twice. The first rows are computed before the response begins, so
    that an error has its own status.
    """
    form = FORMATS[media_type]
    stem = file_stem(view.project.id, name, view.period.first, view.period.last)
    headers = {
        "Cache-Control": "private, no-store",
        "Content-Disposition": f'attachment; filename="{stem}.{form.suffix}"',
        "Vary": "Cookie",
        AS_OF: str(view.snapshot.moment),
    }
    batches = iter(table.batches())
    first = next(batches, None)
    rows = batches if first is None else chain([first], batches)
    limit = threads.REPORTS if view.visit.share is None else threads.SHARED
    chunks = form.chunks(table.columns, rebatched(table.columns, rows))
    return StreamingResponse(threads.streamed(limit, chunks), 200, headers, media_type)


def _report(view: View, name: str, media_type: str) -> Table:
    if name == TIME:
        return SERIES.table(view.run(interval=view.period.interval, zone=view.zone), media_type)
    if name == PAGES_REPORT or name not in dimension.DIMENSIONS:
        return VIEWS.table(view.run(order=pages.SORTS[pages.order(view)]), media_type)
    chosen = dimension.DIMENSIONS[name]
    return BREAKDOWN.table(view.run(dimension.query(view, chosen), by=chosen.by), media_type)


PAGES = (
    Page("GET", "/projects/{project}/export.csv", partial(export, CSV), Access.PROJECT),
    Page("GET", "/projects/{project}/export.parquet", partial(export, PARQUET), Access.PROJECT),
)
