"""Who asked for a page: a person, an AI agent or another bot, and the rule that says so."""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import crawleruseragents  # type: ignore[import-untyped]  # ships no types
import msgspec
import re2  # type: ignore[import-untyped]  # ships no types

from ingest import agents
from ingest.device import SCREENS, Device, Screen, describe_all, matched

Traffic = Literal["human", "ai", "bot"]


class Classification(msgspec.Struct, frozen=True):
    """`rule` names what matched and comes from a closed set: it can be a metric's label or a grouping key."""

    traffic: Traffic
    agent: str | None
    operator: str | None
    purpose: agents.Purpose | None
    rule: str


class OwnRule(msgspec.Struct, frozen=True):
    kind: str
    agent: str | None
    regex: str


class _Crawler(msgspec.Struct, frozen=True):
    pattern: str
    instances: tuple[str, ...]


HUMAN = Classification("human", agent=None, operator=None, purpose=None, rule="human")

# HTTP libraries and monitors that the two packages miss, or name less clearly. A word that apps and browsers also
# carry is a library only where the user agent starts with it.
OWN_RULES = (
    OwnRule("empty-user-agent", None, r"""^[\s"'-]*$"""),
    OwnRule("http-library", "curl", r"(?i)^(?:lib)?curl\b|^pycurl/"),
    OwnRule("http-library", "Wget", r"(?i)^wget\b"),
    OwnRule("http-library", "axios", r"(?i)^axios\b"),
    OwnRule("http-library", "undici", r"(?i)^undici\b"),
    OwnRule("http-library", "node-fetch", r"(?i)^node-fetch\b"),
    OwnRule("http-library", "Node.js", r"(?i)^(?:node|node\.js)(?:/|$)"),
    OwnRule("http-library", "Go-http-client", r"(?i)^go-http-client\b"),
    OwnRule("http-library", "okhttp", r"(?i)^okhttp\b"),
    OwnRule("http-library", "Java", r"^Java[/ ]\d|^Mozilla/4\.0 \([^)]{1,40}\) Java/\d"),
    OwnRule("http-library", "Apache-HttpClient", r"^(?:Apache|Jakarta Commons)-HttpClient"),
    OwnRule("http-library", "AHC", r"^AHC/"),
    OwnRule("http-library", "Symfony HttpClient", r"(?i)^symfony httpclient\b"),
    OwnRule("http-library", "Guzzle", r"(?i)^guzzle(?:http)?\b"),
    OwnRule("http-library", "PHP", r"^PHP[/ ]\d"),
    OwnRule("http-library", "libwww-perl", r"(?i)^libwww-perl\b|^lwp[:-]"),
    OwnRule("http-library", "aiohttp", r"(?i)\baiohttp/"),
    OwnRule("http-library", "httpx", r"(?i)^(?:python-)?httpx/"),
    OwnRule("http-library", "python-requests", r"(?i)^python-requests\b"),
    OwnRule("http-library", "Python-urllib", r"(?i)^python-urllib\d?\b"),
    OwnRule("http-library", "Ruby", r"^(?:Ruby|Faraday)\b"),
    OwnRule("http-library", "reqwest", r"(?i)^reqwest\b"),
    OwnRule("http-library", "Dart", r"^Dart/\d"),
    OwnRule("http-library", "PowerShell", r"\bWindowsPowerShell/|^PowerShell/"),
    OwnRule("http-library", "Postman", r"^PostmanRuntime/"),
    OwnRule("http-library", "libfetch", r"\blibfetch/"),
    OwnRule("monitor", "Blackbox Exporter", r"(?i)^blackbox exporter\b"),
    OwnRule("monitor", "kube-probe", r"^kube-probe/"),
    OwnRule("monitor", "ELB-HealthChecker", r"^ELB-HealthChecker/"),
)

# "+http" introduces the page where a bot explains itself; no browser writes it.
CONTACT_ADDRESS = r"\+ ?https?://"

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
        "Goodreads", "Butterfly",
    }
)  # fmt: skip
_OWN_NAME = r"^(?:Mozilla/\d\.\d \(compatible; ?)?"


def classify(user_agent: str) -> Classification:
    """By the first 1,024 characters alone, in time linear in them.

    AI agents come before all bot rules: the user agent of ChatGPT-User ends in "+https://openai.com/bot".
    """
    return read_all([user_agent])[0][0]


def read_all(user_agents: Sequence[str]) -> list[tuple[Classification, Device]]:
    """Who asked, as `classify` says, and with what: the parsers of devices are asked once for both."""
    texts = [matched(user_agent) for user_agent in user_agents]
    found = [_SHORT_SET.Match(text) or () for text in texts]
    devices = describe_all(texts, [_screen(places) for places in found])
    return [(_who(text, places, device), device) for text, places, device in zip(texts, found, devices, strict=True)]


