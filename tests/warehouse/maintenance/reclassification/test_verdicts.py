"""A verdict stays while the rules name the agent that it is about, and is dropped with the agent."""

import pytest

from tests.warehouse.maintenance.reclassification.rules import RULES, TODAY
from tests.warehouse.site import Row, Site, view
from warehouse.maintenance.reclassification import reclassify
from warehouse.tables import HITS_TABLE

NAMES = ("traffic", "agent", "operator", "purpose", "rule", "ruleset", "verification", "verified_by")
BY = "list:openai-gptbot 2026-09-02"
SPOOFED = {"traffic": "bot", "agent": "GPTBot", "rule": "bot:spoofed:GPTBot", "verification": "spoofed"}

SIGNED = {
    "traffic": "ai",
    "agent": "ChatGPT Agent",
    "operator": "OpenAI",
    "purpose": "agent",
    "rule": "ai:signed:ChatGPT Agent",
    "verification": "verified",
}


def old(user_agent: str, **columns: str) -> Row:
    return view(user_agent=user_agent, ruleset="old", verified_by=BY if "verification" in columns else None, **columns)


CASES = [
    (old("GPTBot/1", **SPOOFED), ("bot", "GPTBot", None, None, "bot:spoofed:GPTBot", TODAY, "spoofed", BY)),
    (
        old("ClaudeBot/1", **SPOOFED),
        ("ai", "ClaudeBot", "Anthropic", "data", "ai:ClaudeBot", TODAY, "not_checked", None),
    ),
    (old("Firefox/1", **SPOOFED), ("human", None, None, None, "human", TODAY, None, None)),
    (
        old("GPTBot/1", traffic="ai", agent="GPTBot", rule="old", verification="verified"),
        ("ai", "GPTBot", "OpenAI", "data", "ai:GPTBot", TODAY, "verified", BY),
    ),
    (
        old("GPTBot/1", traffic="ai", agent="openai.com/gptbot", rule="ai:GPTBot", verification="verified"),
        ("ai", "GPTBot", "OpenAI", "data", "ai:GPTBot", TODAY, "verified", BY),
    ),
    (
        old("ClaudeBot/1", traffic="ai", agent="GPTBot", rule="old", verification="verified"),
        ("ai", "ClaudeBot", "Anthropic", "data", "ai:ClaudeBot", TODAY, "not_checked", None),
    ),
    (
        old("Firefox/1", traffic="ai", rule="ai:accept-markdown"),
        ("ai", None, None, None, "ai:accept-markdown", TODAY, None, None),
    ),
    (
        old("GPTBot/1", traffic="ai", rule="ai:accept-markdown"),
        ("ai", "GPTBot", "OpenAI", "data", "ai:GPTBot", TODAY, None, None),
    ),
    (old("Firefox/1", **SIGNED), ("ai", "ChatGPT Agent", "OpenAI", "agent", SIGNED["rule"], TODAY, "verified", BY)),
    (old("GPTBot/1", **SIGNED), ("ai", "GPTBot", "OpenAI", "data", "ai:GPTBot", TODAY, "not_checked", None)),
    (old("GPTBot/1"), ("ai", "GPTBot", "OpenAI", "data", "ai:GPTBot", TODAY, None, None)),
]


@pytest.mark.parametrize("calls", [1, 2])
def test_verdict_stays_with_its_agent_and_the_diff_has_only_what_changes(site: Site, calls: int) -> None:
    site.post(*(row for row, _ in CASES))
    preview = reclassify.reclassify(site.hot, site.root, site.share, RULES, 0, is_preview=True)
    assert preview.hits == len(CASES)
    moved = [(change.old_rule, change.new_rule) for change in preview.moves.by_rule]
    assert ("bot:spoofed:GPTBot", "ai:GPTBot") not in moved
    assert ("bot:spoofed:GPTBot", "ai:ClaudeBot") in moved
    for _ in range(calls):
        reclassify.reclassify(site.hot, site.root, site.share, RULES, 0)
    stored = [tuple(row[name] for name in NAMES) for row in site.stored(HITS_TABLE)]
    assert sorted(stored, key=repr) == sorted((expected for _, expected in CASES), key=repr)
    assert site.faults() == []
