"""The errors that AI agents and bots got: one page as JSON, or all rows as a table."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth, report_parameters
from api.http.negotiation import accepted
from api.http.operation import (
    ADDRESS,
    IF_NONE_MATCH,
    JSON,
    KEY_OPTION,
    HasMore,
    Operation,
    Parameter,
    Success,
    paging,
)
from api.http.report_parameters import ERROR_FILTERS, ERROR_TRAFFIC, ErrorsPage
from api.routes.reports import reference, responses, threads
from api.routes.reports.tables import file_stem
from api.state import state_of
from warehouse.report.audience.errors import FIRST_DAY

_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("agent", pa.string()),
        ("traffic", pa.string()),
        ("status", pa.int16()),
        ("requests", pa.int64()),
        ("firstSeen", _TIME),
        ("lastSeen", _TIME),
    ]
)
"""Columns of the table."""


class ErrorRow(msgspec.Struct, frozen=True, rename="camel"):
    """Requests of one path by one agent, answered with one status."""

    path: Annotated[
        str | None, msgspec.Meta(description="The path; null for unnamed bots, HTTP libraries and spoofed agents.")
    ]
    agent: Annotated[str | None, msgspec.Meta(description="Name of the AI agent or bot; null for unnamed bots.")]
    traffic: Literal["ai", "bot"]
    status: Annotated[int, msgspec.Meta(description="HTTP status of the responses.", ge=400, le=599)]
    requests: Annotated[int, msgspec.Meta(description="Number of requests in the time range.")]
    first_seen: Annotated[datetime, msgspec.Meta(description="Time of the first of these requests.")]
    last_seen: Annotated[datetime, msgspec.Meta(description="Time of the last of these requests.")]


class Errors(msgspec.Struct, frozen=True, rename="camel"):
    """One page of the errors in a time range."""

    errors: Annotated[list[ErrorRow], msgspec.Meta(description="One page of the errors, most requests first.")]
    has_more: HasMore


async def list_errors(request: Request) -> Response:
    """Respond to GET /v1/analytics/{projectId}/errors."""
    project = request.path_params["projectId"]
    await auth.key_for(request, state_of(request).keyring, project, "read")
    page = report_parameters.errors_page(request, project)
    media_type = accepted(request, responses.MEDIA_TYPES, "the errors")
    return await threads.run(threads.REPORTS, request.receive, _respond, request, page, media_type)


def _respond(request: Request, page: ErrorsPage, media_type: str) -> Response:
    moment = state_of(request).reports.take(page.as_of).moment
    rows = state_of(request).reports.errors(page.query, moment).rename_columns(SCHEMA.names).cast(SCHEMA)
    if media_type == JSON:
        return responses.document(request, moment, _errors(rows, page))
    first, today = page.query.first, datetime.fromtimestamp(moment.taken_us // 1_000_000, UTC).date()
    last = max(first, min(page.query.end - timedelta(days=1), today))
    stem = file_stem(page.query.project, "errors", None if first == FIRST_DAY else first, last)
    return responses.table(request, moment, media_type, stem, SCHEMA, rows.to_batches)


def _errors(rows: pa.Table, page: ErrorsPage) -> Errors:
    end = page.offset + page.limit
    shown = rows.slice(page.offset, page.limit) if page.offset < rows.num_rows else rows.slice(0, 0)
    return Errors([ErrorRow(*row.values()) for row in shown.to_pylist()], end < rows.num_rows)


_ROW = ErrorRow(
    "/docs/getting-started",
    "GPTBot",
    "ai",
    404,
    8,
    datetime(2026, 9, 2, 4, 11, 9, tzinfo=UTC),
    datetime(2026, 9, 29, 17, 52, 40, tzinfo=UTC),
)
_CSV = """\
path,agent,traffic,status,requests,firstSeen,lastSeen\r
/docs/getting-started,GPTBot,ai,404,8,2026-09-02T04:11:09+00:00,2026-09-29T17:52:40+00:00\r
"""
_DAY = {"format": "date"}
OPERATIONS = (
    Operation(
        id="getErrors",
        method="GET",
        path="/v1/analytics/{projectId}/errors",
        handler=list_errors,
        tag="Read",
        summary="List the errors that AI agents and bots got",
        description=f"""\
Requests of AI agents and bots for pages that were answered with 4xx or 5xx: which missing pages does AI ask for? They
come from access logs and from posts of servers, and are not page views. A page's script does not see them: a project
with beacons alone has none, which is not zero. See `coverage` for the sources of a project. The operation requires a
key with the scope `read` or `write`.

- The range has whole UTC days. A time other than midnight in UTC is refused.
- Rows are sorted by `requests`, descending, then by path and agent in byte order; null comes last.
- The paths of unnamed bots, of HTTP libraries and of spoofed agents are null, because scanners ask for any number of
  random paths.
- The agent of a row is that of the rules at the time of its requests: new rules do not change the row.
- The filters `operator` and `purpose` use the operators and purposes that this release has for the names of agents.
  There is no other filter, because the counts have no other dimension. If the same requests are in a log
  and in posts of a server, their errors count twice, under every source policy.
- While `hasMore` is true, add `limit` to `offset` for the next page. A table has all rows and no pages.
{reference.TABLES_TEXT.format(columns=", ".join(f"`{name}`" for name in SCHEMA.names[:-1]) + " and `lastSeen`")}\
{reference.MOMENT_TEXT}""",
        samples={
            "Missing pages that AI asked for in September": f"""\
curl "{ADDRESS}/v1/analytics/demo/errors?traffic=ai&status=404&dateFrom=2026-09-01&dateTo=2026-10-01" {KEY_OPTION}""",
            "Everything that GPTBot did not get below one path, as CSV": f"""\
curl "{ADDRESS}/v1/analytics/demo/errors?agent=GPTBot&path=/docs/*" {KEY_OPTION} -H "Accept: text/csv\"""",
        },
        parameters=(
            Parameter("dateFrom", "First UTC day of the range.", _DAY, example="2026-09-01"),
            Parameter("dateTo", "UTC day before which the range ends.", _DAY, example="2026-10-01"),
            *(each for each in reference.FILTERS if each.name in {*ERROR_FILTERS} - {"traffic", "status"}),
            Parameter("traffic", "Only AI agents or other bots.", {"enum": list(ERROR_TRAFFIC)}),
            Parameter("status", "Only this HTTP status.", {"type": "integer", "minimum": 400, "maximum": 599}),
            *paging("Errors"),
            reference.AS_OF_PARAMETER,
            IF_NONE_MATCH,
        ),
        responses=(
            Success(
                200,
                "The errors.",
                reference.table_content(Errors([_ROW], has_more=True), _CSV, _ROW),
                reference.HEADERS,
            ),
            reference.NOT_MODIFIED,
        ),
        problems=reference.PROBLEMS,
    ),
)
