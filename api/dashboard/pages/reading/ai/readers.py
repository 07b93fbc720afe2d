"""The AI readers of a project: operators by purpose, their agents, and the meanings of the columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from markupsafe import Markup
from starlette.responses import Response

from api.dashboard.charts import bar, sparkline
from api.dashboard.pages.reading import measured
from api.dashboard.pages.reading.ai import operators, verdicts
from api.dashboard.pages.reading.ai.operators import PAGES_DAYS, AiTable
from api.dashboard.pages.reading.export import table_file
from api.dashboard.pages.reading.timeline import timeline
from api.dashboard.robots import rules, texts
from api.dashboard.robots.rules import EVERY_AGENT, RobotsRules
from api.dashboard.web import render
from api.dashboard.web.period import Period
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import PURPOSES, STATES, View
from api.dashboard.web.visit import Visit
from api.http.operation import CSV
from api.reports.report import Table
from ingest.classification.agents import BY_NAME
from ingest.verification.address_lists import age_warning
from warehouse.errors import TooManyBuckets
from warehouse.report.results import Counts
from warehouse.report.time_buckets import INTERVALS

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
SPARKLINE_BARS = 100
"""Maximum number of bars of a sparkline, which is 150 to 400 pixels wide."""
BARS_OF_A_DAY = {"hour": 24, "day": 1, "week": 1 / 7, "month": 1 / 28}
SCHEMA = pa.schema(
    [
        ("operator", pa.string()),
        ("agent", pa.string()),
        ("purpose", pa.string()),
        ("reads", pa.int64()),
        ("verified", pa.int64()),
        ("pages", pa.int64()),
        ("visits_sent", pa.int64()),
        ("reads_per_visit", pa.float64()),
        ("last_read", pa.date32()),
        ("robots_txt", pa.string()),
    ]
)
"""Columns of the table as CSV. The row of an operator has no agent, and precedes those of its agents."""
Cells = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class PurposeCard:
    """Reads for one purpose in the period. `is_only` is whether the page is filtered by this purpose."""

    name: str
    text: str
    views: int
    sparkline: Markup
    link: str
    is_only: bool


def ai_readers(visit: Visit) -> Response:
    """Respond to GET /projects/{project}/ai."""
    view = _view(visit)
    measurement = measured.measured_in(view)
    text = texts.find(visit.state.control, view.project.id)
    robots = None if text is None else rules.parse(text.content)
    verification = verdicts.verification_of(view)
    table = operators.table_of(view, measurement, robots, verification)
    values: dict[str, Any] = {}
    if table.operators:
        values = {"chart": timeline(view, measurement), "cards": _cards(view, table), **_rows(view, table)}
    return render.counts_page(
        view,
        "reading/ai_readers.html",
        title=f"AI readers of {view.project.id}",
        tab="AI readers",
        measured=measurement,
        table=table,
        verification=verification,
        purposes=PURPOSES,
        states=STATES,
        robots=text,
        robots_day=datetime.fromtimestamp(text.saved_s, view.zone).date() if text else None,
        obeying=_obeying(robots, table) if robots and view.filters.fields.keys() == {"traffic"} else [],
        pages_days=PAGES_DAYS if view.period.days is None or view.period.days > PAGES_DAYS else None,
        old_lists=age_warning(visit.state.verifier.lists(), view.now),
        **values,
    )


def export(visit: Visit) -> Response:
    """Respond to GET /projects/{project}/ai.csv."""
    view = _view(visit)
    view.require_valid()
    text = texts.find(visit.state.control, view.project.id)
    robots = None if text is None else rules.parse(text.content)
    rows = list(_cells(operators.table_of(view, measured.measured_in(view), robots, verdicts.verification_of(view))))
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    batches = pa.table(arrays, schema=SCHEMA).to_batches()
    return table_file(view, CSV, "ai", Table(SCHEMA, lambda: batches))


def _view(visit: Visit) -> View:
    view = View(visit)
    view.fix(traffic="ai")
    return view


def _cells(table: AiTable) -> Iterator[Cells]:
    """Yield the rows of the table in the order of SCHEMA."""
    for row in table.operators:
        sent = (row.visits, row.reads_per_visit)
        yield row.name, None, None, row.views, row.verified, row.pages, *sent, row.last_day, None
        for agent in row.agents:
            robots = agent.robots_name if agent.robots else None
            reads = (agent.views, agent.verified, agent.pages)
            yield row.name, agent.name, agent.purpose, *reads, None, None, agent.last_day, robots


def _cards(view: View, table: AiTable) -> list[PurposeCard]:
    """Return a card for each purpose that has reads."""
    chosen = view.filters["purpose"]
    purposes = [purpose for purpose in table.purposes if purpose is not None]
    interval = _interval_of_sparklines(view.period)
    reads = _reads_by_purpose(view, purposes, interval)
    return [
        PurposeCard(
            PURPOSES[purpose],
            PURPOSE_TEXTS[purpose],
            table.of_purpose(purpose),
            _sparkline(purpose, reads.get(purpose), interval),
            view.link(purpose=None if purpose == chosen else purpose),
            purpose == chosen,
        )
        for purpose in purposes
    ]


def _rows(view: View, table: AiTable) -> dict[str, Any]:
    """Return the values of the template for a page of the table."""
    number = view.page_number()
    first = (number - 1) * OPERATORS
    return {
        "bar": _bars(table),
        "operators": table.operators[first : first + OPERATORS],
        "number_of_page": number,
        "first": first + 1,
        "has_more": first + OPERATORS < len(table.operators),
    }


def _bars(table: AiTable) -> Callable[[int], Markup]:
    """Return the function that draws the bar of an operator."""
    largest = max(row.views for row in table.operators)
    return lambda views: bar.svg(Counts(ai=views), largest)


def _interval_of_sparklines(period: Period) -> str:
    """Return the interval of the chart, or the next one with which a sparkline has at most SPARKLINE_BARS bars.

    All time has months, of which a project seldom has more.
    """
    longer = INTERVALS[INTERVALS.index(period.interval) :]
    if period.days is None:
        return INTERVALS[-1]
    return next((each for each in longer if period.days * BARS_OF_A_DAY[each] <= SPARKLINE_BARS), INTERVALS[-1])


def _reads_by_purpose(view: View, purposes: Sequence[str], interval: str) -> dict[str, pa.Table]:
    """Return the series of each purpose; an empty dictionary if there are too many intervals.

    Intervals of a day or more are of UTC: in another zone, each year of 100M hits takes 0.1 s more.
    """
    reports = view.reports
    try:
        if interval != "hour":
            return reports.series_by_purpose(view.snapshot, view.query(), interval)
        return {
            purpose: reports.series(view.snapshot, view.query(purpose=purpose), interval, view.zone)[1]
            for purpose in purposes
        }
    except TooManyBuckets:
        return {}


def _sparkline(purpose: str, reads: pa.Table | None, interval: str) -> Markup:
    if reads is None:
        return Markup()
    counts = [Counts(ai=count) for count in reads["ai"].to_pylist()]
    return sparkline.svg(counts, f"{PURPOSES[purpose]}: reads by {interval}")


def _obeying(robots: RobotsRules, table: AiTable) -> list[str]:
    """Return the agents that a group of robots.txt disallows on the whole site, and that read no page in the period."""
    reading = {agent.name for row in table.operators for agent in row.agents}
    silent = {name: operators.names(name) for name in BY_NAME if name not in reading}
    return [
        name
        for name, tokens in silent.items()
        if robots.group(tokens) not in (None, EVERY_AGENT) and robots.state(tokens) == "disallowed"
    ]


PAGES = (
    Page("GET", "/projects/{project}/ai", ai_readers, Access.PROJECT),
    Page("GET", "/projects/{project}/ai.csv", export, Access.PROJECT),
)
