"""One page of a site: its views over time, its AI agents, and where its readers come from."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from api.dashboard.pages.reading import measured, tables
from api.dashboard.pages.reading.measured import Measured, Shown, shown
from api.dashboard.pages.reading.tables import NO_NAMES, Row
from api.dashboard.pages.reading.timeline import timeline
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import View
from api.dashboard.web.visit import ProjectVisit
from warehouse.columns.sources import TRAFFIC
from warehouse.report.results import Counts

ROWS = 20
"""Maximum number of rows of a table."""


def path_page(visit: ProjectVisit) -> Response:
    view = View(visit)
    path = view.filters.path
    if path is None or path.endswith("*"):
        return render.page(
            visit, "reading/no_path.html", title="Choose a page", status=400, tab="Pages", view=view, path=path
        )
    view.fix(path=path)
    measurement = measured.measured_in(view)
    return render.counts_page(
        view,
        "reading/path_page.html",
        title=path,
        tab="Pages",
        measured=measurement,
        path=path,
        agent_link=lambda name: view.link(f"{view.visit.base}/ai/agents/{name}"),
        **(_numbers(view, measurement, path) if measurement.sources else {}),
    )


def values(view: View, by: str, traffic: str | None = None, names: Mapping[str, str] = NO_NAMES) -> dict[str, Any]:
    """Return the views that a page counts, by a dimension of the API. `names` are other names of values."""
    query = view.query(traffic=traffic) if traffic else view.query()
    page = view.reports.breakdown(view.snapshot, query, by, 0, ROWS)
    rows = tables.rows_of(view, page, by, names=names, path=view.filters.path)
    return {"rows": rows, "has_more": page.has_more}


def _numbers(view: View, measurement: Measured, path: str) -> dict[str, Any]:
    """Return the values of the template that are counts."""
    chart = timeline(view, measurement)
    own_hosts = {host: f"{host} (this site)" for host in tables.own_hosts(view)}
    totals = view.reports.breakdown(view.snapshot, view.query(), "source", 0, 1).totals
    return {
        "chart": chart,
        "totals": totals,
        "shown": measurement.shown(totals, view.period.start, view.period.end),
        "first_ai_day": view.reports.first_ai_days(view.snapshot, view.query(), [path]).get(path),
        "agents": values(view, "agent", traffic="ai"),
        "referrers": values(view, "referrerHost", "human", own_hosts),
        "formats": values(view, "format"),
        "statuses": values(view, "status"),
        "sources": _sources(view, measurement),
    }


def _sources(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the views by source, with None for readers that a source does not see or that are not counted from it."""
    table = values(view, "source")
    return table | {"rows": [replace(row, counts=_shown(row, measurement)) for row in table["rows"]]}


def _shown(row: Row, measurement: Measured) -> Shown:
    counts, source = Counts(*(getattr(row.counts, kind) or 0 for kind in TRAFFIC)), row.value or ""
    return shown(counts, [kind for kind in TRAFFIC if measurement.is_shown(source, kind)])


PAGES = (Page("GET", "/projects/{project}/page", path_page, Access.PROJECT),)
