"""The coverage of a project: which sources have sent hits, and on which days they have sent none."""

from datetime import UTC, date, datetime
from typing import Annotated

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth, report_parameters
from api.http.negotiation import accepted
from api.http.operation import ADDRESS, IF_NONE_MATCH, JSON, KEY_OPTION, Operation, Success
from api.routes.reports import reference, responses, threads
from api.state import state_of
from warehouse.columns.filters import Filters
from warehouse.columns.sources import SOURCES
from warehouse.control.policy import Policy
from warehouse.query.moment import Moment
from warehouse.query.time_range import FIRST
from warehouse.report import source_coverage
from warehouse.report.results import Query
from warehouse.report.source_coverage import MISSING_DAYS_MAX
from warehouse.report.sources import measured
from warehouse.report.sources.silence import HABIT_DAYS, SILENT_AFTER

_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("firstHit", _TIME),
        ("lastHit", _TIME),
        ("missingDays", pa.list_(pa.string())),
        ("silentSince", pa.string()),
    ]
)
"""Columns of the table. In CSV the days are in one cell, with a space between two of them."""


class SourceCoverage(msgspec.Struct, frozen=True, rename="camel"):
    """A source of hits."""

    source: Annotated[str, msgspec.Meta(description=f"One of {', '.join(f'`{each}`' for each in SOURCES)}.")]
    first_hit: Annotated[datetime, msgspec.Meta(description="Time of the first hit.")]
    last_hit: Annotated[datetime, msgspec.Meta(description="Time of the last hit.")]
    missing_days: Annotated[
        tuple[date, ...],
        msgspec.Meta(
            description="UTC days without a hit between the first and the last hit; the last"
            f" {MISSING_DAYS_MAX:,} of them if there are more."
        ),
    ]
    silent_since: Annotated[
        date | None,
        msgspec.Meta(
            description="First UTC day from which the source counts nothing, because it fell silent; null if it is not"
            f" silent. A source is silent after {SILENT_AFTER} times its usual distance from one day with a hit to the"
            f" next, in the {HABIT_DAYS} days up to its last hit."
        ),
    ]


