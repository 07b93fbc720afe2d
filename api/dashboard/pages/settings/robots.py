"""The robots.txt of a site, which an owner pastes, and what it allows the AI agents that read the site."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from api.dashboard.pages.reading.ai.operators import ROBOTS_NAMES
from api.dashboard.robots import rules, texts
from api.dashboard.robots.rules import RobotsRules, State
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import ProjectVisit
from ingest.classification.agents import BY_NAME
from ingest.hits.hit import FIRST

FIELD, SINCE = "robots", "since"
DIGITS_MAX = 12
"""Maximum number of digits of a time in seconds since 1970."""
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
    return _page(visit)


def save(visit: ProjectVisit) -> Response:
    content, since_s = visit.form.values.get(FIELD, ""), _since_s(visit)
    if fault := _fault(content):
        visit.form.fault(FIELD, fault)
    if not visit.form.faults and not texts.save(visit.state.control, visit.project.id, content, since_s):
        visit.form.fault(FIELD, f"The project has {texts.VERSIONS_MAX} texts, which is the maximum: remove one.")
    if visit.form.faults:
        return _page(visit, status=422)
    return render.redirect(visit, f"/projects/{visit.project.id}/ai/robots", notice="saved")


def remove(visit: ProjectVisit) -> Response:
    texts.remove(visit.state.control, visit.project.id, _number(visit.form.values.get(SINCE, "")))
    return render.redirect(visit, f"/projects/{visit.project.id}/ai/robots", notice="removed")


def _since_s(visit: ProjectVisit) -> int:
    """Return the time from which the posted text is in force: now, unless the form has one."""
    now, value = visit.now, visit.form.values.get(SINCE, "").strip()
    try:
        since = datetime.fromisoformat(value) if value else now
        since = since if since.tzinfo else since.replace(tzinfo=visit.zone)
    except ValueError:
        visit.form.fault(SINCE, "Write the time as 2026-09-30T18:00.")
        return 0
    if not FIRST <= since <= now:
        visit.form.fault(SINCE, f"Choose a time from {FIRST:%Y} until now.")
    return int(since.timestamp())


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else -1


def _fault(content: str) -> str | None:
    """Return the reason why a text cannot be saved; None if it can."""
    size = len(content.encode())
    if not content.strip():
        return "Paste the text of your robots.txt."
    if size > texts.BYTES_MAX:
        most = texts.BYTES_MAX // 1024
        return f"The text has {size // 1024:,} KiB; crawlers read at most {most} KiB of a robots.txt."
    if "\0" in content:
        return "The text has a NUL character: it is not a text file."
    if not rules.parse(content).has_groups:
        return "The text has no rule, because no line begins with “User-agent:”. Is it a robots.txt?"
    group, count = rules.largest_group(content)
    if count > rules.RULES_MAX:
        return f"The group “{group[:40]}” has {count:,} rules; at most {rules.RULES_MAX} in one group are supported."
    return None


def _page(visit: ProjectVisit, status: int = 200) -> Response:
    found = texts.versions(visit.state.control, visit.project.id)
    chosen = _number(visit.parameters.get("since", ""))
    text = next((each for each in found if each.since_s == chosen), found[-1] if found else None)
    *agents, others = _agents(text.content if text else "")
    return render.page(
        visit,
        "settings/robots.html",
        title=f"robots.txt of {visit.project.id}",
        status=status,
        tab="robots.txt",
        text=text,
        versions=found[::-1],
        agents=agents,
        others=others,
        field=FIELD,
        since_field=SINCE,
        notice=visit.parameters.get(render.NOTICE),
    )


def _agents(content: str) -> list[AgentState]:
    """Return the AI agents with an own group, by operator, and at the end the state of all others, without a name."""
    parsed = rules.parse(content)
    rows = [_state(parsed, name, agent.operator, rules.names(name)) for name, agent in BY_NAME.items()]
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
