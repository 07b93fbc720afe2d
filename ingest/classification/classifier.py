"""Who asked for a page: a person, an AI agent or another bot, and the rule that says so."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

import crawleruseragents  # type: ignore[import-untyped]  # ships no types
import msgspec

from ingest.classification import agents, ruleset
from ingest.classification.device import SCREENS, Device, Screen, describe_all, matched
from ingest.classification.rules import RULES, PatternSet, Rule, patterns

Traffic = Literal["human", "ai", "bot"]


class Classification(msgspec.Struct, frozen=True):
    """`rule` names what matched and comes from a closed set: it can be a metric's label or a grouping key."""

    traffic: Traffic
    agent: str | None
    operator: str | None
    purpose: agents.Purpose | None
    rule: str


class _Crawler(msgspec.Struct, frozen=True):
    pattern: str
    instances: tuple[str, ...]


# Patterns of crawler-user-agents that are not used, with whom they match. Those of our own agents are not used either:
# without word boundaries they would call ShowYouBot YouBot.
LEFT_OUT = {
    r"AP3A\.240617\.008": "everybody whose phone runs one build of Android 15",
    "MetaIAB Facebook": "readers in Facebook's in-app browser",
    r"Code\/1\.": "developers with a page open in Visual Studio Code",
    r"Trae\/": "developers with a page open in the Trae editor",
    "Fluid": "users of Fluid, which makes a Mac app of a site",
    "Devin": "people who gave their phone their name",
    "[cC]laude[bB]ot": "ClaudeBot, which is an agent",
}

# Its patterns that are also an app with a web view, a device (ViewSonic, HTC Butterfly, Odin) or a common word: they
# count only where they are the user agent's own name.
ONLY_AS_NAME = frozenset(
    {
        "WhatsApp", "Viber", r"Instapaper\/", r"Tumblr\/", r"Notion\/", r"PayPal\/", r"Bluesky\/", r"Asana\/",
        r"Overcast\/", r"PocketCasts\/", "Podimo", r"Grammarly\/", r"Klaviyo\/", r"upday\/", "CapitalOneShopping",
        "GoPay", "Disqus", "Fever", "Mastodon", "Feedly", "Zapier", "HubSpot", "Blackboard", "Tweakers", "MailChimp",
        "Jumio", r"Retool\/", r"Make\/", r"RED\/", "Sonic", "Odin;", "Magellan", "Adventurer", "alienfarm", "Upflow",
        "Trove", "Hello World", "Determ", "ds9", "fluffy", "speedy", "yanga", "Aranea", "Sogou", r"Daum\/", "Hatena",
        "Goodreads", "Butterfly", "coccoc", "Expanse", r"008\/",
    }
)  # fmt: skip
_OWN_NAME = r"^(?:Mozilla/\d\.\d \(compatible; ?)?"


def classify(user_agent: str) -> Classification:
    """Return who asked, by the first 1,024 characters alone, in time linear in them."""
    return read_all([user_agent])[0][0]


def read_all(user_agents: Sequence[str]) -> list[tuple[Classification, Device]]:
    """Return for each who asked, as `classify` does, and with what: both need the answers of the device parsers."""
    texts = [matched(user_agent) for user_agent in user_agents]
    found = [_FIRST_SET.matches(text) for text in texts]
    devices = describe_all(texts, [_screen(places) for places in found])
    return [(_who(text, places, device), device) for text, places, device in zip(texts, found, devices, strict=True)]


def crawlers(rows: object) -> tuple[_Crawler, ...]:
    """Return the rows of crawler-user-agents that are used.

    Raises: LookupError if a pattern named in this module is gone, so that an update of the package is looked at.
    """
    known = msgspec.convert(rows, tuple[_Crawler, ...])
    if gone := (LEFT_OUT.keys() | ONLY_AS_NAME) - {row.pattern for row in known}:
        raise LookupError(f"crawler-user-agents no longer has {', '.join(sorted(gone))}")
    return tuple(row for row in known if row.pattern not in LEFT_OUT and not _is_agent(row))


