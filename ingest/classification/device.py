"""Browser, operating system and device type of a user agent."""

import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal

import msgspec
import ua_parser
from ua_parser.regex import Resolver


def _load_when_used(package: ModuleType, module_name: str) -> None:
    """Import a module of a package lazily: its code runs when one of its names is first used.

    Source: https://docs.python.org/3/library/importlib.html#implementing-lazy-imports. The module also becomes an
    attribute of the package.
    """
    name = f"{package.__name__}.{module_name}"
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    setattr(package, module_name, module)


_load_when_used(ua_parser, "user_agent_parser")  # user_agents imports it but never calls it; loading takes 0.5 s
from user_agents.parsers import (  # type: ignore[import-untyped]  # noqa: E402  # ships no types; after the lazy import
    Browser,
    OperatingSystem,
    UserAgent,
    parse_device,
    parse_operating_system,
)

Screen = Literal["tv", "console"]
DeviceType = Literal["desktop", "mobile", "tablet", "bot", "other"] | Screen

MATCHED_CHARACTERS_MAX = 1024
"""Number of characters of a user agent that rules and parsers read; the rest is ignored."""
CACHED_FAMILIES = 4_096
"""Maximum number of families in each cache: of browsers, operating systems and devices."""

# ua-parser finds its bot words ("bot", "yahoo", "silk") also inside other words. In a text with the engine of a browser
# only whole bot words count: RobotMasterApp has none, and CUBOT is a phone. BOT_WORD is searched in lower-case text: a
# case-insensitive search takes ten times as long, and matches the long s as an s.
ENGINE = re.compile(r"AppleWebKit/|Gecko/|Trident/|Presto/|MSIE ")
BOT_WORD = re.compile(r"(?:b(?<!cub)ots?|crawl(?:ers?|ing)?|spiders?|scraper|indexer|archiver|fetcher|favicon)\b")

SCREENS: Mapping[Screen, str] = {
    "tv": (
        r"(?i)smart-?tv|hbbtv|apple ?tv|google ?tv|android ?tv|web0s|netcast|viera|bravia|roku/|crkey|\baft[a-z]{1,4}\b"
    ),
    "console": r"(?i)playstation|xbox|nintendo",
}
"""Patterns of screens that are not a computer's. If several match, the first one counts."""

# If ua-parser-rs were missing, ua_parser.parse would use a slower parser without an error. The extractors of the
# resolver are called directly, because building ua-parser's own result objects takes as long as the extraction.
_RESOLVER = Resolver(ua_parser.load_lazy_builtins())
_OTHER = "Other"


class Device(msgspec.Struct, frozen=True):
    """Device of a user agent. `browser` and `os` are families without versions (`Chrome Mobile`, `iOS`) or null.

    An Android device whose user agent has no "Mobile" is a tablet, as Google advises. Some television boxes count as
    tablets by this rule.
    """

    browser: str | None
    os: str | None
    device: DeviceType


class _ParsedUserAgent(UserAgent):  # type: ignore[misc]  # the base class has no types
    """User agent of the package user_agents with the results of ua-parser-rs; the package itself parses in Python."""

    def __init__(self, user_agent: str, browser: Any, system: Any, device: Any) -> None:
        self.ua_string = user_agent
        self.browser = _browser(browser.family if browser else _OTHER)
        self.os = _system(system.family, system) if system else _UNKNOWN_SYSTEM
        self.device = _parsed_device(device.family if device else _OTHER)

    @property
    def is_bot(self) -> bool:
        is_spider = self.device.family == "Spider"
        return is_spider and (not ENGINE.search(self.ua_string) or BOT_WORD.search(self.ua_string.lower()) is not None)


@lru_cache(CACHED_FAMILIES)
def _browser(family: str) -> Any:
    return Browser(family, (), "")


def _system(family: str, parsed: Any) -> Any:
    """Return the operating system, with its version if it is Windows: RT runs on tablets, ME on desktops."""
    if family != "Windows":
        return _versionless(family)
    return parse_operating_system(family, parsed.major, parsed.minor, parsed.patch)


@lru_cache(CACHED_FAMILIES)
def _versionless(family: str) -> Any:
    return OperatingSystem(family, (), "")


@lru_cache(CACHED_FAMILIES)
def _parsed_device(family: str) -> Any:
    return parse_device(family, None, None)


_UNKNOWN_SYSTEM = _versionless(_OTHER)


def describe_all(texts: Sequence[str], screens: Sequence[Screen | None]) -> list[Device]:
    """Return the device of each text. `texts` are results of `matched_text`; `screens` are their matches of SCREENS.

    One parser runs over all texts before the next: the tables of two parsers do not fit into the processor's caches.
    """
    results = [[parser.extract(text) for text in texts] for parser in (_RESOLVER.ua, _RESOLVER.os, _RESOLVER.de)]
    agents = [_ParsedUserAgent(*each) for each in zip(texts, *results, strict=True)]
    return [
        Device(_known(each.browser.family), _known(each.os.family), _device_type(each, screen))
        for each, screen in zip(agents, screens, strict=True)
    ]


def matched_text(user_agent: str) -> str:
    """Return the part of a user agent that rules and parsers read. A lone surrogate becomes a question mark, because
    UTF-8 cannot encode it."""
    return user_agent[:MATCHED_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")


def _known(family: str) -> str | None:
    return None if family == _OTHER else family


def _device_type(parsed: _ParsedUserAgent, screen: Screen | None) -> DeviceType:
    if parsed.is_bot:
        return "bot"
    if screen:
        return screen
    if parsed.is_tablet:
        return "tablet"
    if parsed.is_mobile:
        return "mobile"
    return "desktop" if parsed.is_pc else "other"
