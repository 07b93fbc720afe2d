"""The reports, one record each: parameters, JSON, columns, and the report of the warehouse that it calls."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from api.http.operation import paging
from api.reports import documents, measured, metrics, parameters
from api.reports.coverage import Coverage, MeasuredTimes, SourceCoverage, Span
from api.reports.documents import (
    Breakdown,
    Cost,
    ErrorRow,
    Errors,
    IntervalViews,
    PathErrors,
    PathViews,
    PathVisitors,
    Requests,
    RequestTotals,
    Series,
    Totals,
    ValueViews,
    VisitorTotals,
)
from api.reports.events import EVENTS
from api.reports.goals import GOALS
from api.reports.metrics import BYTES
from api.reports.report import Report, Run
from warehouse.columns.dimensions import OF_VISITS
from warehouse.columns.sources import TRAFFIC
from warehouse.report.audience.requests import ALL
from warehouse.report.results import Counts, ReportPage

Item = TypeVar("Item", bound=documents.Counts)
Batches = Callable[[], Iterable[pa.RecordBatch]]
ALL_ROWS = 1 << 40
"""More rows than any report has."""
_TEXT, _COUNT, _TIME = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")
_TEXTS = pa.list_(_TEXT)
_COUNTS = dict.fromkeys(("human", "ai", "bot", "total"), _COUNT)


def _views(run: Run) -> documents.Report:
    selection = run.selection
    page = run.reports.views(run.snapshot, run.query, selection.offset, selection.limit)
    rows = [PathViews(**row) for row in page.rows.select(VIEWS.columns.names).to_pylist()]
    counts = page.totals
    totals = Totals(human=counts.human, ai=counts.ai, total=counts.total)
    return documents.Report(totals, rows, page.has_more, measured.of(run.measured, run.query))


VIEWS = Report(
    "views",
    "exportViews",
    (*paging("Paths"), *parameters.COUNTED),
    documents.Report,
    pa.schema({"path": _TEXT, "human": _COUNT, "ai": _COUNT, "total": _COUNT}),
    _views,
    lambda run: lambda: run.reports.all_views(run.snapshot, run.query, run.selection.order)[1],
)


def _visitors(run: Run) -> documents.Visitors:
    names, totals = VISITORS.columns.names, metrics.whole(run.reports.visitor_counts(run.snapshot, run.query))
    page = ReportPage.of(Counts(), _visited(run), run.selection.offset, run.selection.limit)
    shown = [PathVisitors(**row) for row in page.rows.select(names).to_pylist()]
    of_totals, known = VisitorTotals(**totals.select(names[1:]).to_pylist()[0]), metrics.known_of(run.visitors)
    return documents.Visitors(of_totals, shown, page.has_more, measured.of(run.visitors_known, run.query), known)


def _visited(run: Run) -> pa.Table:
    """Return the paths that people or AI visited: most visitors first, then in byte order."""
    rows = run.reports.visitor_counts(run.snapshot, run.query, "path").filter(pc.field("total") > 0)
    return rows.sort_by([("total", "descending"), ("path", "ascending")])


VISITORS = Report(
    "visitors",
    "getVisitors",
    (*paging("Paths"), *parameters.COUNTED),
    documents.Visitors,
    VIEWS.columns,
    _visitors,
    lambda run: _visited(run).to_batches,
    "The visitors.",
)


def _series(run: Run) -> Series:
    totals, rows = _intervals(run)
    counts = measured.totals(totals, measured.hidden(run.measured, run.query), **_fields(run, run.totals))
    return Series(_items(run, SERIES.columns, rows, IntervalViews), counts, measured.of(run.measured, run.query))


def _intervals(run: Run) -> tuple[Counts, pa.Table]:
    zone = run.selection.zone
    asked = run.snapshot, run.query, run.selection.interval, zone
    totals, rows = run.reports.series(*asked)
    shown = measured.hide(rows, measured.hidden_intervals(rows, run.measured, run.query, zone))
    if run.selection.has_visitors:
        known = metrics.shares(rows, run.reports.series(*asked, "identified")[1])
        hidden = measured.hidden_intervals(rows, run.visitors_known, run.query, zone)
        shown = metrics.append(shown, metrics.columns(run.reports.visitor_series(*asked), known, hidden))
    if BYTES in run.selection.shown:
        shown = metrics.append(shown, metrics.sizes(metrics.of_intervals(rows, run.requests_of_days)))
    return totals, shown


SERIES = Report(
    "series",
    "getSeries",
    (*parameters.BUCKETS, parameters.METRICS_PARAMETER, *parameters.COUNTED),
    Series,
    pa.schema({"start": _TEXT, **_COUNTS}),
    _series,
    lambda run: _intervals(run)[1].to_batches,
)


def _breakdown(run: Run) -> Breakdown:
    selection = run.selection
    hidden = measured.hidden(run.measured, run.query)
    page = run.reports.breakdown(run.snapshot, run.query, selection.by, selection.offset, selection.limit)
    rows = _items(run, BREAKDOWN.columns, _beside(run)(measured.hide(page.rows, hidden)), ValueViews)
    totals = measured.totals(page.totals, hidden, **_fields(run, run.totals))
    return Breakdown(totals, rows, page.has_more, measured.of(run.measured, run.query))


def _values(run: Run) -> Batches:
    hidden, beside = measured.hidden(run.measured, run.query), _beside(run)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in run.reports.all_breakdown(run.snapshot, run.query, run.selection.by)[1]:
            rows = pa.Table.from_batches([measured.hide(batch, hidden)])
            yield from beside(rows).combine_chunks().to_batches()

    return batches


def _beside(run: Run) -> Callable[[pa.Table], pa.Table]:
    by, added = run.selection.by, list[Callable[[pa.Table], pa.Table]]()
    if run.selection.has_visitors:
        hidden = measured.hidden(run.visitors_known, run.query)
        counts = run.reports.visitor_counts(run.snapshot, run.query, by)
        identified = None if by in OF_VISITS else run.reports.sums(run.snapshot, run.query, "identified", by)

        def of_visitors(rows: pa.Table) -> pa.Table:
            known = rows if identified is None else metrics.of_values(rows, by, identified, TRAFFIC)
            return metrics.columns(metrics.of_values(rows, by, counts), metrics.shares(rows, known), hidden)

        added.append(of_visitors)
    if BYTES in run.selection.shown:
        requests = run.requests(by)
        added.append(lambda rows: metrics.sizes(metrics.of_values(rows, "value", requests, metrics.SIZES)))
    return lambda rows: metrics.append(rows, *(each(rows) for each in added))


def _fields(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    return metrics.fields(row, run.selection.shown)


def _items(run: Run, columns: pa.Schema, rows: pa.Table, item: type[Item]) -> list[Item]:
    return [item(**{name: row[name] for name in columns.names}, **_fields(run, row)) for row in rows.to_pylist()]


BREAKDOWN = Report(
    "breakdown",
    "getBreakdown",
    (parameters.DIMENSION, parameters.METRICS_PARAMETER, *paging("Values"), *parameters.COUNTED),
    Breakdown,
    pa.schema({"value": _TEXT, **_COUNTS}),
    _breakdown,
    _values,
)


def _errors(run: Run) -> Errors:
    selection = run.selection
    page = ReportPage.of(Counts(), _error_rows(run), selection.offset, selection.limit)
    if selection.by:
        return Errors([], page.has_more, [PathErrors(*row.values()) for row in page.rows.to_pylist()])
    return Errors([ErrorRow(*row.values()) for row in page.rows.to_pylist()], page.has_more)


def _error_rows(run: Run) -> pa.Table:
    if run.selection.by:
        groups = run.reports.error_groups(run.selection.errors, run.snapshot.moment, "path", 0, ALL_ROWS)
        names = ["path", "requests", "agents", "statuses", "first_seen", "last_seen"]
        return groups.select(names).rename_columns(PATH_ERRORS.names).cast(PATH_ERRORS)
    rows = run.reports.errors(run.selection.errors, run.snapshot.moment)
    return rows.rename_columns(ERRORS.columns.names).cast(ERRORS.columns)


_STATUS, _SEEN = pa.int16(), dict.fromkeys(("firstSeen", "lastSeen"), _TIME)
PATH_ERRORS = pa.schema({"path": _TEXT, "requests": _COUNT, "agents": _COUNT, "statuses": pa.list_(_STATUS), **_SEEN})
ERRORS = Report(
    "errors",
    "getErrors",
    parameters.ERRORS,
    Errors,
    pa.schema({"path": _TEXT, "agent": _TEXT, "traffic": _TEXT, "status": _STATUS, "requests": _COUNT, **_SEEN}),
    _errors,
    lambda run: _error_rows(run).to_batches,
    "The errors.",
    PATH_ERRORS,
)


def _cost(run: Run) -> Cost:
    page = ReportPage.of(Counts(), _requests(run, run.selection.by), run.selection.offset, run.selection.limit)
    [totals] = _requests(run, ALL).to_pylist() or [dict.fromkeys(COST.columns.names) | dict.fromkeys(_SUMS, 0)]
    rows = msgspec.convert(page.rows.to_pylist(), list[Requests])
    return Cost(msgspec.convert(totals, RequestTotals), rows, page.has_more)


def _requests(run: Run, by: str) -> pa.Table:
    return run.requests(by).rename_columns(COST.columns.names).cast(COST.columns)


_SUMS = ("requests", "sized", "timed", "cached", "cacheHits", "refused")
_OF_SIZE_AND_TIME = "requests bytes sized bytesKnown timed timesKnown p50Ms p95Ms"
_OF_REQUESTS = f"{_OF_SIZE_AND_TIME} cached cacheKnown cacheHits refused afterRefusal".split()
_NUMBERS = {name: pa.float64() if name.endswith("Known") else _COUNT for name in _OF_REQUESTS}
COST = Report(
    "cost",
    "getCost",
    parameters.COST,
    Cost,
    pa.schema({"value": _TEXT, **_NUMBERS, **dict.fromkeys(("robotsRead", "lastSeen"), _TIME)}),
    _cost,
    lambda run: _requests(run, run.selection.by).to_batches,
    "The requests.",
)


def _coverage(run: Run) -> Coverage:
    known = run.reports.source_coverage(run.snapshot, run.selection.project)
    spans = {kind: tuple(Span(*each) for each in of) for kind, of in run.measured.spans.items()}
    return Coverage(
        [SourceCoverage(*(getattr(each, name) for name in SourceCoverage.__struct_fields__)) for each in known.sources],
        known.policy,
        tuple(map(str, known.warnings)),
        known.overlap_days,
        known.unbeaconed,
        MeasuredTimes(**spans),
    )


def _sources(run: Run) -> Batches:
    """Return one row for each source. In CSV the days are in one cell, with a space between two of them."""
    rows = []
    for each in run.reports.source_coverage(run.snapshot, run.selection.project).sources:
        missing, silent = [day.isoformat() for day in each.missing_days], each.silent_since
        row = (each.source, each.first_hit, each.last_hit, missing, silent and silent.isoformat())
        rows.append(dict(zip(COVERAGE.columns.names, row, strict=True)))
    batches: Batches = pa.Table.from_pylist(rows, COVERAGE.columns).to_batches
    return batches


COVERAGE = Report(
    "coverage",
    "getCoverage",
    parameters.MOMENT,
    Coverage,
    pa.schema({"source": _TEXT, "firstHit": _TIME, "lastHit": _TIME, "missingDays": _TEXTS, "silentSince": _TEXT}),
    _coverage,
    _sources,
    "The sources.",
)
REPORTS = (VIEWS, VISITORS, SERIES, BREAKDOWN, GOALS, EVENTS, ERRORS, COST, COVERAGE)
"""All reports, in the order of the reference."""