def _who(text: str, places: Sequence[int], device: Device) -> Classification:
    """Return the answer of the first rule that matches; `places` are those of `_FIRST_SET`.

    AI agents come before all bot rules: the user agent of ChatGPT-User ends in "+https://openai.com/bot".
    """
    if _FIRST_WORD in places and (agent := agents.find(text)):
        return _AGENTS[agent.name]
    named = min(places, default=_FIRST_WORD)
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
    """Return the person whose shape the text has, or what names a text without one."""
    if _COMMON_SET.matches(text):
        return _PEOPLE[0]
    person = min(_PERSON_SET.matches(text), default=None)
    return _UNSHAPED[min(_UNSHAPED_SET.matches(text))] if person is None else _PEOPLE[person]


def _screen(places: Sequence[int]) -> Screen | None:
    return next((screen for place, screen in _SCREENS if place in places), None) if places else None


def _answer(traffic: Literal["human", "bot"], kind: str, agent: str | None = None) -> Classification:
    rule = f"{traffic}:{kind}:{agent}" if agent else f"{traffic}:{kind}"
    return Classification(traffic, agent, operator=None, purpose=None, rule=rule)


def _answers(traffic: Literal["human", "bot"], rules: Sequence[Rule]) -> tuple[Classification, ...]:
    return tuple(_answer(traffic, rule.kind, rule.name) for rule in rules)


def _is_agent(row: _Crawler) -> bool:
    return agents.find(row.pattern.replace("\\", "")) is not None


def _narrowed(pattern: str) -> str:
    return _OWN_NAME + pattern if pattern in ONLY_AS_NAME else pattern


@cache
def _crawler_bot(index: int) -> Classification:
    return _answer("bot", "crawler-user-agents", _name(_CRAWLERS[index]))


def _name(row: _Crawler) -> str:
    r"""Return what the pattern matches in its own example: AhrefsBot for `Ahrefs(Bot|SiteAudit)`."""
    examples = (re.search(row.pattern, example) for example in row.instances)
    matched = next((match[0] for match in examples if match), row.pattern.replace("\\", ""))
    return re.split(r"[;(]", matched.strip(" /;()^"))[0].strip(" /")


_AGENTS = {
    agent.name: Classification("ai", agent.name, agent.operator, agent.purpose, rule=f"ai:{agent.name}")
    for agent in agents.AGENTS
}
_CRAWLERS = crawlers(crawleruseragents.CRAWLER_USER_AGENTS_DATA)
_NAMED = _answers("bot", RULES.named_bot)
_HABITS = (*_answers("human", RULES.known_person), *_answers("bot", RULES.bot_habit))
_PEOPLE = _answers("human", RULES.person)
_UNSHAPED = _answers("bot", RULES.unshaped)
_USER_AGENTS = _answer("bot", "user-agents")

# A set takes as long as one pattern, until its states outgrow the 8 MB that RE2 gives it: over 20,000 user agents of
# many sorts, habits and people take 28 µs each in one set, and 2 µs in two with the first row of people searched alone.
_FIRST_WORD = len(_NAMED)
_SCREENS = tuple(enumerate(SCREENS, start=_FIRST_WORD + 1))
_FIRST_SET = PatternSet((*patterns(RULES.named_bot), agents.FIRST_WORDS, *SCREENS.values()))
_CRAWLER_SET = PatternSet(_narrowed(row.pattern) for row in _CRAWLERS)
_HABIT_SET = PatternSet(patterns((*RULES.known_person, *RULES.bot_habit)))
_COMMON_SET = PatternSet(patterns(RULES.person[:1]))
_PERSON_SET = PatternSet(patterns(RULES.person))
_UNSHAPED_SET = PatternSet(patterns(RULES.unshaped))

RULESET = ruleset.version_of(agents.AGENTS, RULES, LEFT_OUT, ONLY_AS_NAME)
"""Version of the rules, stored with every hit, so that older hits can be classified again."""
