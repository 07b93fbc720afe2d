"""Rules of robots.txt: the examples of RFC 9309, and rules that site owners write for AI agents."""

import time

import pytest

from api.dashboard.robots.rules import disallowing, largest_group, parse
from ingest.classification.agents import AGENTS

RFC_5_1 = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
"""https://www.rfc-editor.org/rfc/rfc9309#section-5.1"""


def test_examples_of_the_rfc() -> None:
    rules = parse(RFC_5_1)
    allowed = {
        ("other", "/"): True, ("other", "/cat.gif"): False, ("other", "/example/a"): False,
        ("other", "/publications/a"): True, ("foobot", "/"): False, ("foobot", "/example/page.html"): True,
        ("barbot", "/example/page.html"): False, ("bazbot", "/example/page.html"): False,
        ("bazbot", "/cat.gif"): True, ("quxbot", "/example/page.html"): True,
    }  # fmt: skip
    assert {(agent, path): rules.allows([agent], path) for agent, path in allowed} == allowed
    longest = parse("User-agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n")
    assert longest.allows(["foobot"], "/example/page/a")
    assert not longest.allows(["foobot"], "/example/page/disallowed.gif")


@pytest.mark.parametrize(
    ("content", "state"),
    [
        ("", "allowed"),
        ("User-agent: *\nDisallow:", "allowed"),
        ("User-agent: *\nDisallow: /", "disallowed"),
        ("User-agent: *\nDisallow: /*", "disallowed"),
        ("User-agent: gptbot\nDisallow: /", "disallowed"),
        ("User-agent: GPTBot/1.2 # training\nDisallow: /", "disallowed"),
        ("User-agent: CCBot\nUser-agent: GPTBot\nDisallow: /", "disallowed"),
        ("User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nAllow: /", "allowed"),
        ("User-agent: GPTBot\nDisallow: /private", "partly"),
        ("User-agent: GPTBot\nDisallow: /\nAllow: /docs", "partly"),
        ("User-agent: GPTBot\nDisallow: /docs\nAllow: /docs", "allowed"),
        ("User-agent: GPTBot\nDisallow: /*.md$", "partly"),
        ("User-agent: GPTBot\nDisallow: /a page # of two words", "partly"),
        ("User-agent: GPT\nDisallow: /", "allowed"),
        ("User-agent: MyGPTBot\nDisallow: /", "allowed"),
        ("User-agent: CCBot\nDisallow: /private", "allowed"),
        ("<html><body>Not found</body></html>", "allowed"),
    ],
)
def test_state_of_gptbot(content: str, state: str) -> None:
    assert parse(content).state(["GPTBot"]) == state


def test_agent_has_a_group_by_each_of_its_names() -> None:
    rules = parse("User-agent: *\nDisallow: /a\n\nUser-agent: ChatGPT Agent\nDisallow: /b\n")
    assert rules.group(["ChatGPT Agent", "ChatGPT-Operator"]) == "chatgpt agent"
    assert rules.group(["CCBot"]) == "*"
    assert parse("Sitemap: https://example.com/s.xml").group(["CCBot"]) is None


def test_lines_that_disallow_an_agent_disallow_no_other() -> None:
    lines = {agent.name: disallowing(agent.tokens) for agent in AGENTS}
    for name, text in lines.items():
        rules = parse(f"User-agent: *\nDisallow: /a\n\n{text}")
        disallowed = {each.name for each in AGENTS if rules.state((each.name, *each.tokens)) == "disallowed"}
        assert disallowed == ({name} if text else set())
    assert lines["xAI"].startswith("User-agent: xAI-SearchBot\nUser-agent: xAI-Bot\n")
    assert lines["Devin"] == ""  # its token has a slash


def test_largest_group_has_the_rules_of_all_its_parts() -> None:
    for content, largest in {
        "": ("", 0),
        "User-agent: *": ("", 0),
        "Disallow: /a\nUser-agent: *\nDisallow:\nAllow: /b # c\n": ("*", 2),
        "User-agent: a\nUser-agent: b\nDisallow: /\n\nUser-agent: B\nDisallow: /b\n": ("b", 2),
    }.items():
        assert largest_group(content) == largest
    assert [parse(content).has_groups for content in ("User-agent: *", "<html>", "")] == [True, False, False]


def test_state_of_a_long_text_is_computed_once_for_all_agents_of_a_group() -> None:
    rules = parse("User-agent: *\nDisallow: /\n" + "".join(f"Disallow: /a/{number}/*.pdf$\n" for number in range(200)))
    began_s = time.process_time()
    assert rules.state(["GPTBot"]) == "disallowed"
    first_s = time.process_time()
    assert [rules.state([f"agent {number}"]) for number in range(1_000)] == ["disallowed"] * 1_000
    assert time.process_time() - first_s < 100 * (first_s - began_s)  # 1,000 times if each agent has its own
