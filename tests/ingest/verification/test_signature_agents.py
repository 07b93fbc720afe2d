"""The table of signing agents names agents of the classification, and its keys can be used."""

import msgspec
import pytest

from ingest.classification.agents import AGENTS
from ingest.verification.public_keys import JsonWebKey, usable_keys
from ingest.verification.signature_agents import parse, signature_agents
from tests.ingest.verification.test_signatures import CHATGPT_KEY


def test_hosts_are_lower_case_and_their_agents_are_in_the_table_of_agents() -> None:
    rows = signature_agents()
    assert [host for host in rows if host != host.lower() or "/" in host] == []
    assert {agent for row in rows.values() for agent in row.agents} <= {agent.name for agent in AGENTS}


def test_bundled_key_of_chatgpt_has_the_id_that_its_directory_states() -> None:
    keys = msgspec.convert(signature_agents()["chatgpt.com"].keys, list[JsonWebKey])
    assert set(usable_keys(keys)) == {CHATGPT_KEY}


def test_row_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `hosts`"):
        parse('[[signature_agent]]\nhosts = "a"')
