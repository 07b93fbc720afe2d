"""Each labelled user agent gets its traffic, agent and rule, and any text gets an answer."""

import re
from collections.abc import Iterable
from pathlib import Path

import crawleruseragents  # type: ignore[import-untyped]  # ships no types
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.classification import agents, classifier
from ingest.classification.agents import Purpose
from ingest.classification.classifier import Classification, PatternSet, Traffic
from ingest.classification.rules import CRAWLERS, IGNORED_PATTERNS, OWN_NAME_PATTERNS, RULES, Rule

HERE = Path(__file__).parent


class Expected(msgspec.Struct, frozen=True):
    ua: str
    traffic: Traffic
    agent: str | None
    rule: str
    operator: str | None = None
    purpose: Purpose | None = None
    note: str = ""


class Labelled(msgspec.Struct, frozen=True):
    ua: str
    label: Traffic


EXPECTED = [msgspec.json.decode(line, type=Expected) for line in (HERE / "agents.jsonl").read_bytes().splitlines()]
SAMPLE = [msgspec.json.decode(line, type=Labelled) for line in (HERE / "ua_sample.jsonl").read_bytes().splitlines()]
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot"

TABLES = [table for table in msgspec.structs.astuple(RULES) if isinstance(table, tuple)]
KINDS = {rule.kind for table in TABLES for rule in table} | {"user-agents"}
RENAMED = frozenset(RULES.crawler_names.values())
"""Names of bots that the names of their rules do not have."""
NAMED_LIKE_A_HOST = {
    "Air.ai", "CSIRT.CZ", "Dataprovider.com", "Mail.ru", "Miniature.io", "NerdByNature.Bot", "NewsRoom.BI",
    "OpenGraph.io", "PingAdmin.Ru", "RSS.Social", "Scoop.it", "Uptime.com", "Uptimebot.org", "Validator.nu",
    "WhatsMyIP.org", "cron-job.org", "dlvr.it", "eRepublik.tools", "remove.bg", "updown.io",
}  # fmt: skip
"""Bots whose operators give them the name of a host."""

any_text = st.text(st.characters(codec=None), max_size=3000)  # lone surrogates too


def test_user_agent_gets_its_traffic_agent_and_rule() -> None:
    for row in EXPECTED:
        expected = Classification(row.traffic, row.agent, row.operator, row.purpose, row.rule)
        assert classifier.classify(row.ua) == expected, row.ua


def test_user_agent_of_the_labelled_sample_gets_its_label() -> None:
    assert [row for row in SAMPLE if classifier.classify(row.ua).traffic != row.label] == []


CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
MARKDOWN = Classification("ai", None, None, None, "ai:accept-markdown")


@pytest.mark.parametrize("user_agent", [CHROME, "", "SomeLibrary/2.1", f"{CHROME} Indexer", "Mozilla/5.0"])
def test_request_for_markdown_without_the_name_of_an_agent_is_ai(user_agent: str) -> None:
    assert classifier.classify(user_agent, "text/markdown, text/html, */*") == MARKDOWN
    assert classifier.classify(user_agent, "text/html, */*") == classifier.classify(user_agent)
    assert classifier.classify(user_agent).traffic != "ai"


def test_named_agent_or_bot_has_its_own_rule_when_it_asks_for_markdown() -> None:
    named = [row for row in EXPECTED if row.agent]
    assert [row for row in named if classifier.classify(row.ua, "text/markdown").rule != row.rule] == []


def test_every_token_of_every_agent_has_a_row() -> None:
    shown = {(row.agent, row.ua.lower()) for row in EXPECTED}
    missing = [
        token
        for agent in agents.AGENTS
        for token in agent.tokens
        if not any(name == agent.name and token.lower() in ua for name, ua in shown)
    ]
    assert missing == []


def names(traffic: Traffic, rules: Iterable[Rule]) -> set[str]:
    return {f"{traffic}:{rule.kind}:{rule.name}" if rule.name else f"{traffic}:{rule.kind}" for rule in rules}


def test_every_rule_has_a_row() -> None:
    shown = {row.rule for row in EXPECTED}
    own = names("bot", (*RULES.named_bot, *RULES.bot_habit, *RULES.unshaped))
    people = names("human", (*RULES.known_person, *RULES.person))
    assert own | people | {"bot:user-agents", "bot:crawler-user-agents:Googlebot"} <= shown


