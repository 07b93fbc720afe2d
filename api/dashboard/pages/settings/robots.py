"""The robots.txt of a site, which an owner pastes, and what it allows the AI agents that read the site."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from api.dashboard.pages.reading.ai import operators
from api.dashboard.pages.reading.ai.operators import ROBOTS_NAMES
from api.dashboard.robots import rules, texts
from api.dashboard.robots.rules import RobotsRules, State
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import ProjectVisit
from ingest.classification.agents import BY_NAME

FIELD = "robots"
FORM_BYTES_MAX = 4 * texts.BYTES_MAX
"""Maximum size of the form: a form has three bytes for each character that is not a letter or a digit."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """Rules of robots.txt for an agent. `group` is the agent's group in the text, or None without one."""

    name: str
    operator: str
    state: State
    state_name: str
    group: str | None


def show(visit: ProjectVisit) -> Response:
    """Respond to GET /projects/{project}/ai/robots."""
    return _page(visit)


def save(visit: ProjectVisit) -> Response:
    """Respond to POST /projects/{project}/ai/robots."""
    content = visit.form.values.get(FIELD, "")
    if fault := _fault(content):
        visit.form.fault(FIELD, fault)
        return _page(visit, status=422)
    texts.save(visit.state.control, visit.project.id, content, int(visit.now.timestamp()))
    return render.redirect(visit, f"/projects/{visit.project.id}/ai/robots", notice="saved")


def remove(visit: ProjectVisit) -> Response:
    """Respond to POST /projects/{project}/ai/robots/remove."""
    texts.remove(visit.state.control, visit.project.id)
    return render.redirect(visit, f"/projects/{visit.project.id}/ai/robots", notice="removed")


def _fault(content: str) -> str | None:
    """Return the reason why a text cannot be saved; None if it can."""
    size = len(content.encode())
    if not content.strip():
        return "Paste the text of your robots.txt."
    if size > texts.BYTES_MAX:
        return (
            f"The text has {size // 1024:,} KiB; crawlers read at most {texts.BYTES_MAX // 1024} KiB of a robots.txt."
        )
    if "\0" in content:
        return "The text has a NUL character: it is not a text file."
    if not rules.parse(content).has_groups:
        return "The text has no rule, because no line begins with “User-agent:”. Is it a robots.txt?"
    group, count = rules.largest_group(content)
    if count > rules.RULES_MAX:
        return f"The group “{group[:40]}” has {count:,} rules; at most {rules.RULES_MAX} in one group are supported."
    return None


def _page(visit: ProjectVisit, status: int = 200) -> Response:
    text = texts.find(visit.state.control, visit.project.id)
    *agents, others = _agents(text.content if text else "")
    return render.page(
        visit,
        "settings/robots.html",
        title=f"robots.txt of {visit.project.id}",
        status=status,
        tab="robots.txt",
        text=text,
        saved=datetime.fromtimestamp(text.saved_s, visit.zone) if text else None,
        agents=agents,
        others=others,
        field=FIELD,
        notice=visit.parameters.get(render.NOTICE),
    )


def _agents(content: str) -> list[AgentState]:
    """Return the AI agents with an own group, by operator, and at the end the state of all others, without a name."""
    parsed = rules.parse(content)
    rows = [_state(parsed, name, agent.operator, operators.names(name)) for name, agent in BY_NAME.items()]
    own = [row for row in rows if row.group not in (None, rules.EVERY_AGENT)]
    return [*sorted(own, key=lambda row: (row.operator, row.name)), _state(parsed, "", "", ())]


def _state(parsed: RobotsRules, name: str, operator: str, names: Sequence[str]) -> AgentState:
    state = parsed.state(names)
    return AgentState(name, operator, state, ROBOTS_NAMES[state], parsed.group(names))


PAGES = (
    Page("GET", "/projects/{project}/ai/robots", show, Access.PROJECT),
    Page("POST", "/projects/{project}/ai/robots", save, Access.OWNER, FORM_BYTES_MAX),
    Page("POST", "/projects/{project}/ai/robots/remove", remove, Access.OWNER),
)
