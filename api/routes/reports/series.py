"""The views by hour, day, week or month, as JSON or as a table."""

from typing import Annotated

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth, report_parameters
from api.http.negotiation import accepted
from api.http.operation import ADDRESS, JSON, KEY_OPTION, Operation, Parameter, Success
from api.http.report_parameters import INTERVAL_DEFAULT, TIMEZONE_DEFAULT, SeriesQuery
from api.routes.reports import measured, reference, responses, threads
from api.routes.reports.measured import Ai, Bot, Counts, Human, Measured, Total
from api.routes.reports.tables import file_stem_of
from api.state import state_of
from warehouse.report.time_buckets import BUCKETS_MAX, INTERVALS

SCHEMA = pa.schema([("start", pa.string()), *((name, pa.int64()) for name in ("human", "ai", "bot", "total"))])
"""Columns of the table."""


class IntervalViews(msgspec.Struct, frozen=True):
    """Views in one interval."""

    start: Annotated[str, msgspec.Meta(description="First day of the interval; for an hour its time with the offset.")]
    human: Human
    ai: Ai
    bot: Bot
    total: Total


class Series(msgspec.Struct, frozen=True):
    """Views in each interval of a time range."""

    series: Annotated[
        list[IntervalViews], msgspec.Meta(description="The intervals in order, also those without views.")
    ]
    totals: Annotated[Counts, msgspec.Meta(description="Totals of the whole time range.")]
    measured: Measured


async def count_series(request: Request) -> Response:
    """Respond to GET /v1/analytics/{projectId}/series."""
    project = request.path_params["projectId"]
    await auth.key_for(request, state_of(request).keyring, project, "read")
    query = report_parameters.series_query(request)
    media_type = accepted(request, responses.MEDIA_TYPES, "the series")
    return await threads.run(threads.REPORTS, request.receive, _respond, request, project, query, media_type)


def _respond(request: Request, project: str, query: SeriesQuery, media_type: str) -> Response:
    reports = state_of(request).reports
    snapshot = reports.take(query.selection.as_of)
    counted = query.selection.query(project, snapshot.moment)
    totals, rows = reports.series(snapshot, counted, query.interval, query.zone)
    known = reports.measured(snapshot, counted)
    rows = measured.hide_intervals(rows, known, counted, query.zone)
    if media_type == JSON:
        counts = measured.totals(totals, measured.hidden(known, counted))
        intervals = [IntervalViews(**row) for row in rows.select(SCHEMA.names).to_pylist()]
        return responses.document(request, snapshot.moment, Series(intervals, counts, measured.of(known, counted)))
    return responses.table(
        request, snapshot.moment, media_type, file_stem_of(counted, "series"), SCHEMA, rows.to_batches
    )


OPERATIONS = (
    Operation(
        id="getSeries",
        method="GET",
        path="/v1/analytics/{projectId}/series",
        handler=count_series,
        tag="Read",
        summary="Count views by hour, day, week or month",
        description=f"""\
Views by people, AI agents and other bots in each interval of a time range. `dateFrom` and `dateTo` are those of the
export of page views. The operation requires a key with the scope `read` or `write`.

- An interval without views is a row of zeros, or of null for readers whom no source counted in it. The first and the
  last interval have only the views that are in the range. Without `dateFrom` the series begins with the interval of the
  first hit, and without `dateTo` it ends with the current interval.
- `timezone` decides where days, weeks, months and hours begin; a week begins on Monday. A day on which the clock
  changes has 23 or 25 hours. `dateFrom` and `dateTo` are UTC, unless they are times with an offset:
  `dateFrom=2026-09-01T00:00:00%2B02:00`.
- A series has at most {BUCKETS_MAX:,} intervals.
{reference.MEASURED_TEXT.format(unknown=reference.UNKNOWN_TEXT)}{reference.FILTERS_TEXT}\
{reference.TABLES_TEXT.format(columns="`start`, `human`, `ai`, `bot` and `total`")}\
{reference.MOMENT_TEXT}""",
        samples={
            "The days of September": f"""\
curl "{ADDRESS}/v1/analytics/demo/series?dateFrom=2026-09-01&dateTo=2026-10-01" {KEY_OPTION}""",
            "The hours of a day in Berlin": f"""\
curl "{ADDRESS}/v1/analytics/demo/series?interval=hour&timezone=Europe/Berlin\\
&dateFrom=2026-09-01T00:00:00%2B02:00&dateTo=2026-09-02T00:00:00%2B02:00" {KEY_OPTION}""",
            "GPTBot by month, as CSV": f"""\
curl "{ADDRESS}/v1/analytics/demo/series?interval=month&agent=GPTBot" {KEY_OPTION} -H "Accept: text/csv\"""",
        },
        parameters=(
            Parameter("interval", "Length of an interval.", {"enum": list(INTERVALS), "default": INTERVAL_DEFAULT}),
            Parameter(
                "timezone", "IANA time zone of the intervals.", {"default": TIMEZONE_DEFAULT}, example="Europe/Berlin"
            ),
            *reference.PARAMETERS,
        ),
        responses=(
            Success(
                200,
                "The counts.",
                reference.table_content(
                    Series(
                        [IntervalViews("2026-09-01", 72, 16, 21, 88)],
                        Counts(72, 16, 21, 88),
                        Measured("all", "all", "all"),
                    ),
                    "start,human,ai,bot,total\r\n2026-09-01,72,16,21,88\r\n",
                    IntervalViews("2026-09-01", 72, 16, 21, 88),
                ),
                reference.HEADERS,
            ),
            reference.NOT_MODIFIED,
        ),
        problems=reference.PROBLEMS,
    ),
)