class Span(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """A time in which readers were counted."""

    start: Annotated[datetime, msgspec.Meta(description="When counting began.")]
    end: Annotated[datetime | None, msgspec.Meta(description="When counting ended, exclusive; null if it did not end.")]


class MeasuredTimes(msgspec.Struct, frozen=True):
    """Times in which each kind of readers was counted, by any source under the source policy."""

    human: tuple[Span, ...]
    ai: tuple[Span, ...]
    bot: tuple[Span, ...]


class Coverage(msgspec.Struct, frozen=True, rename="camel"):
    """The sources that have sent hits."""

    sources: Annotated[
        list[SourceCoverage], msgspec.Meta(description="The sources. One that never sent a hit is not listed.")
    ]
    policy: Annotated[
        Policy,
        msgspec.Meta(
            description="Today's policy. `all`: the hits of every source count. `beacon_only`: only those of `beacon`."
            " `log_only`: only those of `log` and `server`. `beacon_people_log_machines`: people from `beacon`; AI,"
            " bots and Markdown from `log` and `server`."
        ),
    ]
    warnings: Annotated[tuple[str, ...], msgspec.Meta(description="What the project's owner should check.")]
    overlap_days: Annotated[
        int, msgspec.Meta(description="UTC days on which beacons and logs both have views of people.")
    ] = 0
    unbeaconed: Annotated[
        int,
        msgspec.Meta(
            description="Views in logs that look like people and are not counted, because people count from beacons:"
            " scripts with the user agent of a browser, and people whose browser sent no beacon."
        ),
    ] = 0
    measured: MeasuredTimes = MeasuredTimes((), (), ())


async def cover(request: Request) -> Response:
    """Respond to GET /v1/analytics/{projectId}/coverage."""
    project = request.path_params["projectId"]
    await auth.key_for(request, state_of(request).keyring, project, "read")
    moment = report_parameters.coverage_query(request)
    media_type = accepted(request, responses.MEDIA_TYPES, "the coverage")
    return await threads.run(threads.REPORTS, request.receive, _respond, request, project, moment, media_type)


def _respond(request: Request, project: str, as_of: Moment | None, media_type: str) -> Response:
    reports = state_of(request).reports
    snapshot = reports.take(as_of)
    coverage = reports.source_coverage(snapshot, project)
    if media_type == JSON:
        known = reports.measured(snapshot, Query(project, FIRST, None, Filters(), datetime.now(UTC)))
        return responses.document(request, snapshot.moment, _coverage(coverage, known))
    return responses.table(
        request, snapshot.moment, media_type, f"{project}-coverage", SCHEMA, _table(coverage).to_batches
    )


def _coverage(coverage: source_coverage.SourceCoverage, known: measured.Measured) -> Coverage:
    sources = [
        SourceCoverage(each.source, each.first_hit, each.last_hit, each.missing_days, each.silent_since)
        for each in coverage.sources
    ]
    spans = MeasuredTimes(**{kind: tuple(Span(*each) for each in of) for kind, of in known.spans.items()})
    return Coverage(sources, coverage.policy, coverage.warnings, coverage.overlap_days, coverage.unbeaconed, spans)


def _table(coverage: source_coverage.SourceCoverage) -> pa.Table:
    """Return one row for each source."""
    sources = coverage.sources
    columns = (
        [each.source for each in sources],
        [each.first_hit for each in sources],
        [each.last_hit for each in sources],
        [[day.isoformat() for day in each.missing_days] for each in sources],
        [each.silent_since and each.silent_since.isoformat() for each in sources],
    )
    return pa.table(list(map(pa.array, columns, SCHEMA.types)), SCHEMA)


_SOURCE = SourceCoverage(
    "log",
    datetime(2026, 9, 1, 0, 0, 4, tzinfo=UTC),
    datetime(2026, 9, 30, 23, 59, 51, tzinfo=UTC),
    (date(2026, 9, 13),),
    date(2026, 10, 1),
)
_SPANS = (Span(datetime(2026, 9, 1, 0, 0, 4, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)),)
_EXAMPLE = Coverage(
    [_SOURCE],
    "all",
    ("log has had no hit for 53 days, since 2026-09-30",),
    measured=MeasuredTimes(_SPANS, _SPANS, _SPANS),
)
_CSV_EXAMPLE = """\
source,firstHit,lastHit,missingDays,silentSince\r
log,2026-09-01T00:00:04+00:00,2026-09-30T23:59:51+00:00,2026-09-13,2026-10-01\r
"""
OPERATIONS = (
    Operation(
        id="getCoverage",
        method="GET",
        path="/v1/analytics/{projectId}/coverage",
        handler=cover,
        tag="Read",
        summary="List the sources and their missing days",
        description=f"""\
Which sources have sent hits to the project: pages (`beacon`), servers (`server`) and imported access logs (`log`). A
count of zero on a day on which a source sent nothing does not mean that nobody read. `measured` has the times in which
people, AI agents and other bots were counted: from the first hit of a source that sees them until it fell silent. The
operation requires a key with the scope `read` or `write`.

{reference.TABLES_TEXT.format(columns="`source`, `firstHit`, `lastHit`, `missingDays` and `silentSince`")}\
{reference.MOMENT_TEXT}""",
        samples={"": f"curl {ADDRESS}/v1/analytics/demo/coverage {KEY_OPTION}"},
        parameters=(reference.AS_OF_PARAMETER, IF_NONE_MATCH),
        responses=(
            Success(200, "The sources.", reference.table_content(_EXAMPLE, _CSV_EXAMPLE, _SOURCE), reference.HEADERS),
            reference.NOT_MODIFIED,
        ),
        problems=reference.PROBLEMS,
    ),
)
