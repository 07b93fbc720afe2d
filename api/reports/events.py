"""The report of events: how often people and AI did something, by name, property or column."""

import pyarrow as pa

from api.reports import parameters
from api.reports.documents import EventRow, Events
from api.reports.report import Report, Run
from ingest.classification.agents import AGENTS
from warehouse.report.audience.events import ChosenEvents
from warehouse.report.results import Counts, ReportPage


def _events(run: Run) -> Events:
    page = ReportPage.of(Counts(), _rows(run), run.selection.offset, run.selection.limit)
    return Events([EventRow(*row.values()) for row in page.rows.to_pylist()], page.has_more)


def _rows(run: Run) -> pa.Table:
    selection, by = run.selection, run.selection.by or ""
    agents = parameters.agents_of(selection.filters["operator"], selection.filters["purpose"])
    by_agent = tuple((each.name, getattr(each, by)) for each in AGENTS) if by in {"operator", "purpose"} else ()
    rows = run.reports.events(run.snapshot, run.query, ChosenEvents(selection.name, by, agents, by_agent=by_agent))
    return rows.select(_BY.names).cast(_BY)


_TEXT, _COUNT = pa.string(), pa.int64()
_BY = pa.schema({"name": _TEXT, "value": _TEXT, "traffic": _TEXT, "events": _COUNT, "visitors": _COUNT})
_ANSWERS = _events, lambda run: _rows(run).to_batches, "The events."
EVENTS = Report("events", "getEvents", parameters.EVENTS, Events, _BY.remove(1), *_ANSWERS, _BY)