@pytest.mark.long
def test_no_example_of_crawler_user_agents_is_a_person() -> None:
    rows = [row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] not in IGNORED_PATTERNS]
    assert [ua for row in rows for ua in row["instances"] if classifier.classify(ua).traffic == "human"] == []


@pytest.mark.long
def test_bots_of_crawler_user_agents_have_names_and_not_patterns_hosts_or_paths() -> None:
    answers = [classifier.classify(ua) for row in CRAWLERS for ua in row.instances or (row.pattern.replace("\\", ""),)]
    named = {answer.agent for answer in answers if answer.rule.startswith("bot:crawler-user-agents:")}
    assert len(named) > 1_000
    legible = re.compile(r"[\w.'!&+-]+(?: [\w.'!&+-]+)*")
    assert {name for name in named if not name or not legible.fullmatch(name) or name.endswith("-")} == set()
    host = re.compile(r"(?:[\w-]+\.)+[A-Za-z]{2,}")
    assert {name for name in named if name and host.fullmatch(name)} == NAMED_LIKE_A_HOST


@pytest.mark.parametrize(
    ("user_agent", "agent", "text"),
    [
        ("Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", "YandexBot", "yandex.com/bots"),
        ("Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)", "YandexBot", "yandex.com/bots"),
        ("Pinterest/0.2 (+http://www.pinterest.com/bot.html)", "Pinterestbot", "pinterest.com/bot"),
        ("Mozilla/5.0 (compatible; oBot/2.3.1; +http://filterdb.iss.net/crawler/)", "oBot", "filterdb.iss.net/crawler"),
    ],
)
def test_bot_with_a_name_in_the_table_keeps_the_rule_that_matched(user_agent: str, agent: str, text: str) -> None:
    answer = classifier.classify(user_agent)
    assert (answer.traffic, answer.agent, answer.rule) == ("bot", agent, f"bot:crawler-user-agents:{text}")
    assert text in user_agent


@pytest.mark.parametrize("name", sorted(OWN_NAME_PATTERNS))
def test_web_view_of_an_app_with_the_name_of_a_bot_is_a_person(name: str) -> None:
    phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    app = name.replace("\\", "").rstrip(";/")
    assert classifier.classify(f"{phone}Mobile/15E148 {app}/8.4 {app};").traffic == "human"


@given(any_text)
def test_any_text_gets_the_same_answer_twice(text: str) -> None:
    first = classifier.classify(text)
    assert classifier.classify(text) == first
    assert (first.traffic == "ai") == (first.operator is not None) == (first.purpose is not None)
    assert first.rule.startswith(f"{first.traffic}:")
    assert first.agent is None or first.rule.endswith(f":{first.agent}") or first.agent in RENAMED


@pytest.mark.long
@given(st.from_regex(r"[A-Za-z]{3,12}", fullmatch=True), st.sampled_from(["{}bot/1.0", "{}/1.0", "x-{}-Crawler", "{}"]))
def test_names_of_rules_and_agents_are_never_taken_from_the_user_agent(name: str, form: str) -> None:
    answer = classifier.classify(form.format(name))
    agents_named = {row.name for row in RULES.named_bot} | {agent.name for agent in agents.AGENTS}
    is_crawler = answer.rule.startswith("bot:crawler-user-agents:")
    assert is_crawler or answer.agent is None or answer.agent in agents_named
    assert is_crawler or answer.agent or answer.rule.split(":", 1)[1] in KINDS


@given(st.sampled_from([row.ua for row in EXPECTED if row.ua.strip()]), any_text)
def test_text_beyond_1024_characters_changes_nothing(user_agent: str, tail: str) -> None:
    padded = user_agent.ljust(1024)
    assert classifier.classify(padded + tail) == classifier.classify(padded)


def test_agent_after_1024_characters_is_ignored() -> None:
    assert classifier.classify("x" * (1024 - 7) + " GPTBot").agent == "GPTBot"
    assert classifier.classify("x" * (1024 - 6) + " GPTBot").agent is None


def test_agent_is_recognised_wherever_its_token_is() -> None:
    for text in (GPTBOT, GPTBOT[60:], GPTBOT[:80], GPTBOT.upper(), f"\ud800{GPTBOT}", f"{'é' * 500}{GPTBOT}"):
        assert classifier.classify(text).agent == "GPTBot"


def test_pattern_without_linear_time_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not a pattern of RE2: \(a\)\\1"):
        PatternSet([r"(a)\1"])
