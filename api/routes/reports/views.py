"""The export of page views: one page as JSON, or all paths as a table."""

from typing import Annotated

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth, report_parameters
from api.http.negotiation import accepted
from api.http.operation import ADDRESS, JSON, KEY_OPTION, HasMore, Operation, Success, paging
from api.http.report_parameters import ViewsQuery
from api.routes.reports import measured, reference, responses, threads
from api.routes.reports.measured import Measured
from api.routes.reports.reference import Ai, Human, Total
from api.routes.reports.tables import file_stem_of
from api.state import state_of
from warehouse.report.results import Page

SCHEMA = pa.schema([("path", pa.string()), ("human", pa.int64()), ("ai", pa.int64()), ("total", pa.int64())])
"""Columns of the table."""


class Totals(msgspec.Struct, frozen=True):
    """Views of all paths in the time range."""

    human: Human
    ai: Ai
    total: Total


class PathViews(msgspec.Struct, frozen=True):
    """Views of one path."""

    path: Annotated[str, msgspec.Meta(description="The page's path.")]
    human: Human
    ai: Ai
    total: Total


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Views in a time range: the totals, and one page of the paths."""

    totals: Annotated[Totals, msgspec.Meta(description="Totals of the whole time range, on every page.")]
    views: Annotated[list[PathViews], msgspec.Meta(description="One page of the paths, most viewed first.")]
    has_more: HasMore
    measured: Measured


async def export(request: Request) -> Response:
    """Respond to GET /v1/analytics/{projectId}/views."""
    project = request.path_params["projectId"]
    await auth.key_for(request, state_of(request).keyring, project, "read")
    query = report_parameters.views_query(request)
    media_type = accepted(request, responses.MEDIA_TYPES, "the report")
    return await threads.run(threads.REPORTS, request.receive, _respond, request, project, query, media_type)


def _respond(request: Request, project: str, query: ViewsQuery, media_type: str) -> Response:
    reports = state_of(request).reports
    snapshot = reports.take(query.selection.as_of)
    counted = query.selection.query(project, snapshot.moment)
    if media_type == JSON:
        page = reports.views(snapshot, counted, query.offset, query.limit)
        extents = measured.of(reports.measured(snapshot, counted), counted)
        return responses.document(request, snapshot.moment, report(page, extents))
    return responses.table(
        request,
        snapshot.moment,
        media_type,
        file_stem_of(counted, "views"),
        SCHEMA,
        lambda: reports.all_views(snapshot, counted)[1],
    )


def report(page: Page, extents: Measured) -> Report:
    """Return a page of the export, without the views of bots."""
    totals = Totals(page.totals.human, page.totals.ai, page.totals.total)
    rows = [PathViews(**row) for row in page.rows.select(SCHEMA.names).to_pylist()]
    return Report(totals, rows, page.has_more, extents)


OPERATIONS = (
    Operation(
        id="exportViews",
        method="GET",
        path="/v1/analytics/{projectId}/views",
        handler=export,
        tag="Read",
        summary="Export page views",
        description=f"""\
Views of each path by people and AI agents, from `dateFrom` up to, but not including, `dateTo`. Bots are not counted:
`total` is `human` plus `ai`. Every hit that got a `202` before the request is included. The operation requires a key
with the scope `read` or `write`.

- Paths are sorted by `total`, descending, then by their bytes. `totals` are those of the whole time range, on every
  page.
- All of September is `dateFrom=2026-09-01&dateTo=2026-10-01`. Without `dateFrom` the range begins with the first hit;
  without `dateTo` it ends now.
- While `hasMore` is true, add `limit` to `offset` for the next page. Page n begins at `offset = (n - 1) * limit`. A
  table has all paths and no pages.
{reference.MEASURED_TEXT.format(unknown="Counts of readers who were not measured are 0 here.")}\
{reference.FILTERS_TEXT}{reference.TABLES_TEXT.format(columns="`path`, `human`, `ai` and `total`")}\
{reference.MOMENT_TEXT}""",
        samples={
            "The second page of 50 paths": f"""\
curl "{ADDRESS}/v1/analytics/demo/views?dateFrom=2026-09-01&offset=50" {KEY_OPTION}""",
            "September as CSV": f"""\
curl "{ADDRESS}/v1/analytics/demo/views?dateFrom=2026-09-01&dateTo=2026-10-01" {KEY_OPTION} \\
  -H "Accept: text/csv\"""",
            "All views as Parquet": f"""\
curl {ADDRESS}/v1/analytics/demo/views {KEY_OPTION} \\
  -H "Accept: application/vnd.apache.parquet" -o views.parquet""",
        },
        parameters=(*paging("Paths"), *reference.PARAMETERS),
        responses=(
            Success(
                200,
                "The counts.",
                reference.table_content(
                    Report(
                        Totals(812, 377, 1189),
                        [PathViews("/docs/hello", 61, 180, 241)],
                        has_more=True,
                        measured=Measured("all", "part", "part"),
                    ),
                    "path,human,ai,total\r\n/docs/hello,61,180,241\r\n",
                    PathViews("/docs/hello", 61, 180, 241),
                ),
                reference.HEADERS,
            ),
            reference.NOT_MODIFIED,
        ),
        problems=reference.PROBLEMS,
    ),
)
