"""The record of a report, from which its route, its files and its part of the reference are derived."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.http import auth
from api.http.cors import AS_OF, EXPOSED
from api.http.headers import matches_etag
from api.http.negotiation import accepted
from api.http.operation import CSV, JSON, NDJSON, PARQUET, Operation, Parameter, Success
from api.reports import measured, metrics, parameters, threads
from api.reports.formats import FORMATS, file_stem_of, rebatched
from api.reports.metrics import BYTES, SIZES
from api.reports.parameters import Selection
from api.state import state_of
from warehouse.query.moment import Moment
from warehouse.query.snapshot import Snapshot
from warehouse.report.measured import Measured
from warehouse.report.reports import Reports
from warehouse.report.results import Counts, Query

HEADERS = ("ETag", "Cache-Control", AS_OF)
NOT_MODIFIED = Success(304, "The response with this `ETag` is still current.", headers=HEADERS)
PROBLEMS = "invalid-parameter unauthenticated forbidden not-acceptable moment-expired data-incomplete"


@dataclass(frozen=True)
class Run:
    """One computation of a report: a selection of the hits of a snapshot."""

    reports: Reports
    snapshot: Snapshot
    selection: Selection

    @cached_property
    def query(self) -> Query:
        return self.selection.query(self.snapshot.moment)

    @cached_property
    def measured(self) -> Measured:
        return self.reports.measured(self.snapshot, self.query)

    @cached_property
    def visitors_known(self) -> Measured:
        return self.reports.visitors_known(self.snapshot, self.query)

    def requests(self, by: str) -> pa.Table:
        return self.reports.requests(self.selection.requests, self.snapshot.moment, by)

    @cached_property
    def requests_of_days(self) -> pa.Table:
        return self.requests("date")

    @cached_property
    def visitors(self) -> dict[str, Any]:
        """Return the columns of visitors and visits of the whole range."""
        counts = metrics.whole(self.reports.visitor_counts(self.snapshot, self.query))
        hidden, known = measured.hidden(self.visitors_known, self.query), map(self._sums, ("views", "identified"))
        row: dict[str, Any] = metrics.columns(counts, metrics.shares(*known), hidden).to_pylist()[0]
        return row

    def _sums(self, measure: str) -> pa.Table:
        """Return a measure of the views of the whole range, as one row."""
        sums = Counts.of(self.reports.sums(self.snapshot, self.query, measure, "source"))
        return pa.table({name: [getattr(sums, name)] for name in metrics.VISITORS})

    @property
    def totals(self) -> dict[str, Any]:
        """Return the columns of the chosen metrics of the whole range."""
        row = self.visitors.copy() if self.selection.has_visitors else {}
        if BYTES in self.selection.shown:
            sums = {name: [pc.sum(self.requests_of_days[name])] for name in SIZES}
            row |= metrics.sizes(pa.table(sums)).to_pylist()[0]
        return row


class Table(NamedTuple):
    """Columns of a table, and a function that returns its rows in batches with at least these columns."""

    columns: pa.Schema
    batches: Callable[[], Iterable[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Report:
    """A report. `rows` returns all of its rows, and `document` one page of them as `body`.

    The first column of a breakdown, `value`, has the name of the dimension in CSV and Parquet. `grouped` are the
    columns of a report that is not a breakdown and has the parameter `by`.
    """

    name: str
    id: str
    parameters: tuple[Parameter, ...]
    body: type[msgspec.Struct]
    columns: pa.Schema
    document: Callable[[Run], msgspec.Struct]
    rows: Callable[[Run], Callable[[], Iterable[pa.RecordBatch]]]
    success: str = "The counts."
    grouped: pa.Schema | None = None

    def table(self, run: Run, media_type: str) -> Table:
        """Return all rows as a table."""
        columns, batches, by = metrics.schema(self.columns, run.selection.shown), self.rows(run), run.selection.by
        if by and self.grouped:
            return Table(self.grouped, batches)
        if not by or media_type == NDJSON:
            return Table(columns, batches)
        titled = columns.set(0, columns.field(0).with_name(by))
        return Table(titled, lambda: (each.select(columns.names).rename_columns(titled.names) for each in batches()))

    @property
    def operation(self) -> Operation:
        """Return the operation of the report, with its handler."""
        content = {JSON: self.body, CSV: str, PARQUET: {"type": "string", "contentMediaType": PARQUET}, NDJSON: str}
        successes = (Success(200, self.success, content, HEADERS), NOT_MODIFIED)
        path = f"/v1/analytics/{{projectId}}/{self.name}"
        return Operation(self.id, "GET", path, self._handler(), "Read", successes, PROBLEMS, parameters=self.parameters)

    def _handler(self) -> Callable[[Request], object]:
        async def respond(request: Request) -> Response:
            project = request.path_params["projectId"]
            await auth.key_for(request, state_of(request).keyring, project, "read")
            selection = parameters.select(request, project, self.parameters)
            media_type = accepted(request, MEDIA_TYPES, "the report")
            return await threads.run(threads.REPORTS, request.receive, self._respond, request, selection, media_type)

        return respond

    def _respond(self, request: Request, selection: Selection, media_type: str) -> Response:
        reports = state_of(request).reports
        run = Run(reports, reports.take(selection.as_of), selection)
        moment = run.snapshot.moment
        if media_type == JSON:
            encoded = msgspec.json.encode(self.document(run))
            headers = _headers(moment, [encoded])
            return _not_modified(request, headers) or Response(encoded, 200, headers, JSON)
        has_range = any(each.name == "dateFrom" for each in self.parameters)
        name = self.name if self.grouped else selection.by or self.name
        stem = file_stem_of(run.query, name) if has_range else f"{selection.project}-{name}"
        return _table_response(request, moment, media_type, stem, *self.table(run, media_type))


MEDIA_TYPES = (JSON, CSV, PARQUET, NDJSON)
"""Media types of a report that is also a table, the preferred one first."""


def _table_response(
    request: Request,
    moment: Moment,
    media_type: str,
    name: str,
    schema: pa.Schema,
    batches: Callable[[], Iterable[pa.RecordBatch]],
) -> Response:
    """Return a streaming response with a table, or 304 if the request has its ETag.

    `batches` is called twice, for the ETag and for the content, because the rows may not fit into memory. Each call
    yields the rows with at least the columns of `schema`.
    """
    form = FORMATS[media_type]
    # Encoded as msgpack, because equal Arrow arrays may have different bytes.
    rows = (msgspec.msgpack.encode(batch.to_pydict()) for batch in rebatched(schema, batches()))
    headers = _headers(moment, chain([media_type.encode()], rows))
    disposition = {"Content-Disposition": f'attachment; filename="{name}.{form.suffix}"'}
    return _not_modified(request, headers) or StreamingResponse(
        threads.streamed(threads.REPORTS, form.chunks(schema, rebatched(schema, batches()))),
        200,
        {**headers, **disposition},
        media_type,
    )


def _headers(moment: Moment, content: Iterable[bytes]) -> dict[str, str]:
    """Return the headers of a response. Its ETag is a hash of the numbers, and equal in all processes.

    The ETag is weak, because the response may be compressed.
    """
    digest = hashlib.blake2b(digest_size=16)
    for chunk in content:
        digest.update(chunk)
    return {
        "ETag": f'W/"{digest.hexdigest()}"',
        "Cache-Control": "private, no-cache",
        "Vary": "Accept, Authorization",
        AS_OF: str(moment),
        **EXPOSED,
    }


def _not_modified(request: Request, headers: dict[str, str]) -> Response | None:
    return Response(status_code=304, headers=headers) if matches_etag(request, headers["ETag"]) else None
