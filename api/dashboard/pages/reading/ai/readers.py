"""The AI readers of a project: operators with their purposes, verification and visits, and their agents."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from markupsafe import Markup
from starlette.responses import Response

from api.dashboard.charts import bar, sparkline
from api.dashboard.pages.reading import measured, tables
from api.dashboard.pages.reading.ai import operators, verdicts
from api.dashboard.pages.reading.ai.obedience import robots_of
from api.dashboard.pages.reading.ai.operators import ROBOTS_NAMES, AiTable, OperatorRow, Reads
from api.dashboard.pages.reading.export import table_file
from api.dashboard.pages.reading.measured import Measured
from api.dashboard.pages.reading.panels import events, sent
from api.dashboard.pages.reading.panels.panel import Panel, filled
from api.dashboard.pages.reading.timeline import timeline
from api.dashboard.robots.rules import EVERY_AGENT, RobotsRules, names
from api.dashboard.web import locale, render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import PURPOSES, STATES, View
from api.dashboard.web.visit import ProjectVisit
from api.http.operation import CSV
from api.reports import threads
from api.reports.report import Table
from ingest.classification.agents import BY_NAME
from ingest.verification.address_lists import age_warning
from ingest.verification.verdict import State
from warehouse.errors import TooManyBuckets
from warehouse.report.results import Counts

PURPOSE_TEXTS = {
    "training": "Copies pages to train a model. The answers of the model seldom name you as the source.",
    "search": "Indexes pages for a search with AI answers, which can link to you and send visitors.",
    "assistant": "Opens a page because a person has just asked something, and waits for the answer.",
    "agent": "Works on a task by itself, such as writing code, and reads the pages that it needs.",
    "data": "Collects pages for other companies, which use them for AI.",
}
"""Explanations of the purposes for the owner of a site."""
OPERATORS = 30
"""Number of operators on a page of the table."""
SPARKLINE_DAYS_MAX = 100
"""Number of days up to which a sparkline has a bar for each day; longer periods have a bar for each month."""
VERDICTS: dict[str, tuple[State, ...]] = {
    "good": ("verified", "signed_known_key"),
    "open": ("claimed", "not_checked"),
    "bad": ("invalid_signature",),
}
"""States of the verification in the bar of an operator, by CSS class."""
NAMED = 3
"""Number of operators that the sentence above the table names."""
SCHEMA = pa.schema(
    dict.fromkeys(("operator", "agent", "purpose"), pa.string())
    | dict.fromkeys(("reads", "verified", "pages", "visits_sent"), pa.int64())
    | {"reads_per_visit": pa.float64(), "last_read": pa.date32(), "robots_txt": pa.string()}
)
"""Columns of the table as CSV. The row of an operator has no agent, and precedes those of its agents."""
Cells = tuple[object, ...]


def ai_readers(visit: ProjectVisit) -> Response:
    view = _view(visit)
    measurement = measured.measured_in(view)
    table, cards = threads.together(partial(_table, view, measurement), partial(filled, PANELS, view, measurement))
    return render.counts_page(
        view,
        "reading/ai_readers.html",
        title=f"AI readers of {view.project.id}",
        tab="AI readers",
        measured=measurement,
        purposes=PURPOSES,
        states=STATES,
        purpose_texts=PURPOSE_TEXTS,
        old_lists=age_warning(visit.state.intake.verifier.lists(), view.now),
        panels=cards,
        **table,
    )


def _table(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the table of operators, and the chart."""
    robots, verification = robots_of(view), verdicts.verification_of(view)
    table = operators.table_of(view, measurement, robots, verification)
    obeying = _obeying(robots.current, table) if robots and view.filters.fields.keys() == {"traffic"} else []
    values = {"table": table, "verification": verification, "robots": robots, "obeying": obeying}
    if not table.operators:
        return values
    return {**values, "chart": timeline(view, measurement), "summary": _summary(view, table), **_rows(view, table)}


def most_read(view: View, _: Measured) -> dict[str, Any]:
    page = view.reports.views(view.snapshot, view.query(), 0, tables.ROWS, "ai")
    return {"rows": tables.rows_of(view, page, "path"), "has_more": False}


PANELS = (
    Panel("most-read", most_read, "most_read"),
    Panel("sent", sent.pages_sent, "sent"),
    Panel("downloads", events.downloads, "downloads"),
)
"""The cards below the table, in their order."""


