"""Classification of user agents as people, AI agents or other bots, with the rule that decided."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Literal, NamedTuple

import msgspec
import re2  # type: ignore[import-untyped]  # ships no types
from msgspec import structs

from ingest.classification import accept as accept_rules
from ingest.classification import agents, ruleset
from ingest.classification.device import SCREENS, Device, Screen, describe_all, matched_text
from ingest.classification.rules import CRAWLERS, IGNORED_PATTERNS, OWN_NAME_PATTERNS, RULES, Crawler, Rule

Traffic = Literal["human", "ai", "bot"]
StepName = Literal["agents", "named-bots", "crawlers", "habits", "user-agents", "people", "the-rest"]


class Classification(msgspec.Struct, frozen=True):
    """Answer of the rules. `rule` is the name of the rule that matched. The names are a closed set: a metric can have
    them as labels."""

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


def classify(user_agent: str, accept: str | None = None) -> Classification:
    """Return the classification of a user agent by its first 1,024 characters, in linear time.

    `accept` is the Accept header of the request, or None if it is not known. See `by_accept`.
    """
    return by_accept(classify_all([user_agent])[0][0], accept)


def by_accept(answer: Classification, accept: str | None) -> Classification:
    """Return the answer of the user agent, or that of the Accept header if the user agent names no agent or bot."""
    if accept is None or answer.agent is not None:
        return answer
    match = find_accept(accept)
    return answer if match is None else match.decision.answer


def classify_all(user_agents: Sequence[str]) -> list[tuple[Classification, Device]]:
    """Return the classification and the device of each user agent. The classification also depends on the device."""
    return [
        (_classify(text, first_matches, device), device)
        for text, first_matches, device in zip(*prepare(user_agents), strict=True)
    ]


class Decision(NamedTuple):
    """Answer of the rules, with the pattern and the row of a table that decided.

    `pattern` is None if a token or a parser decided, and `origin` is None if a parser decided.
    """

    answer: Classification
    pattern: str | None
    origin: agents.Agent | Rule | Crawler | None


class AcceptMatch(NamedTuple):
    """Decision by a row of the table `accept`, and the part of the Accept header that matches the row."""

    decision: Decision
    text: str


def find_accept(accept: str) -> AcceptMatch | None:
    """Return the first match of the table `accept` in an Accept header, or None."""
    match = accept_rules.find(accept)
    if match is None:
        return None
    text, rule = match
    return AcceptMatch(_ACCEPT[rule.kind], text)


class Step(NamedTuple):
    """A step of the classification. `find` returns the decision of the first row that matches, or None."""

    name: StepName
    find: Callable[[str, Sequence[int], Device], Decision | None]


def prepare(user_agents: Iterable[str]) -> tuple[list[str], list[list[int]], list[Device]]:
    """Return the arguments of the steps: of each user agent the part that rules read, its matches of `_FIRST_SET`, and
    its device."""
    texts = [matched_text(user_agent) for user_agent in user_agents]
    matches = [_FIRST_SET.matches(text) for text in texts]
    return texts, matches, describe_all(texts, [_screen(indexes) for indexes in matches])


def _classify(text: str, first_matches: Sequence[int], device: Device) -> Classification:
    """Return the answer of the first step that decides."""
    for _, find in STEPS:
        decision = find(text, first_matches, device)
        if decision is not None:
            return decision.answer
    raise AssertionError("the last row of the last step matches every text")


def _find_agent(text: str, first_matches: Sequence[int], device: Device) -> Decision | None:
    if _FIRST_WORD in first_matches and (agent := agents.find(text)):
        return _AGENTS[agent.name]
    return None


def _find_named(text: str, first_matches: Sequence[int], device: Device) -> Decision | None:
    if first_matches and (first := min(first_matches)) < _FIRST_WORD:
        return _NAMED[first]
    return None


def _find_crawler(text: str, first_matches: Sequence[int], device: Device) -> Decision | None:
    matches = _CRAWLER_SET.matches(text)
    return _crawler_row(min(matches)) if matches else None


def _find_habit(text: str, first_matches: Sequence[int], device: Device) -> Decision | None:
    matches = _HABIT_SET.matches(text)
    return _HABITS[min(matches)] if matches else None


def _find_device(text: str, first_matches: Sequence[int], device: Device) -> Decision | None:
    return _USER_AGENTS if device.device == "bot" else None


def _find_person(text: str, first_matches: Sequence[int], device: Device) -> Decision | None:
    if _COMMON_SET.matches(text):
        return _PEOPLE[0]
    matches = _PERSON_SET.matches(text)
    return _PEOPLE[min(matches)] if matches else None


def _find_unshaped(text: str, first_matches: Sequence[int], device: Device) -> Decision:
    return _UNSHAPED[min(_UNSHAPED_SET.matches(text))]


STEPS = (
    Step("agents", _find_agent),
    Step("named-bots", _find_named),
    Step("crawlers", _find_crawler),
    Step("habits", _find_habit),
    Step("user-agents", _find_device),
    Step("people", _find_person),
    Step("the-rest", _find_unshaped),
)
"""The steps in their order: the first row that matches decides. The last step decides for every user agent.

