"""The table of AI readers: a row for each operator with its purposes, followed by rows for its agents."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from api.dashboard.pages.reading.ai.obedience import Robots, Verdict
from api.dashboard.pages.reading.ai.verdicts import KNOWN_KEY, NOT_CHECKED, Agent, Verification
from api.dashboard.pages.reading.measured import Measured
from api.dashboard.robots.rules import State, names
from api.dashboard.web.period import Period
from api.dashboard.web.view import PURPOSES, STATES, View
from ingest.channels.ai_referrers import CAMPAIGNS, OPERATORS
from ingest.verification import verdict

PEOPLE = (None, "human")
"""Filters of readers that have people, who visit from AI products."""
ROBOTS_NAMES: Mapping[State, str] = {"allowed": "Allowed", "partly": "Partly disallowed", "disallowed": "Disallowed"}


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads of an agent or operator. `name` is None for AI agents without a known name or operator.

    `before` are the reads in the previous period; None if they are unknown, or if the page does not compare. `states`
    are the reads by state of the verification, without a filter by state. `pages` is None if unknown.
    """

    name: str | None
    views: int
    before: int | None
    states: Mapping[verdict.State, int]
    pages: int | None
    last_day: date

    @property
    def verified(self) -> int | None:
        """Return the number of verified reads.

        Return None if nothing is known about any read. Also return None if no read is verified and some are signed with
        a known key: 0 would mean that these are not from the agent.
        """
        if "verified" not in self.states and KNOWN_KEY in self.states:
            return None
        return self.states.get("verified", 0) if self.states.keys() - {NOT_CHECKED, "claimed"} else None

    @property
    def most(self) -> str:
        """Return the name of the state of most reads."""
        return STATES[max(self.states, key=lambda state: self.states[state], default=NOT_CHECKED)]


@dataclass(frozen=True, slots=True)
class AgentRow(Reads):
    """Reads of one agent. `robots` is None if the project has no robots.txt, or the agent no name."""

    purpose: str | None
    robots: State | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class OperatorRow(Reads):
    """Reads of the agents of one operator.

    `visits` are the visits by people from a product of the operator; None if the operator has no product whose visits
    can be recognised.
    """

    by_purpose: Mapping[str | None, int]
    visits: int | None
    agents: tuple[AgentRow, ...]

    @property
    def disallowed(self) -> int:
        """Return the number of agents that read although robots.txt disallows the whole site."""
        return sum(agent.robots == "disallowed" for agent in self.agents)

    @property
    def reads_per_visit(self) -> float | None:
        """Return the number of reads for each visit; None without a visit."""
        return self.views / self.visits if self.visits else None


@dataclass(frozen=True, slots=True)
class AiTable:
    """The operators, those with most reads first. `purposes` are the purposes that have reads, one for each column.

    `only_visits` are the visits by operators whose agents read no page.
    `has_visits` is whether visits belong to the reads: no person comes from one purpose or agent of an operator.
    """

    operators: tuple[OperatorRow, ...]
    purposes: tuple[str | None, ...]
    only_visits: Mapping[str, int]
    has_visits: bool = True

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


def table_of(view: View, measurement: Measured, robots: Robots | None, verification: Verification) -> AiTable:
    """Return the table of the AI agents that the filters of the view select. `robots` are the texts of the site."""
    pages, before = view.reports.agent_pages(view.snapshot, view.query()), _before(view, measurement)
    by_operator: defaultdict[str | None, list[AgentRow]] = defaultdict(list)
    for row in view.reports.agents(view.snapshot, view.query()).to_pylist():
        name, agent = row["agent"], (row["agent"], row["operator"], row["purpose"])
        by_operator[row["operator"]].append(
            AgentRow(
                name,
                row["views"],
                None if before is None else before[agent],
                verification.reads.get(agent, {}),
                pages.get(name),
                row["last_day"],
                row["purpose"],
                robots.current.state(names(name)) if robots and name else None,
                robots.verdict(name, row["last_day"]) if robots and name else None,
            )
        )
    sent = visits_sent(view)
    visits = sent or {}
    rows = _operators(view, by_operator, before, visits)
    with_reads = {purpose for row in rows for purpose in row.by_purpose}
    others = {name: count for name, count in sorted(visits.items()) if count and name not in by_operator}
    purposes = tuple(purpose for purpose in (*PURPOSES, None) if purpose in with_reads)
    return AiTable(rows, purposes, others, sent is not None)


def visits_sent(view: View, period: Period | None = None) -> dict[str, int] | None:
    """Return the visits by people from the products of each operator, in the period of the page or in another one.

    Return None if the filters select agents: visits come from the products of an operator, not from one of its agents.
    Also return None if they select an operator without a product.
    """
    chosen = products(view)
    return view.reports.visits_sent(view.snapshot, view.query(period), *chosen) if chosen else None


def products(view: View) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return the operators of the selected products, by host and by campaign; None if none can be selected."""
    if "human" not in view.filters.but(traffic=None, operator=None).selected_traffic:
        return None
    chosen = {view.filters["operator"] or each for each in OPERATORS.values()}
    hosts, campaigns = ({name: each for name, each in of.items() if each in chosen} for of in (OPERATORS, CAMPAIGNS))
    return (hosts, campaigns) if hosts else None


def _before(view: View, measurement: Measured) -> Counter[Agent] | None:
    """Return the reads of each agent in the previous period; None if the two periods cannot be compared."""
    if view.previous is None or not measurement.compares("ai"):
        return None
    rows = view.reports.agents(view.snapshot, view.query(view.previous)).to_pylist()
    return Counter({(row["agent"], row["operator"], row["purpose"]): row["views"] for row in rows})


def _operators(
    view: View,
    by_operator: Mapping[str | None, list[AgentRow]],
    before: Counter[Agent] | None,
    visits: Mapping[str, int],
) -> tuple[OperatorRow, ...]:
    pages = view.reports.agent_pages(view.snapshot, view.query(), "operator")
    rows = [
        OperatorRow(
            operator,
            sum(agent.views for agent in agents),
            None if before is None else sum(count for agent, count in before.items() if agent[1] == operator),
            sum((Counter(agent.states) for agent in agents), Counter()),
            pages.get(operator) if operator else None,
            max(agent.last_day for agent in agents),
            _by_purpose(agents),
            visits.get(operator) if operator else None,
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
