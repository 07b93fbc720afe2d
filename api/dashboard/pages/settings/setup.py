"""The page on which an owner sets up the sources of a project, and sees what each of them has sent."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from api.dashboard.pages.reading.measured import readable
from api.dashboard.pages.settings import recipes, source_policy
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import SOURCES
from api.dashboard.web.visit import ProjectVisit
from api.http.headers import header
from api.routes import beacon
from ingest.hits.hit import BeaconHit
from ingest.hits.url import URL_CHARACTERS_MAX
from warehouse.columns.filters import Filters
from warehouse.control import projects
from warehouse.control.policy import TEXTS
from warehouse.errors import InvalidProject
from warehouse.report.results import Query
from warehouse.report.source_coverage import Coverage

TEST_PATH = "/readership-test"
"""Path of a test view."""
TEST_SHOWN = timedelta(hours=1)
"""Time after its sending for which the page shows whether a test view has arrived."""
ORIGINS_MAX = 100
ORIGIN_CHARACTERS_MAX = 300
MISSING_DAYS_SHOWN = 60
HOW: Mapping[str, str] = {"beacon": "script", "server": "server", "log": "logs"}
"""Anchor of the part of the page that describes how to set up each source."""


def arrivals(visit: ProjectVisit) -> Response:
    """Show only what has arrived, for a page that waits."""
    return render.fragment(visit, "setup_arrivals.html", **_arrivals(visit, _coverage(visit)))


def send_test_view(visit: ProjectVisit) -> Response:
    """Store a view of the owner's own browser, as a beacon does, and show what has arrived."""
    view = beacon.count(visit.request, visit.project, BeaconHit(path=TEST_PATH))
    asyncio.run_coroutine_threadsafe(view, visit.state.intake.hotlog.loop).result()
    return _to("arrivals", visit, test=str(int(visit.now.timestamp() * 1_000)))


def set_origins(visit: ProjectVisit) -> Response:
    """Replace the origins of the project, or add the origin in the form's field `allowed`."""
    form, control, id = visit.form, visit.state.control, visit.project.id
    allowed = form.values.get("allowed")
    origins = (*visit.project.origins, allowed) if allowed else tuple(form.values.get("origins", "").split())
    if len(origins) > ORIGINS_MAX:
        form.fault("origins", f"Use at most {ORIGINS_MAX} origins, not {len(origins):,}.")
    elif any(len(origin) > ORIGIN_CHARACTERS_MAX for origin in origins):
        form.fault("origins", f"An origin has at most {ORIGIN_CHARACTERS_MAX} characters.")
    else:
        try:
            if allowed:
                projects.allow_origin(control, id, allowed, visit.user_name)
            else:
                projects.set_origins(control, id, origins, visit.user_name)
        except InvalidProject as error:
            form.fault("origins", error)
    if form.faults:
        return setup(visit)
    return _to("sites", visit, notice="origins")


def set_policy(visit: ProjectVisit) -> Response:
    """Set the source policy of the project from a day on."""
    if not source_policy.save(visit):
        return setup(visit)
    return _to("source-policy", visit, notice="policy")


def _to(anchor: str, visit: ProjectVisit, **parameters: str) -> Response:
    response = render.redirect(visit, f"/projects/{visit.project.id}/setup", **parameters)
    response.headers["location"] += f"#{anchor}"
    return response


def setup(visit: ProjectVisit) -> Response:
    """Show how to set up the sources."""
    form = visit.form
    coverage, notice = _coverage(visit), None if form.faults else visit.parameters.get(render.NOTICE)
    return render.page(
        visit,
        "setup.html",
        title="Set up",
        status=422 if form.faults else 200,
        tab="Set up",
        form=form,
        recipes=recipes.of(visit),
        test_path=TEST_PATH,
        check=_site_check(visit),
        is_changed=notice == "origins",
        policy=source_policy.policy_of(visit, coverage),
        policy_names=source_policy.NAMES,
        policy_texts=TEXTS,
        is_policy_changed=notice == "policy",
        **_arrivals(visit, coverage),
    )


def _site_check(visit: ProjectVisit) -> dict[str, Any] | None:
    """Return the address in question, its origin, and whether views from it are accepted; None without an address."""
    address = visit.parameters.get("site", "").strip()[:URL_CHARACTERS_MAX]
    if not address:
        return None
    try:
        origin = projects.origin_of(address)
    except InvalidProject:
        return {"address": address, "origin": None, "is_allowed": False}
    return {"address": address, "origin": origin, "is_allowed": visit.project.allows(origin)}


def _coverage(visit: ProjectVisit) -> Coverage:
    reports = visit.state.reports
    return reports.source_coverage(reports.take(), visit.project.id)


def _arrivals(visit: ProjectVisit, coverage: Coverage) -> dict[str, Any]:
    """Return the values of the part of the page that shows what has arrived."""
    by_name = {source.source: source for source in coverage.sources}
    sources = [{"name": title, "how": HOW[name], "coverage": by_name.get(name)} for name, title in SOURCES.items()]
    sent = _sent(visit)
    test = None if sent is None else {"sent": sent, "rule": _arrived_rule(visit, sent)}
    is_pending = test is not None and test["rule"] is None
    return {
        "sources": sources,
        "missing_days_max": MISSING_DAYS_SHOWN,
        "refused": visit.state.intake.refused_origins.of(visit.project),
        "warnings": readable(coverage.warnings, visit.locale),
        "counts_twice": coverage.counted_twice,
        "test": test,
        "user_agent": header(visit.request, b"user-agent") or "",
        "waits": is_pending or len(coverage.sources) < len(SOURCES),
    }


def _sent(visit: ProjectVisit) -> datetime | None:
    """Return the time at which the test view was sent for which the page waits; None without a test view."""
    text = visit.parameters.get("test", "")
    if not (text.isascii() and text.isdigit() and len(text) < 14):
        return None
    sent = datetime.fromtimestamp(int(text) / 1_000, UTC)
    return sent if visit.now - TEST_SHOWN < sent <= visit.now + TEST_SHOWN else None


def _arrived_rule(visit: ProjectVisit, sent: datetime) -> str | None:
    """Return the rule of a view of TEST_PATH since `sent`; None if no such view has arrived."""
    reports = visit.state.reports
    query = Query(visit.project.id, sent - timedelta(milliseconds=1), None, Filters(path=TEST_PATH), visit.now)
    rows = reports.breakdown(reports.take(), query, "rule", 0, 1).rows.to_pylist()
    return str(rows[0]["value"]) if rows else None


PAGES = (
    Page("GET", "/projects/{project}/setup", setup, Access.PROJECT),
    Page("GET", "/projects/{project}/setup/arrivals", arrivals, Access.PROJECT),
    Page("POST", "/projects/{project}/setup/test", send_test_view, Access.OWNER),
    Page("POST", "/projects/{project}/setup/origins", set_origins, Access.OWNER),
    Page("POST", "/projects/{project}/setup/policy", set_policy, Access.OWNER),
)