AI agents come before all bot rules: the user agent of ChatGPT-User ends in "+https://openai.com/bot".
"""
AFTER_ACCEPT: StepName = "habits"
"""First of the steps whose answers name no agent or bot. The Accept header decides before them: see `by_accept`."""


def _screen(first_matches: Sequence[int]) -> Screen | None:
    return next((screen for index, screen in _SCREENS if index in first_matches), None) if first_matches else None


def _answer(traffic: Traffic, kind: str, agent: str | None = None) -> Classification:
    rule = f"{traffic}:{kind}:{agent}" if agent else f"{traffic}:{kind}"
    return Classification(traffic, agent, operator=None, purpose=None, rule=rule)


def _rows(traffic: Literal["human", "bot"], rules: Sequence[Rule]) -> tuple[Decision, ...]:
    return tuple(Decision(_answer(traffic, rule.kind, rule.name), rule.pattern, rule) for rule in rules)


def _patterns(rules: Iterable[Rule]) -> tuple[str, ...]:
    return tuple(rule.pattern for rule in rules)


def _crawler_pattern(row: Crawler) -> str:
    return _OWN_NAME + row.pattern if row.pattern in OWN_NAME_PATTERNS else row.pattern


@cache
def _crawler_row(index: int) -> Decision:
    crawler = CRAWLERS[index]
    answer = _answer("bot", "crawler-user-agents", _crawler_text(crawler))
    name = RULES.crawler_names.get(crawler.pattern, answer.agent)
    return Decision(structs.replace(answer, agent=name), _crawler_pattern(crawler), crawler)


def _crawler_text(row: Crawler) -> str:
    r"""Return the text that the pattern matches in its own example: AhrefsBot for `Ahrefs(Bot|SiteAudit)`.

    It is part of the name of the rule, and by default the name of the bot.
    """
    examples = (re.search(row.pattern, example) for example in row.instances)
    text = next((match[0] for match in examples if match), row.pattern.replace("\\", ""))
    return re.split(r"[;(]", text.strip(" /;()^"))[0].strip(" /")


_OWN_NAME = r"^(?:Mozilla/\d\.\d \(compatible; ?)?"
_AGENTS = {
    agent.name: Decision(
        Classification("ai", agent.name, agent.operator, agent.purpose, rule=f"ai:{agent.name}"),
        pattern=None,
        origin=agent,
    )
    for agent in agents.AGENTS
}
_NAMED = _rows("bot", RULES.named_bot)
_HABITS = (*_rows("human", RULES.known_person), *_rows("bot", RULES.bot_habit))
_PEOPLE = _rows("human", RULES.person)
_UNSHAPED = _rows("bot", RULES.unshaped)
_ACCEPT = {rule.kind: Decision(_answer("ai", rule.kind), rule.pattern, rule) for rule in RULES.accept}
_USER_AGENTS = Decision(_answer("bot", "user-agents"), pattern=None, origin=None)

# A search for a set takes as long as a search for one pattern, until the states of the set outgrow the 8 MB that RE2
# allows. Over 20,000 user agents of many sorts, one set of habits and people takes 28 µs per user agent; two sets, with
# the first row of people searched alone, take 2 µs.
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
