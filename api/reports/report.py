"""The record of a report, from which its route, its files and its part of the reference are derived."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth
from api.http.cors import AS_OF
from api.http.negotiation import accepted
from api.http.operation import CSV, JSON, NDJSON, PARQUET, Operation, Parameter, Success
from api.reports import metrics, parameters, responses, threads
from api.reports.formats import file_stem_of
from api.reports.parameters import Selection
from api.state import state_of
from warehouse.query.snapshot import Snapshot
from warehouse.report.measured import Measured
from warehouse.report.reports import Reports
from warehouse.report.results import Query

HEADERS = ("ETag", "Cache-Control", AS_OF)
NOT_MODIFIED = Success(304, "The response with this `ETag` is still current.", headers=HEADERS)
PROBLEMS = "invalid-parameter unauthenticated forbidden not-acceptable moment-expired data-incomplete"
RANGE = "dateFrom"


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
        content = {
            JSON: self.body,
            CSV: str,
            PARQUET: {"type": "string", "contentMediaType": PARQUET},
            NDJSON: str,
        }
        successes = (Success(200, self.success, content, HEADERS), NOT_MODIFIED)
        path = f"/v1/analytics/{{projectId}}/{self.name}"
        return Operation(self.id, "GET", path, self._handler(), "Read", successes, PROBLEMS, parameters=self.parameters)

    def _handler(self) -> Callable[[Request], object]:
        async def respond(request: Request) -> Response:
            project = request.path_params["projectId"]
            await auth.key_for(request, state_of(request).keyring, project, "read")
            selection = parameters.select(request, project, self.parameters)
            media_type = accepted(request, responses.MEDIA_TYPES, "the report")
            return await threads.run(threads.REPORTS, request.receive, self._respond, request, selection, media_type)

        return respond

    def _respond(self, request: Request, selection: Selection, media_type: str) -> Response:
        reports = state_of(request).reports
        run = Run(reports, reports.take(selection.as_of), selection)
        moment = run.snapshot.moment
        if media_type == JSON:
            return responses.document(request, moment, self.document(run))
        has_range = any(each.name == RANGE for each in self.parameters)
        name = self.name if self.grouped else selection.by or self.name
        stem = file_stem_of(run.query, name) if has_range else f"{selection.project}-{name}"
        return responses.table(request, moment, media_type, stem, *self.table(run, media_type))
