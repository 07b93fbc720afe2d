"""The page that explains why a request counts as a person, as AI or as another bot."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import PURPOSES, TRAFFIC
from api.dashboard.web.visit import ProjectVisit
from ingest.classification import agents
from ingest.classification.agents import Agent
from ingest.classification.classifier import AFTER_ACCEPT, classify
from ingest.classification.device import MATCHED_CHARACTERS_MAX, matched_text
from ingest.classification.explain import ACCEPT_NAME, NAMES, TriedStep, explain
from ingest.hits.evidence import ACCEPT_CHARACTERS_MAX
from ingest.hits.hit import USER_AGENT_CHARACTERS_MAX
from warehouse.columns.filters import Filters
from warehouse.report.results import Query

USER_AGENTS_SHOWN = 10
"""Number of user agents of each class."""
AGENTS_SHOWN = 50
DAYS = timedelta(days=7)
"""Length of the time whose user agents are shown, which ends now."""
QUERY_CHARACTERS_MAX = 100


def why(visit: ProjectVisit) -> Response:
    """Show the form, the explanation of its request, and the most frequent user agents of each class."""
    user_agent = visit.parameters.get("userAgent")
    accept = visit.parameters.get("accept", "").strip()
    is_too_long = user_agent is not None and len(user_agent) > USER_AGENT_CHARACTERS_MAX
    is_accept_too_long = len(accept) > ACCEPT_CHARACTERS_MAX
    is_valid = not (is_too_long or is_accept_too_long)
    query = visit.parameters.get("search", "").strip()[:QUERY_CHARACTERS_MAX]
    return render.page(
        visit,
        "why.html",
        title="Why",
        status=200 if is_valid else 400,
        tab="Why",
        user_agent=user_agent,
        user_agent_max=USER_AGENT_CHARACTERS_MAX if is_too_long else None,
        accept=accept,
        accept_max=ACCEPT_CHARACTERS_MAX if is_accept_too_long else None,
        explanation=None if user_agent is None or not is_valid else _explained(user_agent, accept or None),
        query=query,
        known=_known(query) if query else [],
        known_count=len(agents.AGENTS),
        frequent=_frequent(visit, visit.project.id),
        traffic_names=TRAFFIC,
        purposes=PURPOSES,
    )


def _explained(user_agent: str, accept: str | None) -> dict[str, Any]:
    """Return how a request is classified. `untried` are the names of the steps after the step that decided."""
    steps, answer = explain(user_agent, accept), classify(user_agent, accept)
    is_by_accept = steps[-1].name == ACCEPT_NAME
    matched = None if is_by_accept else steps[-1].text
    return {
        "user_agent": user_agent,
        "accept": accept,
        "traffic": answer.traffic,
        "agent": answer.agent,
        "steps": steps,
        "decision": steps[-1],
        "untried": _untried(steps, accept),
        "parts": _parts(matched_text(user_agent), matched),
        "ignored": max(0, len(user_agent) - MATCHED_CHARACTERS_MAX),
    }


def _untried(steps: Sequence[TriedStep], accept: str | None) -> tuple[str, ...]:
    """Return the names of the other steps; that of the Accept header only if the header is known."""
    names = list(NAMES.values())
    if accept is not None:
        names.insert(names.index(NAMES[AFTER_ACCEPT]), ACCEPT_NAME)
    tried = {step.name for step in steps}
    return tuple(name for name in names if name not in tried)


def _parts(user_agent: str, matched: str | None) -> tuple[str, str, str]:
    """Return the user agent before, in and after the matched text, which may be in lower case."""
    start = -1 if not matched else user_agent.find(matched)
    if matched and start < 0:
        start = user_agent.lower().find(matched)
    if not matched or start < 0:
        return user_agent, "", ""
    end = start + len(matched)
    return user_agent[:start], user_agent[start:end], user_agent[end:]


def _known(query: str) -> list[Agent]:
    """Return the AI agents whose name, operator or token contains the query."""
    text = query.casefold()
    return [
        agent
        for agent in agents.AGENTS
        if any(text in each.casefold() for each in (agent.name, agent.operator, *agent.tokens))
    ][:AGENTS_SHOWN]


def _frequent(visit: ProjectVisit, project: str) -> dict[str, list[dict[str, object]]]:
    """Return the user agents with most views in the last days, for each class."""
    reports = visit.state.reports
    snapshot = reports.take()
    query = Query(project, visit.now - DAYS, None, Filters(), visit.now)
    return {kind: reports.user_agents(snapshot, query, kind, USER_AGENTS_SHOWN).to_pylist() for kind in TRAFFIC}


PAGES = (Page("GET", "/projects/{project}/why", why, Access.PROJECT),)
