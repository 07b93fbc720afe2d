"""The browser, operating system and kind of device a user agent speaks of."""

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
    """By https://docs.python.org/3/library/importlib.html#implementing-lazy-imports; the package must know it too."""
    name = f"{package.__name__}.{module_name}"
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    setattr(package, module_name, module)


_load_when_used(ua_parser, "user_agent_parser")  # user_agents names it, we never call it, and its tables take 0.5 s
from user_agents.parsers import (  # type: ignore[import-untyped]  # noqa: E402  # ships no types; comes after the above
    Browser,
    OperatingSystem,
    UserAgent,
    parse_device,
    parse_operating_system,
)

Screen = Literal["tv", "console"]
Kind = Literal["desktop", "mobile", "tablet", "bot", "other"] | Screen

MATCHED_CHARACTERS_MAX = 1024
CACHED_FAMILIES = 4_096

# The parser finds its bot words ("bot", "yahoo", "silk") inside other words too, anywhere in the text of a desktop
# browser. In what looks like a browser only a whole word is believed: RobotMasterApp has none, and CUBOT is a phone.
# To be searched in lower case: a search in any case takes ten times as long, and takes a long s for an s too.
ENGINE = re.compile(r"AppleWebKit/|Gecko/|Trident/|Presto/|MSIE ")
BOT_WORD = re.compile(r"(?:b(?<!cub)ots?|crawl(?:ers?|ing)?|spiders?|scraper|indexer|archiver|fetcher|favicon)\b")

SCREENS: Mapping[Screen, str] = {
    "tv": (
        r"(?i)smart-?tv|hbbtv|apple ?tv|google ?tv|android ?tv|web0s|netcast|viera|bravia|roku/|crkey|\baft[a-z]{1,4}\b"
    ),
    "console": r"(?i)playstation|xbox|nintendo",
}
"""What tells a screen that is not a computer's, in their order."""

# Named, so that a missing ua-parser-rs is an error and not a slower parser. Its extractors are asked directly: the
# objects that ua-parser makes of what they say take as long as they do.
_RESOLVER = Resolver(ua_parser.load_lazy_builtins())
_OTHER = "Other"


class Device(msgspec.Struct, frozen=True):
    """`browser` and `os` are families without versions (`Chrome Mobile`, `iOS`), null where unknown.

    An Android device is a tablet when its user agent does not say that it is mobile, which is Google's own advice and
    makes some television boxes tablets.
    """

    browser: str | None
    os: str | None
    device: Kind


class _ParsedUserAgent(UserAgent):  # type: ignore[misc]  # the base class has no types
    """The package's own answers, from the new parser: its constructor calls the pure-Python one."""

    def __init__(self, user_agent: str, browser: Any, system: Any, device: Any) -> None:
        self.ua_string = user_agent
        self.browser = _browser(browser.family if browser else _OTHER)
        self.os = _system(system.family, system) if system else _UNKNOWN_SYSTEM
        self.device = _parsed_device(device.family if device else _OTHER)

    @property
    def is_bot(self) -> bool:
        claimed = self.device.family == "Spider"
        return claimed and (not ENGINE.search(self.ua_string) or BOT_WORD.search(self.ua_string.lower()) is not None)


@lru_cache(CACHED_FAMILIES)
def _browser(family: str) -> Any:
    return Browser(family, (), "")


def _system(family: str, said: Any) -> Any:
    """The version matters for Windows alone: RT is of tablets, ME of desktops."""
    if family != "Windows":
        return _versionless(family)
    return parse_operating_system(family, said.major, said.minor, said.patch)


@lru_cache(CACHED_FAMILIES)
def _versionless(family: str) -> Any:
    return OperatingSystem(family, (), "")


@lru_cache(CACHED_FAMILIES)
def _parsed_device(family: str) -> Any:
    return parse_device(family, None, None)


_UNKNOWN_SYSTEM = _versionless(_OTHER)


def describe_all(texts: Sequence[str], screens: Sequence[Screen | None]) -> list[Device]:
    """Of each, as `matched` gives it, and of what SCREENS says of it; by one parser after the other: their tables drive
    each other out of the processor's caches."""
    said = [[parser.extract(text) for text in texts] for parser in (_RESOLVER.ua, _RESOLVER.os, _RESOLVER.de)]
    return [_device(_ParsedUserAgent(*each), screen) for *each, screen in zip(texts, *said, screens, strict=True)]


def matched(user_agent: str) -> str:
    """What is looked at of it. Lone surrogates, which JSON can carry and UTF-8 cannot, become question marks."""
    return user_agent[:MATCHED_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")


def _device(parsed: _ParsedUserAgent, screen: Screen | None) -> Device:
    return Device(browser=_known(parsed.browser.family), os=_known(parsed.os.family), device=_kind(parsed, screen))


def _known(family: str) -> str | None:
    return None if family == _OTHER else family


def _kind(parsed: _ParsedUserAgent, screen: Screen | None) -> Kind:
    if parsed.is_bot:
        return "bot"
    if screen:
        return screen
    if parsed.is_tablet:
        return "tablet"
    if parsed.is_mobile:
        return "mobile"
    return "desktop" if parsed.is_pc else "other"
