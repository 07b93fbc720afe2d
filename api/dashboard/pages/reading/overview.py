"""The overview of a project: who reads it, what, and from where."""

from functools import partial
from typing import Any

from starlette.responses import RedirectResponse, Response

from api.dashboard.pages.reading import measured, visitors
from api.dashboard.pages.reading.measured import Measured
from api.dashboard.pages.reading.panels import dimension, events, goals, pages, sent
from api.dashboard.pages.reading.panels.panel import Panel, filled
from api.dashboard.pages.reading.panels.views import views
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import TRAFFIC, View
from api.dashboard.web.visit import ProjectVisit
from api.reports import threads

SEARCH = "search"
"""Parameter of the search for pages, which becomes the filter `path`."""
PANELS = (
    Panel("pages", pages.card, "pages"),
    dimension.card("operators", "operators"),
    Panel("sent", sent.of_people, "sent"),
    dimension.card("origins", "referrers", "channels", *dimension.CAMPAIGNS),
    Panel("goals", goals.goals, "goals"),
    Panel("events", events.events, "events"),
    dimension.card("places", "countries", "languages"),
    dimension.card("devices", "browsers", "systems", "devices"),
)
"""The cards below the chart, in their order."""
TITLES = {name: each.title for name, each in dimension.DIMENSIONS.items()}
DOWNLOADS = {"time": "Chart", "pages": "Pages"} | {name: TITLES[name] for name in TITLES if name not in pages.TABLES}
"""Titles of the reports that the page offers as files."""


def overview(visit: ProjectVisit) -> Response:
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
        campaigns=dimension.CAMPAIGNS,
        titles={"pages": "Top pages"} | TITLES,
        downloads=DOWNLOADS,
        **numbers,
    )


def live(visit: ProjectVisit) -> Response:
    view = View(visit)
    values: dict[str, Any] = {"view": view, "measured": measured.measured_in(view)}
    return render.fragment(visit, "reading/live.html", **values, **visitors.live(view))


def _numbers(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the values of the template that are counts. All of them are of one moment."""
    first, others = threads.together(partial(views, view, measurement), partial(_others, view, measurement))
    return first | others


def _others(view: View, measurement: Measured) -> dict[str, Any]:
    return {"panels": filled(PANELS, view, measurement), **visitors.live(view)}


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
