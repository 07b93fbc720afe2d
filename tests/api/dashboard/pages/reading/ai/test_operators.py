"""The table of AI readers, from the rows of reports that are written here by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from api.dashboard.pages.reading.ai import operators
from api.dashboard.pages.reading.ai.operators import AgentRow, AiTable, OperatorRow, Reads
from api.dashboard.pages.reading.ai.verdicts import Agent, Verification
from api.dashboard.robots.rules import RobotsRules, names
from ingest.verification.verdict import State
from tests.api.dashboard.pages.reading.measuring import day, measured, period
from warehouse.columns.filters import Filters

START = datetime(2026, 9, 1, tzinfo=UTC)
GPTBOT, USER = ("GPTBot", "OpenAI", "training"), ("ChatGPT-User", "OpenAI", "assistant")
CLAUDEBOT, CCBOT = ("ClaudeBot", "Anthropic", "training"), ("CCBot", "Common Crawl", "training")
UNKNOWN = (None, None, None)
NOW: dict[Agent, int] = {GPTBOT: 5, USER: 2, CLAUDEBOT: 9, CCBOT: 7, UNKNOWN: 7}
BEFORE: dict[Agent, int] = {GPTBOT: 3, CLAUDEBOT: 1, ("Old", "OpenAI", "search"): 4}
STATES: Mapping[Agent, Mapping[State, int]] = {GPTBOT: {"verified": 3, "claimed": 2}, USER: {"verified": 2}}
VISITS = {"OpenAI": 14, "Perplexity": 3, "Google": 0}


@dataclass
class Rows:
    """The rows of the reports by the period of the query, which is "previous" or None."""

    reads: Mapping[str | None, Mapping[Agent, int]]
    visits: Mapping[str, int] = field(default_factory=dict)

    def agents(self, snapshot: None, period: str | None) -> pa.Table:
        rows = [
            {"agent": agent, "operator": operator, "purpose": purpose, "views": views, "last_day": date(2026, 9, views)}
            for (agent, operator, purpose), views in self.reads[period].items()
        ]
        return pa.Table.from_pylist(rows)

    def agent_pages(self, snapshot: None, period: str | None, by: str = "agent") -> dict[str | None, int]:
        return {"OpenAI": 6, "Anthropic": 1, None: 99} if by == "operator" else {"GPTBot": 5, "ClaudeBot": 1}

    def visits_sent(self, snapshot: None, period: str | None, hosts: object, campaigns: object) -> Mapping[str, int]:
        return self.visits


def read(*, compare: bool = False, filters: Filters | None = None, began: int = 1, robots: str = "") -> AiTable:
    """Return the table of the days from 10 September on. AI was counted from the day `began` on."""
    view: Any = SimpleNamespace(
        reports=Rows({None: NOW, "previous": BEFORE}, VISITS),
        snapshot=None,
        query=lambda period=None: period and "previous",
        previous=period(2, 10) if compare else None,
        filters=filters or Filters(),
    )
    known = measured("ai", shown=period(10, 18), previous=period(2, 10), log=day(began))
    verification = Verification((), (), (), STATES)
    texts: Any = SimpleNamespace(current=RobotsRules(robots), verdict=lambda agent, last_day: f"{agent} {last_day}")
    return operators.table_of(view, known, texts if robots else None, verification)


def row_of(table: AiTable, operator: str | None) -> OperatorRow:
    (row,) = [row for row in table.operators if row.name == operator]
    return row


def agent_of(table: AiTable, operator: str | None, name: str | None) -> AgentRow:
    (row,) = [agent for agent in row_of(table, operator).agents if agent.name == name]
    return row


def test_operators_have_the_sums_of_their_agents_and_most_reads_come_first() -> None:
    table = read()
    # With equal reads, names are in order, and agents without an operator come last.
    reads = [(row.name, row.views) for row in table.operators]
    assert reads == [("Anthropic", 9), ("Common Crawl", 7), ("OpenAI", 7), (None, 7)]
    assert row_of(table, "OpenAI").by_purpose == {"training": 5, "assistant": 2}
    assert row_of(table, "OpenAI").states == {"verified": 5, "claimed": 2}
    assert [row_of(table, name).last_day.day for name in ("OpenAI", None)] == [5, 7]
    assert (table.views, table.agents) == (30, 4)
    assert table.purposes == ("training", "assistant", None)
    assert [table.of_purpose(purpose) for purpose in table.purposes] == [21, 2, 7]


def test_pages_are_known_by_the_names_of_agents_and_operators() -> None:
    table = read()
    assert [row_of(table, name).pages for name in ("OpenAI", "Common Crawl", None)] == [6, None, None]
    assert [agent_of(table, *each).pages for each in (("OpenAI", "GPTBot"), ("Common Crawl", "CCBot"))] == [5, None]


@pytest.mark.parametrize(("compare", "began"), [(False, 1), (True, 3)], ids=["no comparison", "counted later"])
def test_reads_before_are_unknown(compare: bool, began: int) -> None:
    table = read(compare=compare, began=began)
    assert {row.before for row in table.operators} == {agent.before for row in table.operators for agent in row.agents}
    assert row_of(table, "OpenAI").before is None


def test_reads_before_include_those_of_agents_that_read_nothing_now() -> None:
    table = read(compare=True, began=2)
    reads = {row.name: row.before for row in table.operators}
    assert reads == {"Anthropic": 1, "Common Crawl": 0, "OpenAI": 7, None: 0}
    assert agent_of(table, "OpenAI", "GPTBot").before == 3


def test_visits_of_operators_without_reads_are_listed() -> None:
    table = read()
    assert (row_of(table, "OpenAI").visits, row_of(table, "Anthropic").visits) == (14, None)
    assert (table.only_visits, table.visits) == ({"Perplexity": 3}, 17)
    assert row_of(table, "OpenAI").reads_per_visit == 0.5
    assert row_of(table, "Anthropic").reads_per_visit is None
    assert read(filters=Filters(path="/docs*")).only_visits == {"Perplexity": 3}


def test_visits_are_no_part_of_a_filter_by_the_agents_of_an_operator() -> None:
    for name in ("agent", "purpose", "verification", "rule"):
        table = read(filters=Filters(**{name: "training"}))  # type: ignore[arg-type]
        assert not table.has_visits
        assert {(row.visits, row.reads_per_visit) for row in table.operators} == {(None, None)}
    assert read(filters=Filters(operator="OpenAI")).has_visits


def test_robots_txt_is_asked_for_each_name_of_an_agent() -> None:
    table = read(robots="User-agent: GPTBot\nDisallow: /\n\nUser-agent: ClaudeBot\nDisallow: /private\n")
    states = {agent.name: agent.robots for row in table.operators for agent in row.agents}
    assert (states["GPTBot"], states["ClaudeBot"], states["CCBot"]) == ("disallowed", "partly", "allowed")
    row = agent_of(table, "OpenAI", "GPTBot")
    assert (row.verdict, agent_of(table, None, None).robots) == (f"GPTBot {row.last_day}", None)
    assert agent_of(read(), "OpenAI", "GPTBot").robots is None
    assert names("OAI-SearchBot") == ("OAI-SearchBot", "OAI-SearchBot", "OpenAI-SearchBot")
    assert names("no agent") == ("no agent",)


def test_number_of_verified_reads_is_unknown_if_nothing_was_verified() -> None:
    counted: tuple[tuple[Mapping[State, int], int | None, str], ...] = (
        ({}, None, "Not checked"),
        ({"not_checked": 3, "claimed": 4}, None, "Claimed"),
        ({"verified": 3, "claimed": 4}, 3, "Claimed"),
        ({"signed_known_key": 3, "invalid_signature": 1}, None, "Known key"),
        ({"signed_known_key": 3, "verified": 1}, 1, "Known key"),
        ({"invalid_signature": 1}, 0, "Invalid signature"),
    )
    for states, verified, most in counted:
        reads = Reads("GPTBot", sum(states.values()), None, states, None, START.date())
        assert (reads.verified, reads.most) == (verified, most)
