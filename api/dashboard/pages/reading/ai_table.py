"""The table of AI readers: an operator in each row with its purposes, and below it its agents."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from api.dashboard.robots.rules import RobotsRules, State
from api.dashboard.web.view import PURPOSES, View
from ingest.classification.agents import BY_NAME, Agent
from ingest.classification.ai_referrers import OPERATORS

PAGES_DAYS = 32
"""Number of days at the end of a period in which the pages that an agent read are counted."""
AGENT_BY_NAME: Mapping[str, Agent] = BY_NAME
ROBOTS_NAMES: Mapping[State, str] = {
    "allowed": "Allowed",
    "partly": "Partly disallowed",
    "disallowed": "Disallowed",
}
AGENT_FILTERS = ("agent", "operator", "purpose", "verification")
"""Filters that select AI agents, and no view by a person."""
STILL_READING = "Disallowed, still reading"


@dataclass(frozen=True, slots=True)
class AgentRow:
    """Reads of one agent. `name` is None for AI agents whose name is unknown.

    `pages` is None if unknown. `robots` is None if the project has no robots.txt, or the agent no name.
    """

    name: str | None
    purpose: str | None
    views: int
    pages: int | None
    last_day: date
    robots: State | None

    @property
    def robots_name(self) -> str:
        """Return the state by robots.txt as the page shows it. Each row has reads."""
        return STILL_READING if self.robots == "disallowed" else ROBOTS_NAMES.get(self.robots or "allowed", "")


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """Reads of the agents of one operator. `name` is None for AI agents whose operator is unknown.

    `visits` are the visits by people from a product of the operator. None: its products send no recognisable visits.
    """

    name: str | None
    views: int
    by_purpose: Mapping[str | None, int]
    pages: int | None
    visits: int | None
    last_day: date
    agents: tuple[AgentRow, ...]

    @property
    def reads_per_visit(self) -> float | None:
        """Return the number of reads for each visit; None without a visit."""
        return self.views / self.visits if self.visits else None


@dataclass(frozen=True, slots=True)
class AiTable:
    """The operators with most reads first. `purposes` are those of the columns, of which each has a read.

    `only_visits` are the visits by operators whose agents read no page; it is empty if a filter selects agents.
    """

    operators: tuple[OperatorRow, ...]
    purposes: tuple[str | None, ...]
    only_visits: Mapping[str, int]

    @property
    def views(self) -> int:
        return sum(row.views for row in self.operators)

    @property
    def agents(self) -> int:
        """Return the number of agents with a name."""
        return len({agent.name for row in self.operators for agent in row.agents if agent.name})

    @property
    def visits(self) -> int:
        """Return the visits by all operators of the table, and by those that only send visits."""
        return sum(row.visits or 0 for row in self.operators) + sum(self.only_visits.values())

    def of_purpose(self, purpose: str | None) -> int:
        return sum(row.by_purpose.get(purpose, 0) for row in self.operators)


def read(view: View, robots: RobotsRules | None) -> AiTable:
    """Return the table of the AI agents that the filters of the view select. `robots` are the rules of the site."""
    pages = view.reports.agent_pages(view.snapshot, view.query())
    by_operator: defaultdict[str | None, list[AgentRow]] = defaultdict(list)
    for row in view.reports.agents(view.snapshot, view.query()).to_pylist():
        name = row["agent"]
        state = robots.state(names(name)) if robots and name else None
        agent = AgentRow(name, row["purpose"], row["views"], pages.get(name), row["last_day"], state)
        by_operator[row["operator"]].append(agent)
    visits = view.reports.visits_sent(view.snapshot, view.query(), OPERATORS)
    rows = _operators(view, by_operator, visits)
    with_reads = {purpose for row in rows for purpose in row.by_purpose}
    is_narrow = any(name in view.filters.fields for name in AGENT_FILTERS)
    others = {name: count for name, count in sorted(visits.items()) if count and name not in by_operator}
    return AiTable(
        rows, tuple(purpose for purpose in (*PURPOSES, None) if purpose in with_reads), {} if is_narrow else others
    )


def names(agent: str) -> tuple[str, ...]:
    """Return the names that a robots.txt can have for an agent."""
    known = AGENT_BY_NAME.get(agent)
    return (agent, *known.tokens) if known else (agent,)


def _operators(
    view: View, by_operator: Mapping[str | None, list[AgentRow]], visits: Mapping[str, int]
) -> tuple[OperatorRow, ...]:
    pages = view.reports.agent_pages(view.snapshot, view.query(), "operator")
    rows = [
        OperatorRow(
            operator,
            sum(agent.views for agent in agents),
            _by_purpose(agents),
            pages.get(operator) if operator else None,
            visits.get(operator) if operator else None,
            max(agent.last_day for agent in agents),
            tuple(agents),
        )
        for operator, agents in by_operator.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.views, row.name is None, row.name or "")))


def _by_purpose(agents: Iterable[AgentRow]) -> dict[str | None, int]:
    views: defaultdict[str | None, int] = defaultdict(int)
    for agent in agents:
        views[agent.purpose] += agent.views
    return dict(views)
