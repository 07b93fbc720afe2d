"""An explanation ends with the rule of the classifier, and names the text and the source of the rule."""

from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.classification import classifier
from ingest.classification.explain import ACCEPT_NAME, LOOKS_FOR, MEANINGS, NAMES, TriedStep, explain
from ingest.classification.rules import RULES

HERE = Path(__file__).parent
SAMPLE = [
    msgspec.json.decode(line)["ua"]
    for file in ("ua_sample.jsonl", "agents.jsonl")
    for line in (HERE / file).read_bytes().splitlines()
]
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; gptbot/1.3; +https://openai.com/gptbot"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

any_text = st.text(st.characters(codec=None), max_size=2000)  # lone surrogates too


def check(user_agent: str) -> None:
    *tried, last = explain(user_agent)
    assert last.rule == classifier.classify(user_agent).rule
    assert last.matched
    assert not any(step.matched or step.rule or step.text for step in tried)
    assert [step.name for step in (*tried, last)] == list(NAMES.values())[: len(tried) + 1]
    part = classifier.matched_text(user_agent)
    assert last.text is None or last.text in part or last.text in part.lower()


def test_last_step_has_the_rule_of_the_classifier_for_the_sample() -> None:
    for user_agent in SAMPLE:
        check(user_agent)


@pytest.mark.long
@given(any_text)
@example("İ GPTBot/1.3 İ")
def test_last_step_has_the_rule_of_the_classifier_for_any_text(text: str) -> None:
    check(text)


@given(any_text, st.sampled_from(SAMPLE), any_text)
def test_last_step_has_the_rule_of_the_classifier_for_changed_user_agents(head: str, sample: str, tail: str) -> None:
    check(head[:40] + sample + tail)


def test_agent_has_its_row_of_the_table() -> None:
    (step,) = explain(GPTBOT)
    assert step == TriedStep(
        NAMES["agents"],
        LOOKS_FOR["agents"],
        matched=True,
        text="gptbot",
        rule="ai:GPTBot",
        meaning="collects pages to train models",
        source="agents.toml",
        reference="https://developers.openai.com/api/docs/bots",
        operator="OpenAI",
        purpose="training",
        checked=date(2026, 11, 23),
    )


@pytest.mark.parametrize(
    ("user_agent", "name", "text", "source"),
    [
        ("İ ChatGPT Agent", "agents", "chatgpt agent", "agents.toml"),
        ("Curl/8.5.0", "named-bots", "Curl", "rules.toml"),
        ("Mozilla/5.0 (compatible; AhrefsBot/7.0)", "crawlers", "AhrefsBot", "crawler-user-agents"),
        (f"{FIREFOX} + me@example.com", "habits", "e@example.com", "rules.toml"),
        ("Mozilla/5.0 AppleWebKit/537.36 some Indexer", "habits", "Indexer", "rules.toml"),
        ("Some bot", "user-agents", "bot", "ua-parser, user-agents"),
        (FIREFOX, "people", FIREFOX[: FIREFOX.index("20100101")], "rules.toml"),
        ("Overcast Podcast", "the-rest", "Podcast", "rules.toml"),
        ("x", "the-rest", None, "rules.toml"),
    ],
)
def test_step_names_the_text_and_the_source(user_agent: str, name: str, text: str | None, source: str) -> None:
    last = explain(user_agent)[-1]
    assert (last.name, last.text, last.source) == (dict(NAMES)[name], text, source)  # type: ignore[index]
    assert last.meaning


@pytest.mark.parametrize(
    "user_agent", ["", "x", FIREFOX, GPTBOT, "curl/8.5.0", "Mozilla/5.0 (compatible; AhrefsBot/7.0)"]
)
@pytest.mark.parametrize("accept", ["text/html, text/markdown;q=0.5", "text/html"])
def test_step_of_the_accept_header_comes_before_every_answer_without_a_name(user_agent: str, accept: str) -> None:
    answer = classifier.classify(user_agent, accept)
    *tried, last = explain(user_agent, accept)
    assert last.rule == answer.rule
    is_by_header = answer.rule == "ai:accept-markdown"
    assert (last.name == ACCEPT_NAME) == is_by_header
    assert (ACCEPT_NAME in [step.name for step in tried]) == (answer.agent is None and not is_by_header)
    if is_by_header:
        assert (last.text, last.source) == ("text/markdown;q=0.5", "rules.toml")
        assert last.meaning == MEANINGS["accept-markdown"]


def test_crawler_has_its_page_and_its_description() -> None:
    last = explain("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")[-1]
    assert last.reference == "http://www.google.com/bot.html"
    assert last.meaning == "Google's main web crawling bot for search indexing"


def test_every_step_and_every_kind_of_rule_is_described() -> None:
    assert list(NAMES) == list(LOOKS_FOR) == [step.name for step in classifier.STEPS]
    kinds = {rule.kind for table in msgspec.structs.astuple(RULES) if isinstance(table, tuple) for rule in table}
    assert MEANINGS.keys() == kinds | {"user-agents"}
