"""The projects, each with its readers of the last 30 days, its last view and its warnings, and how to create one."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from api.dashboard.charts import sparkline
from api.dashboard.pages.reading import measured
from api.dashboard.pages.reading.measured import readable
from api.dashboard.pages.reading.tables import BOTH
from api.dashboard.web import locale, render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import Visit
from warehouse.columns.filters import Filters
from warehouse.control import projects
from warehouse.control.projects import ANY_ORIGIN, Project
from warehouse.errors import InvalidProject, ProjectExists
from warehouse.query.snapshot import Snapshot
from warehouse.report.audience.activity import Sparkline
from warehouse.report.measured import midnight
from warehouse.report.results import Counts, Query

_DAY = timedelta(days=1)
PAGE_PROJECTS = 20
"""Number of projects on a page."""
ID_CHARACTERS_MAX, ORIGIN_CHARACTERS_MAX = 63, 1_000


def list_projects(visit: Visit) -> Response:
    return _page(visit)


def create(visit: Visit) -> Response:
    """Respond to POST /projects: create a project, and go on to its set-up."""
    form = visit.form
    id = form.text("id", ID_CHARACTERS_MAX)
    address = form.text("origin", ORIGIN_CHARACTERS_MAX, required=False)
    if not form.faults:
        try:
            origin = ANY_ORIGIN if address in ("", ANY_ORIGIN) else projects.origin_of(address)
            projects.create(visit.state.control, id, (origin,), int(visit.now.timestamp()))
        except ProjectExists as error:
            form.fault("id", error)
        except InvalidProject as error:
            form.fault("id" if projects.ID.fullmatch(id) is None else "origin", error)
    if form.faults:
        return _page(visit, status=422)
    return render.redirect(visit, f"/projects/{id}/setup")


def _page(visit: Visit, status: int = 200) -> Response:
    every = projects.list_all(visit.state.control)
    pages = max(-(-len(every) // PAGE_PROJECTS), 1)
    number, fault = visit.page_of(pages)
    shown = every[(number - 1) * PAGE_PROJECTS : number * PAGE_PROJECTS]
    return render.page(
        visit,
        "reading/projects.html",
        title="Projects",
        zone_name="UTC",
        status=status if fault is None else 400,
        fault=fault,
        cards=_cards(visit, shown),
        page_number=number,
        pages=pages,
        count=len(every),
    )


def _cards(visit: Visit, shown: Sequence[Project]) -> list[dict[str, Any]]:
    reports = visit.state.reports
    snapshot = reports.take()
    ids = [project.id for project in shown]
    lines, last_hits = reports.sparklines(snapshot, ids, visit.now), reports.last_hits(snapshot, ids)
    return [_card(visit, project, snapshot, lines[project.id], last_hits[project.id]) for project in shown]


def _card(visit: Visit, project: Project, snapshot: Snapshot, line: Sparkline, last: datetime | None) -> dict[str, Any]:
    """Return a project for the template. A count is None if these readers were not counted."""
    reports = visit.state.reports
    coverage = reports.source_coverage(snapshot, project.id)
    starts = [midnight(day.toordinal()) for day in line.days]
    known = reports.measured(snapshot, Query(project.id, starts[0], None, Filters(), visit.now))
    days = [
        Counts(human, ai) if human or ai or any(known.counts(kind, day, day + _DAY) for kind in BOTH) else None
        for day, human, ai in zip(starts, line.human, line.ai, strict=True)
    ]
    people, ai = (
        sum(counts) or (0 if known.counts(kind, starts[0], None) else None)
        for kind, counts in zip(BOTH, (line.human, line.ai), strict=True)
    )
    counted = [(people, "people"), (ai, "AI")]
    numbers = [f"{locale.number(count, visit.locale)} by {name}" for count, name in counted if count is not None]
    title = f"Views of {project.id} in the last 30 days: {' and '.join(numbers) or 'not counted'}"
    return {
        "project": project,
        "sparkline": sparkline.svg(days, title),
        "people": people,
        "ai": ai,
        "sees_ai": any(source.source in measured.SERVER_SOURCES for source in coverage.sources),
        "last_view": last,
        "warnings": readable(coverage.warnings, visit.locale),
    }


PAGES = (Page("GET", "/projects", list_projects, Access.SIGNED_IN), Page("POST", "/projects", create, Access.OWNER))