def crawlers(rows: object) -> tuple[_Crawler, ...]:
    """The rows of crawler-user-agents that are used.

    Raises: LookupError if a pattern named in this module is gone, so that an update of the package is looked at.
    """
    known = msgspec.convert(rows, tuple[_Crawler, ...])
    if gone := (LEFT_OUT.keys() | ONLY_AS_NAME) - {row.pattern for row in known}:
        raise LookupError(f"crawler-user-agents no longer has {', '.join(sorted(gone))}")
    return tuple(row for row in known if row.pattern not in LEFT_OUT and not _is_agent(row))


def _who(text: str, places: Sequence[int], device: Device) -> Classification:
    """By what is found of _SHORT_SET."""
    if _FIRST_WORD in places and (agent := agents.find(text)):
        return _AGENTS[agent.name]
    first = min(places, default=_CONTACT)
    if first < _CONTACT:
        return _OWN[first]
    crawler = min(_CRAWLER_SET.Match(text) or (), default=None)
    if crawler is not None:
        return _crawler_bot(crawler)
    if _CONTACT in places:
        return _CONTACT_ADDRESS
    return _USER_AGENTS if device.device == "bot" else HUMAN


def _screen(places: Sequence[int]) -> Screen | None:
    return next((screen for place, screen in _SCREENS if place in places), None) if places else None


def _bot(kind: str, agent: str | None) -> Classification:
    rule = f"bot:{kind}:{agent}" if agent else f"bot:{kind}"
    return Classification("bot", agent, operator=None, purpose=None, rule=rule)


def _is_agent(row: _Crawler) -> bool:
    return agents.find(row.pattern.replace("\\", "")) is not None


def _narrowed(pattern: str) -> str:
    return _OWN_NAME + pattern if pattern in ONLY_AS_NAME else pattern


@cache
def _crawler_bot(index: int) -> Classification:
    return _bot("crawler-user-agents", _name(_CRAWLERS[index]))


def _name(row: _Crawler) -> str:
    r"""What the pattern matches in its own example: AhrefsBot for `Ahrefs(Bot|SiteAudit)`."""
    examples = (re.search(row.pattern, example) for example in row.instances)
    matched = next((match[0] for match in examples if match), row.pattern.replace("\\", ""))
    return re.split(r"[;(]", matched.strip(" /;()^"))[0].strip(" /")


def _compiled(patterns: tuple[str, ...]) -> re2.Set:
    """Raises: re2.error for a pattern RE2 cannot run in linear time."""
    compiled = re2.Set.SearchSet()
    for pattern in patterns:
        compiled.Add(pattern)
    compiled.Compile()
    return compiled


def _ruleset() -> str:
    """Of the modules' whole text: what was picked out of them left out the order of the steps, and limits. An edit that
    changes no answer changes it too, and costs a reclassification that moves nothing."""
    rows = [(row.name, row.tokens, row.operator, row.purpose) for row in agents.AGENTS]
    sources = [Path(__file__).with_name(name).read_text("utf-8") for name in ("agents.py", "classify.py", "device.py")]
    packages = ("crawler-user-agents", "user-agents", "ua-parser", "ua-parser-builtins", "ua-parser-rs", "google-re2")
    parts = (rows, sources, [version(package) for package in packages])
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:12]


_AGENTS = {
    agent.name: Classification("ai", agent.name, agent.operator, agent.purpose, rule=f"ai:{agent.name}")
    for agent in agents.AGENTS
}
_OWN = tuple(_bot(rule.kind, rule.agent) for rule in OWN_RULES)
_CRAWLERS = crawlers(crawleruseragents.CRAWLER_USER_AGENTS_DATA)
_CONTACT_ADDRESS = _bot("contact-address", None)
_USER_AGENTS = _bot("user-agents", None)

# A set takes as long as one pattern, so that the short ones are in one. With the crawlers' too, whose are many, it runs
# out of memory for its states over user agents of many sorts, and takes twice as long as they do alone.
_CONTACT, _FIRST_WORD = len(OWN_RULES), len(OWN_RULES) + 1
_SCREENS = tuple(enumerate(SCREENS, start=_FIRST_WORD + 1))
_SHORT_SET = _compiled((*(rule.regex for rule in OWN_RULES), CONTACT_ADDRESS, agents.FIRST_WORDS, *SCREENS.values()))
_CRAWLER_SET = _compiled(tuple(_narrowed(row.pattern) for row in _CRAWLERS))

# Changes whenever an answer could: stored with every hit, so that older ones can be classified again.
RULESET = _ruleset()
