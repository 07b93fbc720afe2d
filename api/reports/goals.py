"""The report of goals: how often people and AI reached them, and the conversion rate of the visitors."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from api.http.operation import paging
from api.reports import measured, metrics, parameters
from api.reports.documents import GoalRow, Goals
from api.reports.report import Report, Run
from warehouse.report.audience.goals import Conversion

_TEXT, _COUNT = pa.string(), pa.int64()


def _goals(run: Run) -> Goals:
    start, rows = run.selection.offset, (row for batch in _conversions(run)() for row in batch.to_pylist())
    page = list(islice(rows, start, start + run.selection.limit + 1))
    shown = [GoalRow(*(row.get(name) for name in GOAL_COLUMNS)) for row in page[: run.selection.limit]]
    return Goals(shown, len(page) > run.selection.limit, measured.of(run.visitors_known, run.query))


def _conversions(run: Run) -> Callable[[], Iterable[pa.RecordBatch]]:
    """Return the goals, one batch each."""
    views, schema = measured.hidden(run.measured, run.query), GOALS.grouped if run.selection.by else GOALS.columns

    def row(each: Conversion) -> dict[str, Any]:
        conversions = each.times or (None if any(views.get(each.traffic, ())) else 0)
        none = None if run.visitors[metrics.VISITORS[each.traffic]] is None else 0
        converted = each.converted or (None if each.times else none)
        rate = round(100 * converted / each.visitors, 2) if each.visitors and converted is not None else None
        counts = (conversions, converted, each.visitors or none, rate)
        return dict(zip(GOAL_COLUMNS, (each.goal, each.value, each.traffic, *counts), strict=True))

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in run.reports.goals(run.snapshot, run.query, run.selection.by or ""):
            yield pa.RecordBatch.from_pylist([row(each) for each in rows], schema)

    return batches


GOAL_COLUMNS = ("goal", "value", "traffic", "conversions", "goalVisitors", "visitors", "conversionRate")
_GOAL_TYPES = (_TEXT, _TEXT, _TEXT, _COUNT, _COUNT, _COUNT, pa.float64())
_BY_VALUE = pa.schema(list(zip(GOAL_COLUMNS, _GOAL_TYPES, strict=True)))
_ALL = _BY_VALUE.remove(1)
_PARAMETERS = (parameters.BY_OPTIONAL, *paging("Rows"), *parameters.COUNTED)
GOALS = Report("goals", "getGoals", _PARAMETERS, Goals, _ALL, _goals, _conversions, "The goals.", _BY_VALUE)
