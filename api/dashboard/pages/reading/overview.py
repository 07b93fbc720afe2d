"""The overview of a project: who reads it, what, and from where."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.responses import RedirectResponse, Response

from api.dashboard.pages.reading import events, measured, tables, visitors
from api.dashboard.pages.reading.ai import operators
from api.dashboard.pages.reading.measured import FILTERED, Measured, Shown
from api.dashboard.pages.reading.timeline import CSS, timeline
from api.dashboard.pages.reading.visitors import Total
from api.dashboard.web import locale, render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import TRAFFIC, View
from api.dashboard.web.visit import ProjectVisit
from api.reports import threads
from warehouse.report.results import Counts, Query

VIEWS = {"human": "Views by people", "ai": "Reads by AI", "bot": "Other bots"}
PEOPLE = (None, "human")
"""Filters of readers that have people, who visit from AI products."""
SEARCH = "search"
"""Parameter of the search for pages, which becomes the filter `path`."""
CARDS = {
    "pages": ("pages", "entry", "exit"),
    "operators": ("operators",),
    "origins": ("referrers", "channels", *tables.CAMPAIGNS),
    "places": ("countries", "languages"),
    "devices": ("browsers", "systems", "devices"),
}
"""Tables of each card of the page, which are keys of `tables.DIMENSIONS`. The first one is open by default."""
TITLES = {name: each.title for name, each in tables.DIMENSIONS.items()}
DOWNLOADS = {"time": "Chart", "pages": "Pages"} | {name: TITLES[name] for name in TITLES if name not in CARDS["pages"]}
"""Titles of the reports that the page offers as files."""


def overview(visit: ProjectVisit) -> Response:
    """Respond to GET /projects/{project}."""
    view = View(visit)
    if SEARCH in view.values:
        return to_pages(view)
    measurement = measured.measured_in(view)
    numbers = _numbers(view, measurement) if measurement.sources else visitors.live(view)
    return render.counts_page(
        view,
        "reading/overview.html",
        title=view.project.id,
        tab="Overview",
        measured=measurement,
        traffic_names=TRAFFIC,
        cards=CARDS,
        campaigns=tables.CAMPAIGNS,
        titles={"pages": "Top pages"} | TITLES,
        views_of=VIEWS,
        formats={
            "number": lambda count: locale.number(count, visit.locale),
            "percent": lambda percent: locale.percent(percent / 100, visit.locale),
            "duration": locale.duration,
        },
        downloads=DOWNLOADS,
        **numbers,
    )


def live(visit: ProjectVisit) -> Response:
    """Respond to GET /projects/{project}/live: the count of the last minutes, for htmx."""
    view = View(visit)
    values: dict[str, Any] = {"view": view, "measured": measured.measured_in(view)}
    return render.fragment(visit, "reading/live.html", **values, **visitors.live(view))


def _numbers(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the values of the template that are counts. All of them are of one moment."""
    readers, panels = threads.together(partial(_readers, view, measurement), partial(_panels, view, measurement))
    return readers | panels


def _readers(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the chart and the totals."""
    chart = timeline(view, measurement)
    counts = chart.totals if chart else _totals(view, view.query())
    shown = measurement.shown(counts, view.period.start, view.period.end)
    visits = operators.visits_sent(view) if view.filters["traffic"] in PEOPLE else None
    of_visitors, about = visitors.totals(view, measurement)
    return {
        "chart": chart,
        "totals": _groups(view, measurement, shown, visits, of_visitors),
        "about_visitors": about,
        "people": visitors.people(view, counts),
        "shown": shown,
        "visits": visits,
    }


def _panels(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the tables, and the visitors of the last minutes."""
    opened = {card: name if (name := view.values.get(card)) in names else names[0] for card, names in CARDS.items()}
    return {
        "sent": operators.pages_sent(view) if view.filters["traffic"] in PEOPLE else None,
        "paths": tables.paths(view, measurement) if opened["pages"] == "pages" else None,
        "opened": opened,
        "tables": {name: tables.by_dimension(view, name, measurement) for name in opened.values() if name != "pages"},
        "sources": tables.sources(view, measurement),
        "goals": visitors.GoalTable(None, []) if view.visit.is_shared else visitors.goals(view),
        "events": events.events(view),
        **visitors.live(view),
    }


def _groups(
    view: View,
    measurement: Measured,
    now: Shown,
    visits: Mapping[str, int] | None,
    of_visitors: Mapping[str, list[Total]],
) -> tuple[list[Total], list[Total]]:
    """Return two groups of totals: of people, and of AI and other bots."""
    compared = [kind for kind in TRAFFIC if measurement.compares(kind)]
    before = _totals(view, view.query(measurement.previous)) if compared else Counts()
    human, ai, bot = (
        Total(
            name,
            CSS[traffic],
            getattr(now, traffic),
            getattr(before, traffic) if traffic in compared else None,
            measurement.reason(traffic),
            view.link(traffic=None if view.filters["traffic"] == traffic else traffic),
        )
        for traffic, name in VIEWS.items()
    )
    return [human, *of_visitors["human"]], [ai, *of_visitors["ai"], _visits(view, measurement, visits), bot]


def _visits(view: View, measurement: Measured, visits: Mapping[str, int] | None) -> Total:
    """Return the visits by people from all AI products."""
    reason = FILTERED if visits is None else measurement.unmeasured("human")
    before = operators.visits_sent(view, measurement.previous) if measurement.compares("human") else None
    link = view.link(f"{view.visit.base}/ai")
    now = None if visits is None or reason else sum(visits.values())
    then = None if before is None else sum(before.values())
    return Total("Visits from AI", "visits", now, then, reason, link if view.visit.has_pages else None)


def _totals(view: View, query: Query) -> Counts:
    return view.reports.breakdown(view.snapshot, query, "source", 0, 1).totals


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
