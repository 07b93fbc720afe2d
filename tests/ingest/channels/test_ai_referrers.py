"""Referrers of AI products are assigned to the operators that the table of agents names."""

import msgspec
import pytest

from ingest.channels import ai_referrers
from ingest.channels.ai_referrers import CAMPAIGNS, OPERATORS, PRODUCTS
from ingest.classification.agents import AGENTS

ROW = """
[[product]]
host = "ai.example"
operator = "Example"
source = "https://example.com/"
checked = 2026-11-22
"""


@pytest.mark.parametrize(
    ("host", "operator"),
    [
        ("chatgpt.com", "OpenAI"), ("www.chatgpt.com", "OpenAI"), ("www.perplexity.ai", "Perplexity"),
        ("gemini.google.com", "Google"), ("m365.cloud.microsoft", "Microsoft"), ("duck.ai", "DuckDuckGo"),
        ("poe.com", "Quora"), ("www.google.com", None), ("evil-chatgpt.com", None), ("chatgpt.com.example", None),
    ],
)  # fmt: skip
def test_host_has_the_operator_of_its_product(host: str, operator: str | None) -> None:
    assert OPERATORS.get(host) == operator


def test_campaign_has_the_operator_of_the_product_that_adds_it() -> None:
    assert CAMPAIGNS == {"chatgpt.com": "OpenAI", "perplexity": "Perplexity", "copilot.com": "Microsoft"}


WITHOUT_AGENT = {"Genspark", "Quora", "Tencent"}
"""Operators of products that have no agent in the table of agents."""


def test_operators_have_the_names_of_the_table_of_agents() -> None:
    operators = {agent.operator for agent in AGENTS}
    assert {product.operator for product in PRODUCTS} - operators == WITHOUT_AGENT


def test_hosts_are_lower_case_without_www_and_have_a_source() -> None:
    for product in PRODUCTS:
        assert product.host == product.host.lower().removeprefix("www.")
        assert product.source.startswith("https://")


def test_repeated_host_is_refused() -> None:
    with pytest.raises(ValueError, match="has the host 'ai.example' twice"):
        ai_referrers.parse(ROW + ROW)


def test_unknown_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        ai_referrers.parse(ROW + 'note = "?"')
