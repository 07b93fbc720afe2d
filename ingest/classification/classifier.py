"""Classification of user agents as people, AI agents or other bots, with the rule that decided."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal

import msgspec
import re2  # type: ignore[import-untyped]  # ships no types

from ingest.classification import agents, ruleset
from ingest.classification.device import SCREENS, Device, Screen, describe_all, matched_text
from ingest.classification.rules import CRAWLERS, IGNORED_PATTERNS, OWN_NAME_PATTERNS, RULES, Crawler, Rule

Traffic = Literal["human", "ai", "bot"]


class Classification(msgspec.Struct, frozen=True):
    """Answer of the rules. `rule` is the name of the rule that matched, from a closed set: it can label a metric."""

    traffic: Traffic
    agent: str | None
    operator: str | None
    purpose: agents.Purpose | None
    rule: str


class PatternSet:
    """Patterns that are searched together in one pass over a text, in time linear in the text.

    Raises: ValueError for a pattern that is not RE2 syntax.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._set = re2.Set.SearchSet()
        for pattern in patterns:
            try:
                self._set.Add(pattern)
            except re2.error as problem:
                raise ValueError(f"not a pattern of RE2: {pattern}: {problem}") from problem
        self._set.Compile()

    def matches(self, text: str) -> list[int]:
        """Return the indexes of all patterns that match, in no order."""
        return self._set.Match(text) or []


def classify(user_agent: str) -> Classification:
    """Return the classification of a user agent by its first 1,024 characters, in linear time."""
    return classify_all([user_agent])[0][0]


def classify_all(user_agents: Sequence[str]) -> list[tuple[Classification, Device]]:
    """Return the classification and the device of each user agent. The classification depends on the device too."""
    texts = [matched_text(user_agent) for user_agent in user_agents]
    matches = [_FIRST_SET.matches(text) for text in texts]
    devices = describe_all(texts, [_screen(indexes) for indexes in matches])
    return [
        (_classify(text, indexes, device), device)
        for text, indexes, device in zip(texts, matches, devices, strict=True)
    ]


def _classify(text: str, first_matches: Sequence[int], device: Device) -> Classification:
    """Return the answer of the first rule that matches; `first_matches` are indexes into `_FIRST_SET`.

    AI agents come before all bot rules: the user agent of ChatGPT-User ends in "+https://openai.com/bot".
    """
    if _FIRST_WORD in first_matches and (agent := agents.find(text)):
        return _AGENTS[agent.name]
    named = min(first_matches, default=_FIRST_WORD)
    if named < _FIRST_WORD:
        return _NAMED[named]
    crawler = min(_CRAWLER_SET.matches(text), default=None)
    if crawler is not None:
        return _crawler_bot(crawler)
    habit = min(_HABIT_SET.matches(text), default=None)
    if habit is not None:
        return _HABITS[habit]
    return _USER_AGENTS if device.device == "bot" else _by_shape(text)


def _by_shape(text: str) -> Classification:
    """Return the answer of the first row of `person` that matches, or else of `unshaped`."""
    if _COMMON_SET.matches(text):
        return _PEOPLE[0]
    person = min(_PERSON_SET.matches(text), default=None)
    return _UNSHAPED[min(_UNSHAPED_SET.matches(text))] if person is None else _PEOPLE[person]


def _screen(first_matches: Sequence[int]) -> Screen | None:
    return next((screen for index, screen in _SCREENS if index in first_matches), None) if first_matches else None


def _answer(traffic: Literal["human", "bot"], kind: str, agent: str | None = None) -> Classification:
    rule = f"{traffic}:{kind}:{agent}" if agent else f"{traffic}:{kind}"
    return Classification(traffic, agent, operator=None, purpose=None, rule=rule)


def _answers(traffic: Literal["human", "bot"], rules: Sequence[Rule]) -> tuple[Classification, ...]:
    return tuple(_answer(traffic, rule.kind, rule.name) for rule in rules)


def _patterns(rules: Iterable[Rule]) -> tuple[str, ...]:
    return tuple(rule.pattern for rule in rules)


def _crawler_pattern(row: Crawler) -> str:
    return _OWN_NAME + row.pattern if row.pattern in OWN_NAME_PATTERNS else row.pattern


@cache
def _crawler_bot(index: int) -> Classification:
    return _answer("bot", "crawler-user-agents", _crawler_name(CRAWLERS[index]))


def _crawler_name(row: Crawler) -> str:
    r"""Return the text that the pattern matches in its own example: AhrefsBot for `Ahrefs(Bot|SiteAudit)`."""
    examples = (re.search(row.pattern, example) for example in row.instances)
    text = next((match[0] for match in examples if match), row.pattern.replace("\\", ""))
    return re.split(r"[;(]", text.strip(" /;()^"))[0].strip(" /")


_OWN_NAME = r"^(?:Mozilla/\d\.\d \(compatible; ?)?"
_AGENTS = {
    agent.name: Classification("ai", agent.name, agent.operator, agent.purpose, rule=f"ai:{agent.name}")
    for agent in agents.AGENTS
}
_NAMED = _answers("bot", RULES.named_bot)
_HABITS = (*_answers("human", RULES.known_person), *_answers("bot", RULES.bot_habit))
_PEOPLE = _answers("human", RULES.person)
_UNSHAPED = _answers("bot", RULES.unshaped)
_USER_AGENTS = _answer("bot", "user-agents")

# One pass over a set takes as long as one pattern, until the states of the set outgrow the 8 MB that RE2 allows. Over
# 20,000 user agents of many sorts, one set of habits and people takes 28 µs per user agent; two sets, with the first
# row of people searched alone, take 2 µs.
#
# _FIRST_SET has the named bots, then one pattern for the first words of all AI agents, then the screens.
_FIRST_WORD = len(_NAMED)
_SCREENS = tuple(enumerate(SCREENS, start=_FIRST_WORD + 1))
_FIRST_SET = PatternSet((*_patterns(RULES.named_bot), agents.FIRST_WORDS, *SCREENS.values()))
_CRAWLER_SET = PatternSet(map(_crawler_pattern, CRAWLERS))
_HABIT_SET = PatternSet(_patterns((*RULES.known_person, *RULES.bot_habit)))
_COMMON_SET = PatternSet(_patterns(RULES.person[:1]))
_PERSON_SET = PatternSet(_patterns(RULES.person))
_UNSHAPED_SET = PatternSet(_patterns(RULES.unshaped))

RULESET = ruleset.version_of(agents.AGENTS, RULES, IGNORED_PATTERNS, OWN_NAME_PATTERNS)
"""Version of the rules, stored with every hit, so that older hits can be classified again."""
