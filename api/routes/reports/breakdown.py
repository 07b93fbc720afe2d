"""The views by the values of a dimension, such as agents: one page as JSON, or all values as a table."""

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth, report_parameters
from api.http.negotiation import accepted
from api.http.operation import ADDRESS, JSON, KEY_OPTION, NDJSON, HasMore, Operation, Parameter, Success, paging
from api.http.report_parameters import BreakdownQuery
from api.routes.reports import measured, reference, responses, threads
from api.routes.reports.measured import Ai, Bot, Counts, Hidden, Human, Measured, Total
from api.routes.reports.tables import file_stem_of
from api.state import state_of
from warehouse.columns.dimensions import BREAKDOWNS
from warehouse.report.results import Page

SCHEMA = pa.schema([("value", pa.string()), *((name, pa.int64()) for name in ("human", "ai", "bot", "total"))])
"""Columns of the rows; in CSV and Parquet the first one has the name of the dimension."""
_COLUMNS = "`value` (in CSV and Parquet the name of the dimension), `human`, `ai`, `bot` and `total`"
Batches = Callable[[], Iterable[pa.RecordBatch]]


class ValueViews(msgspec.Struct, frozen=True):
    """Views with one value of the dimension."""

    value: Annotated[str | None, msgspec.Meta(description="The value; null if it is unknown or does not apply.")]
    human: Human
    ai: Ai
    bot: Bot
    total: Total


class Breakdown(msgspec.Struct, frozen=True, rename="camel"):
    """Views in a time range by the values of a dimension: the totals, and one page of the values."""

    totals: Annotated[Counts, msgspec.Meta(description="Totals of the whole time range, on every page.")]
    rows: Annotated[list[ValueViews], msgspec.Meta(description="One page of the values, most viewed first.")]
    has_more: HasMore
    measured: Measured


async def break_down(request: Request) -> Response:
    """Respond to GET /v1/analytics/{projectId}/breakdown."""
    project = request.path_params["projectId"]
    await auth.key_for(request, state_of(request).keyring, project, "read")
    query = report_parameters.breakdown_query(request)
    media_type = accepted(request, responses.MEDIA_TYPES, "the breakdown")
    return await threads.run(threads.REPORTS, request.receive, _respond, request, project, query, media_type)


def _respond(request: Request, project: str, query: BreakdownQuery, media_type: str) -> Response:
    reports = state_of(request).reports
    snapshot = reports.take(query.selection.as_of)
    counted = query.selection.query(project, snapshot.moment)
    known = reports.measured(snapshot, counted)
    hidden = measured.hidden(known, counted)
    if media_type == JSON:
        page = reports.breakdown(snapshot, counted, query.by, query.offset, query.limit)
        content = _breakdown(page, hidden, measured.of(known, counted))
        return responses.document(request, snapshot.moment, content)

    def values() -> Iterable[pa.RecordBatch]:
        return (measured.hide(each, hidden) for each in reports.all_breakdown(snapshot, counted, query.by)[1])

    schema, batches = (SCHEMA, values) if media_type == NDJSON else columns(query.by, values)
    return responses.table(request, snapshot.moment, media_type, file_stem_of(counted, query.by), schema, batches)


def columns(by: str, values: Batches) -> tuple[pa.Schema, Batches]:
    """Return the columns and the rows of a table whose first column has the name of the dimension, and not `value`."""
    schema = SCHEMA.set(0, SCHEMA.field(0).with_name(by))
    return schema, lambda: (batch.select(SCHEMA.names).rename_columns(schema.names) for batch in values())


def _breakdown(page: Page, hidden: Hidden, extents: Measured) -> Breakdown:
    rows = [ValueViews(**row) for row in measured.hide(page.rows, hidden).select(SCHEMA.names).to_pylist()]
    return Breakdown(measured.totals(page.totals, hidden), rows, page.has_more, extents)


OPERATIONS = (
    Operation(
        id="getBreakdown",
        method="GET",
        path="/v1/analytics/{projectId}/breakdown",
        handler=break_down,
        tag="Read",
        summary="Break views down by agent, referrer or another dimension",
        description=f"""\
Views by people, AI agents and other bots with each value of the dimension `by`. `dateFrom` and `dateTo` are those of
the export of page views. The operation requires a key with the scope `read` or `write`.

- Values are sorted by `total`, descending, then by their bytes; an unknown value (null) is after the values with the
  same total. A value that only bots have has a `total` of 0.
- The totals are the sums of the rows of all pages, and equal those of `views` with the same parameters.
- While `hasMore` is true, add `limit` to `offset` for the next page. A table has all values and no pages.
{reference.MEASURED_TEXT.format(unknown=reference.UNKNOWN_TEXT)}{reference.FILTERS_TEXT}\
{reference.TABLES_TEXT.format(columns=_COLUMNS)}\
{reference.MOMENT_TEXT}""",
        samples={
            "The AI agents of September": f"""\
curl "{ADDRESS}/v1/analytics/demo/breakdown?by=agent&traffic=ai&dateFrom=2026-09-01&dateTo=2026-10-01" {KEY_OPTION}""",
            "The readers of one section, by browser, as CSV": f"""\
curl "{ADDRESS}/v1/analytics/demo/breakdown?by=browser&path=/docs/*&traffic=human" {KEY_OPTION} \\
  -H "Accept: text/csv\"""",
        },
        parameters=(
            Parameter("by", "The dimension.", {"enum": list(BREAKDOWNS)}, example="agent", is_required=True),
            *paging("Values"),
            *reference.PARAMETERS,
        ),
        responses=(
            Success(
                200,
                "The counts.",
                reference.table_content(
                    Breakdown(
                        Counts(0, 931, 0, 931),
                        [ValueViews("GPTBot", 0, 173, 0, 173)],
                        has_more=True,
                        measured=Measured("all", "all", "all"),
                    ),
                    "agent,human,ai,bot,total\r\nGPTBot,0,173,0,173\r\n",
                    ValueViews("GPTBot", 0, 173, 0, 173),
                ),
                reference.HEADERS,
            ),
            reference.NOT_MODIFIED,
        ),
        problems=reference.PROBLEMS,
    ),
)