def export(visit: ProjectVisit) -> Response:
    view = _view(visit)
    view.require_valid()
    verification = verdicts.verification_of(view)
    measurement = measured.measured_in(view)
    rows = list(_cells(operators.table_of(view, measurement, robots_of(view), verification), measurement))
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return table_file(view, CSV, "ai", Table(SCHEMA, pa.table(arrays, schema=SCHEMA).to_batches))


def _view(visit: ProjectVisit) -> View:
    view = View(visit)
    view.fix(traffic="ai")
    return view


def _cells(table: AiTable, measurement: measured.Measured) -> Iterator[Cells]:
    """Yield the rows of the table in the order of SCHEMA."""
    for row in table.operators:
        sent = (row.visits, None if measurement.no_quotient else row.reads_per_visit)
        yield row.name, None, None, row.views, row.verified, row.pages, *sent, row.last_day, None
        for agent in row.agents:
            robots = ROBOTS_NAMES[agent.robots] if agent.robots else None
            if agent.verdict:
                day = agent.verdict.since
                robots = f"{agent.verdict.text}{f' {day.date()}' if day else ''}"
            reads = (agent.views, agent.verified, agent.pages)
            yield row.name, agent.name, agent.purpose, *reads, None, None, agent.last_day, robots


def _summary(view: View, table: AiTable) -> str:
    """Return a sentence about the operators with most reads; empty if they have all reads and visits."""
    top = [row for row in table.operators if row.name][:NAMED]
    names = [str(row.name) for row in top]
    reads, all_reads, visits, all_visits = (
        locale.number(count, view.visit.locale)
        for count in (sum(row.views for row in top), table.views, sum(row.visits or 0 for row in top), table.visits)
    )
    sent = f" and sent {visits} of {all_visits} visits from AI" if table.has_visits and table.visits else ""
    has_others = (reads, visits) != (all_reads, all_visits)
    return f"{measured.joined(names)} made {reads} of {all_reads} reads{sent}." if top and has_others else ""


def _rows(view: View, table: AiTable) -> dict[str, Any]:
    """Return the values of the template for a page of the table."""
    number = view.page_number()
    first = (number - 1) * OPERATORS
    lines = _sparklines(view)
    return {
        "operators": table.operators[first : first + OPERATORS],
        "sparkline": lambda row: lines.get(row.name, ""),
        "purpose_bar": _purpose_bar,
        "verdict_bar": _verdict_bar,
        "number_of_page": number,
        "first": first + 1,
        "has_more": first + OPERATORS < len(table.operators),
    }


def _sparklines(view: View) -> dict[str, Markup]:
    """Return the reads of each operator over time, by UTC day: in another zone, a year of 100M hits takes 0.1 s."""
    interval = "day" if view.period.days and view.period.days <= SPARKLINE_DAYS_MAX else "month"
    try:
        by_operator = view.reports.series_by_operator(view.snapshot, view.query(), interval)
    except TooManyBuckets:
        return {}
    return {
        operator: sparkline.svg([Counts(ai=count) for count in reads["ai"].to_pylist()], f"Reads by {interval}")
        for operator, reads in by_operator.items()
    }


def _purpose_bar(row: OperatorRow) -> Markup:
    return bar.parts(((f"for-{purpose}", row.by_purpose.get(purpose, 0)) for purpose in PURPOSES), row.views)


def _verdict_bar(row: Reads) -> Markup:
    segments = ((css, sum(row.states.get(state, 0) for state in states)) for css, states in VERDICTS.items())
    return bar.parts(segments, row.views)


def _obeying(robots: RobotsRules, table: AiTable) -> list[str]:
    """Return the agents that a group of robots.txt disallows on the whole site, and that read no page in the period."""
    reading = {agent.name for row in table.operators for agent in row.agents}
    silent = {name: names(name) for name in BY_NAME if name not in reading}
    return [
        name
        for name, tokens in silent.items()
        if robots.group(tokens) not in (None, EVERY_AGENT) and robots.state(tokens) == "disallowed"
    ]


PAGES = (
    Page("GET", "/projects/{project}/ai", ai_readers, Access.PROJECT),
    Page("GET", "/projects/{project}/ai.csv", export, Access.PROJECT),
)
