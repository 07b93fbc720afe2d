"""One AI agent: its operator and purpose, its rule, the pages that it reads, and its rules in robots.txt."""

from collections import Counter
from typing import Any, Literal

from starlette.responses import Response

from api.dashboard.pages.reading import path_page, tables
from api.dashboard.pages.reading.ai import verdicts
from api.dashboard.pages.reading.ai.obedience import VERSIONS_MAX, Robots, robots_of
from api.dashboard.pages.reading.ai.readers import PURPOSE_TEXTS
from api.dashboard.pages.reading.ai.verdicts import SPOOFED
from api.dashboard.pages.reading.measured import Measured, measured_in
from api.dashboard.pages.reading.timeline import timeline
from api.dashboard.robots import rules
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import PURPOSES, STATES, View
from api.dashboard.web.visit import ProjectVisit
from api.http.problems import Problem
from api.reports.parameters import TEXT_CHARACTERS_MAX
from ingest.classification.agents import BY_NAME
from ingest.hits.url import UNSTORABLE
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST
from warehouse.report.results import Listing, Query

ROWS = 25
"""Number of paths on a page of the table."""
USER_AGENTS = 3
"""Number of user agents that are shown."""
EXAMPLES = 5
"""Number of disallowed pages that are named."""
AgentTraffic = Literal["ai", "bot"]
"""Traffic of the hits: reads of the agent, or spoofed requests in its name, which count as those of a bot."""
ASKED = ("assistant",)
"""Purposes of agents whose operators document that they may ignore robots.txt, because a person asks for the page."""


def agent(visit: ProjectVisit) -> Response:
    view, name = View(visit), visit.path_parameter("agent")
    traffic: AgentTraffic = "bot" if view.filters["verification"] == SPOOFED else "ai"
    view.fix(traffic=traffic, agent=name, operator=None, purpose=None)
    known = _known(view, name)
    number = view.page_number()
    measurement = measured_in(view)
    return render.counts_page(
        view,
        "reading/agent.html",
        title=name,
        tab="AI readers",
        measured=measurement,
        name=name,
        fact=BY_NAME.get(name),
        disallowing=rules.disallowing(BY_NAME[name].tokens) if name in BY_NAME else "",
        known=known,
        kind=traffic,
        verification=verdicts.verification_of(view),
        purposes=PURPOSES,
        states=STATES,
        purpose_texts=PURPOSE_TEXTS,
        number_of_page=number,
        first=(number - 1) * ROWS + 1,
        **_numbers(view, measurement, name, traffic, number),
    )


def _known(view: View, name: str) -> dict[str, Any] | None:
    """Return the operator, purpose, views and last day of the agent in the hits of all time; None without hits.

    If the operator or the purpose has changed, they are those of the newest hits.

    Raises:
        Problem: `not-found` for a name that neither the table of agents nor a hit has.
    """
    if len(name) <= TEXT_CHARACTERS_MAX and not UNSTORABLE.search(name):
        query = Query(view.project.id, FIRST, None, Filters(traffic="ai", agent=name), view.now)
        rows: list[dict[str, Any]] = view.reports.agents(view.snapshot, query).to_pylist()
        if rows:
            return max(rows, key=lambda row: str(row["last_day"]))
    if name not in BY_NAME:
        where = f"neither the rules nor the reads of {view.project.id}"
        raise Problem("not-found", f"{where} have an AI agent “{name[:80]}”")
    return None


def _numbers(view: View, measurement: Measured, name: str, traffic: AgentTraffic, number: int) -> dict[str, Any]:
    """Return the values of the template that are counts of the period."""
    robots, tokens = robots_of(view), rules.names(name)
    chart = timeline(view, measurement)
    listing = Listing(traffic, with_bots=traffic == "bot")
    page = view.reports.breakdown(view.snapshot, view.query(), "path", (number - 1) * ROWS, ROWS, listing)
    rows = tables.rows_of(view, page, "path")
    return {
        "chart": chart,
        "totals": page.totals,
        "paths": view.reports.agent_pages(view.snapshot, view.query()).get(name, 0),
        "rows": rows,
        "disallowed": {each.value for each in rows if robots and not robots.current.allows(tokens, each.value or "")},
        "has_more": page.has_more,
        "statuses": path_page.values(view, "status"),
        "formats": path_page.values(view, "format"),
        "user_agents": view.reports.user_agents(view.snapshot, view.query(), traffic, USER_AGENTS).to_pylist(),
        "robots": _robots(robots, name) if robots else None,
        "is_asked": name in BY_NAME and BY_NAME[name].purpose in ASKED,
    }


def _robots(robots: Robots, name: str) -> dict[str, Any]:
    """Return the rules for the agent, its violations in the period, and the texts that were in force.

    `examples` are the paths with most violations. `unknown` is the number of disallowed reads that may be violations:
    no log covers the time of their text. `group` is None if no group applies to the agent.
    """
    versions = robots.versions(name)
    current = next((each for each in versions if each.since == robots.since), None)
    violations, unknown = Counter[str](), 0
    for each in versions:
        violations.update(each.after)
        unknown += 0 if each.is_logged else sum(each.before.values())
    return {
        "since": robots.since,
        "state": robots.current.state(rules.names(name)),
        "group": robots.current.group(rules.names(name)),
        "versions": versions,
        "is_read_against": current is not None and bool(current.after),
        "is_obeyed": current is not None and not current.before and not current.after,
        "paths": len(violations),
        "views": violations.total(),
        "is_limited": any(each.is_limited for each in versions) or len(versions) == VERSIONS_MAX,
        "unknown": unknown,
        "examples": [path for path, _ in violations.most_common(EXAMPLES)],
    }


PAGES = (Page("GET", "/projects/{project}/ai/agents/{agent:path}", agent, Access.PROJECT),)
