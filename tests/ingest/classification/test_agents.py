"""Rows of the table of agents are checked when they are read, and texts are split into words."""

from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.classification import agents

AGENT_ROW = """
[[agent]]
tokens = ["OneBot"]
name = "One"
operator = "Example"
purpose = "search"
source = "https://example.com"
checked = 2026-11-20
"""


def test_row_of_the_table_becomes_an_agent() -> None:
    (agent,) = agents.parse(AGENT_ROW)
    assert (agent.name, agent.tokens, agent.checked.isoformat()) == ("One", ("OneBot",), "2026-11-20")


def test_agent_that_ended_stays_in_the_table_and_is_recognised() -> None:
    (agent,) = agents.parse(AGENT_ROW + "until = 2026-05-04\n")
    assert agent.until == date(2026, 5, 4)
    ended = [agent for agent in agents.AGENTS if agent.until is not None]
    assert {agent.name for agent in ended} >= {"GoogleAgent-Mariner", "PhindBot", "anthropic-ai"}
    assert [agents.find(f"{agent.tokens[0]}/1.0") for agent in ended] == ended
    assert all(agent.note and agent.until <= agent.checked for agent in ended if agent.until)


def test_repeated_token_is_refused_in_any_case() -> None:
    with pytest.raises(ValueError, match="the token 'onebot' twice"):
        agents.parse(AGENT_ROW + AGENT_ROW.replace('"One"', '"Two"').replace("OneBot", "onebot"))


def test_repeated_name_is_refused() -> None:
    with pytest.raises(ValueError, match="the name 'one' twice"):
        agents.parse(AGENT_ROW + AGENT_ROW.replace("OneBot", "TwoBot"))


@pytest.mark.parametrize("change", [('"search"', '"spying"'), ("source", "sauce"), ("2026-11-20", '"soon"')])
def test_faulty_row_is_refused(change: tuple[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        agents.parse(AGENT_ROW.replace(*change))


@given(st.text(st.characters(codec=None), max_size=3000))  # lone surrogates too
def test_a_text_has_at_most_as_many_words_as_characters(text: str) -> None:
    assert len(agents.words(text)) <= len(text.lower())
