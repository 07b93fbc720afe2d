"""Attributes join the answers of the rules and of the device parsers, in the order of the lake's columns."""

import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.classification.classifier import RULESET, classify, classify_all
from ingest.classification.user_agent import attributes
from tests.warehouse.site import ROOT
from warehouse.schema import CLASSIFICATION

GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/26.4 Mobile/15E148 Safari/604.1"
)


def test_attributes_are_the_columns_of_the_schema_without_the_user_agent() -> None:
    names = [name for name in CLASSIFICATION.names if name != "user_agent"]
    bot, person = (dict(zip(names, each, strict=True)) for each in attributes([GPTBOT, IPHONE]))
    assert bot == {
        "traffic": "ai",
        "agent": "GPTBot",
        "operator": "OpenAI",
        "purpose": "training",
        "rule": "ai:GPTBot",
        "ruleset": RULESET,
        "browser": None,
        "os": None,
        "device": "bot",
    }
    assert person == {
        "traffic": "human",
        "agent": None,
        "operator": None,
        "purpose": None,
        "rule": "human:browser",
        "ruleset": RULESET,
        "browser": "Mobile Safari",
        "os": "iOS",
        "device": "mobile",
    }


@pytest.mark.parametrize(
    "user_agent",
    [
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot",
        "webzio-extended (+https://webz.io/bot.html)",
        "Mozilla/5.0 (compatible; BuzzSumo; +http://www.buzzsumo.com/bot.html)",
        "NewsBlur iPhone App v3.6",
    ],
)
def test_agent_or_bot_has_no_browser_from_the_text_of_its_user_agent(user_agent: str) -> None:
    assert classify_all([user_agent])[0][1].browser is not None  # ua-parser's own answer, such as com/bot
    ((traffic, *_, browser, _, _),) = attributes([user_agent])
    assert traffic != "human"
    assert browser is None


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(codec=None), max_size=100), max_size=5))
def test_many_user_agents_get_the_attributes_of_each_one_in_their_order(user_agents: list[str]) -> None:
    together = attributes(user_agents)
    assert together == [attributes([each])[0] for each in user_agents]
    for user_agent, (traffic, agent, operator, purpose, rule, *_) in zip(user_agents, together, strict=True):
        answer = classify(user_agent)
        assert (traffic, agent, operator, purpose, rule) == (
            answer.traffic, answer.agent, answer.operator, answer.purpose, answer.rule,
        )  # fmt: skip


def test_equal_attributes_are_pickled_once() -> None:
    one, many = attributes(["curl/8.0"]), attributes([f"curl/8.{number}" for number in range(1_000)])
    assert set(many) == set(one)
    assert len(pickle.dumps(many)) - len(pickle.dumps(one)) < 3 * 1_000  # two or three bytes refer to the first copy


@pytest.mark.long
def test_module_loads_no_arrow() -> None:
    program = "import sys; from ingest.classification import user_agent; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
