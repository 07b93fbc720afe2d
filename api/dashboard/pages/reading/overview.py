"""The overview of a project: who reads it, what, and from where."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from starlette.responses import RedirectResponse, Response

from api.dashboard.pages.reading import measured, tables
from api.dashboard.pages.reading.ai import operators
from api.dashboard.pages.reading.measured import FILTERED, Measured, Shown
from api.dashboard.pages.reading.timeline import timeline
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import TRAFFIC, View
from api.dashboard.web.visit import ProjectVisit
from warehouse.report.results import Counts, Query

LIVE_MINUTES = 30
"""Length of the range of the live count, in minutes."""
SEARCH = "search"
"""Parameter of the search for pages, which becomes the filter `path`."""
TABLES = ("operators", "referrers", "campaigns", "devices", "browsers", "systems")
"""Tables of the page, which are keys of `tables.DIMENSIONS`."""


DOWNLOADS = {"time": "Chart", "pages": "Pages"} | {name: each.title for name, each in tables.DIMENSIONS.items()}
"""Titles of the reports that the page offers as files."""


@dataclass(frozen=True, slots=True)
class Total:
    """A total of the period, and of the previous period; None where nothing was measured, because of `reason`.

    `link` is the address of the page with these readers as a filter, or without this filter if it is on. The total of
    the visits leads to the AI readers.
    """

    name: str
    css: str
    now: int | None
    before: int | None
    reason: str | None
    link: str


def overview(visit: ProjectVisit) -> Response:
    """Respond to GET /projects/{project}."""
    view = View(visit)
    if SEARCH in view.values:
        return to_pages(view)
    measurement = measured.measured_in(view)
    numbers = _numbers(view, measurement) if measurement.sources else _live(view)
    return render.counts_page(
        view,
        "reading/overview.html",
        title=view.project.id,
        tab="Overview",
        measured=measurement,
        traffic_names=TRAFFIC,
        downloads=DOWNLOADS,
        **numbers,
    )


def live(visit: ProjectVisit) -> Response:
    """Respond to GET /projects/{project}/live: the count of the last minutes, for htmx."""
    view = View(visit)
    values: dict[str, Any] = {"view": view, "measured": measured.measured_in(view)}
    return render.fragment(visit, "reading/live.html", **values, **_live(view))


def _numbers(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the values of the template that are counts. All of them are of one moment."""
    chart = timeline(view, measurement)
    counts = chart.totals if chart else _totals(view, view.query())
    shown = measurement.shown(counts, view.period.start, view.period.end)
    visits = operators.visits_sent(view)
    return {
        "chart": chart,
        "totals": [*_all_totals(view, measurement, shown), _visits(view, measurement, visits)],
        "shown": shown,
        "visits": visits or {},
        "sent": operators.pages_sent(view),
        "paths": tables.paths(view, measurement),
        "tables": {name: tables.by_dimension(view, name, measurement) for name in TABLES},
        "sources": tables.sources(view, measurement),
        **_live(view),
    }


def _all_totals(view: View, measurement: Measured, now: Shown) -> list[Total]:
    compared = [kind for kind in TRAFFIC if measurement.compares(kind)]
    before = _totals(view, view.query(measurement.previous)) if compared else Counts()
    return [
        Total(
            TRAFFIC[traffic],
            css,
            getattr(now, traffic),
            getattr(before, traffic) if traffic in compared else None,
            measurement.reason(traffic),
            view.link(traffic=None if view.filters["traffic"] == traffic else traffic),
        )
        for traffic, css in (("human", "people"), ("ai", "ai"), ("bot", "bot"))
    ]


def _visits(view: View, measurement: Measured, visits: Mapping[str, int] | None) -> Total:
    """Return the visits by people from all AI products."""
    reason = FILTERED if visits is None else measurement.unmeasured("human")
    before = operators.visits_sent(view, measurement.previous) if measurement.compares("human") else None
    link = view.link(f"{view.visit.base}/ai")
    now = None if visits is None or reason else sum(visits.values())
    return Total("Visits from AI", "visits", now, None if before is None else sum(before.values()), reason, link)


def _totals(view: View, query: Query) -> Counts:
    return view.reports.breakdown(view.snapshot, query, "source", 0, 1).totals


def _live(view: View) -> dict[str, Any]:
    """Return the counts of the last minutes."""
    start = view.now - timedelta(minutes=LIVE_MINUTES)
    query = Query(view.project.id, start, None, view.filters, view.now)
    return {"live": _totals(view, query), "live_minutes": LIVE_MINUTES}


def to_pages(view: View, **parameters: str | None) -> Response:
    """Redirect to the page with `parameters`, and the filter of the pages that have the text of the search.

    A text that begins with a slash is the beginning of a path, any other one is anywhere in the path.
    """
    text = view.values[SEARCH].strip().strip("*")
    path = f"{text}*" if text.startswith("/") else f"*{text}*" if text else None
    return RedirectResponse(view.link(path=path, **parameters), 303)


PAGES = (
    Page("GET", "/projects/{project}", overview, Access.PROJECT),
    Page("GET", "/projects/{project}/live", live, Access.PROJECT),
)
