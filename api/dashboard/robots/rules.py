"""Rules of a robots.txt text for an AI agent, by RFC 9309: https://www.rfc-editor.org/rfc/rfc9309"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Literal

from cachetools import LRUCache
from protego import Protego

from ingest.classification.agents import BY_NAME

State = Literal["allowed", "partly", "disallowed"]
"""Part of a site that an agent may read: every page, some pages, or no page."""
EVERY_AGENT = "*"
RULES_MAX = 500
"""Maximum number of rules of one group. A path takes up to 0.4 µs for each rule of its group."""
PROBES_MAX = 500
"""Maximum number of different patterns of a text by which a state is computed."""
DECISIONS_MAX = 10_000
"""Maximum number of cached decisions about a path, for each text."""
_GROUP = re.compile(r"^[ \t]*user-?agent[ \t]*:[ \t]*([^#\r\n]+)", re.IGNORECASE | re.MULTILINE)
_PATTERN = re.compile(r"^[ \t]*(?:dis)?allow[ \t]*:[ \t]*([^#\r\n]+)", re.IGNORECASE | re.MULTILINE)
_LINE = re.compile(r"^[ \t]*(user-?agent|(?:dis)?allow)[ \t]*:[ \t]*([^#\r\n]*)", re.IGNORECASE | re.MULTILINE)
_AFTER_NAME = re.compile(r"[/\s]")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


class RobotsRules:
    """The rules of a robots.txt text."""

    def __init__(self, content: str) -> None:
        self._parser = Protego.parse(content)
        declared = [match.strip().lower() for match in _GROUP.findall(content)]
        # A group may name a version (`GPTBot/1.0`), and an agent may have a name of several words: a group is found by
        # its whole name and by the first word of its name.
        self._groups = {_AFTER_NAME.split(name)[0]: name for name in declared} | {name: name for name in declared}
        patterns = dict.fromkeys(_PATTERN.findall(content))
        self._probes = ("/", "/-", *map(_example, list(patterns)[:PROBES_MAX]))
        self._decisions: LRUCache[tuple[str, str], bool] = LRUCache(DECISIONS_MAX)
        self._lock = Lock()
        self._states: dict[str, State] = {}
        """States by group, because most agents share the group `*`. A state takes 1 µs for each pair of probe and
        rule."""

    @property
    def has_groups(self) -> bool:
        """Return whether the text has a `User-agent` line, without which it has no rules."""
        return bool(self._groups)

    def group(self, names: Sequence[str]) -> str | None:
        """Return the name of the group that is for the agent: its own group, or `*`; None if the text has neither.

        An agent obeys its own group alone. Unlike RFC 9309, Protego would also apply a group `Claude` to ClaudeBot, so
        the parser gets the exact name of the group and not that of the agent.
        """
        own = next((self._groups[name.lower()] for name in names if name.lower() in self._groups), None)
        return own or (EVERY_AGENT if EVERY_AGENT in self._groups else None)

    def allows(self, names: Sequence[str], path: str) -> bool:
        """Return whether an agent with these names may read a path."""
        group = self.group(names)
        if group is None:
            return True
        with self._lock:
            known = self._decisions.get((group, path))
            if known is None:
                known = self._decisions[group, path] = bool(self._parser.can_fetch(path, group))
        return known

    def state(self, names: Sequence[str]) -> State:
        """Return which part of the site an agent may read.

        The state is computed from one example path of each pattern: a rule decides about all paths that its pattern
        matches.
        """
        group = self.group(names)
        if group is None:
            return "allowed"
        if group not in self._states:
            self._states[group] = self._group_state(group)
        return self._states[group]

    def _group_state(self, group: str) -> State:
        is_allowed = self._parser.can_fetch(self._probes[0], group)
        if any(self._parser.can_fetch(path, group) != is_allowed for path in self._probes):
            return "partly"
        return "allowed" if is_allowed else "disallowed"


def names(agent: str) -> tuple[str, ...]:
    """Return the names that a robots.txt can have for an agent."""
    known = BY_NAME.get(agent)
    return (agent, *known.tokens) if known else (agent,)


@lru_cache(maxsize=32)
def parse(content: str) -> RobotsRules:
    return RobotsRules(content)


def disallowing(tokens: Sequence[str]) -> str:
    """Return the lines that disallow every page for an agent with these tokens; empty if robots.txt cannot name it."""
    names = [f"User-agent: {token}\n" for token in tokens if _TOKEN.fullmatch(token)]
    return f"{''.join(names)}Disallow: /" if names else ""


def largest_group(content: str) -> tuple[str, int]:
    """Return the name of the group with the most rules, and their number; an empty name and 0 without a rule.

    Groups with the same name are one group, as in RFC 9309.
    """
    counts: Counter[str] = Counter()
    names: list[str] = []
    has_rule = True
    for field, value in _LINE.findall(content):
        if field.lower().startswith("user"):
            names = [value.strip()] if has_rule else [*names, value.strip()]
            has_rule = False
        else:
            counts.update(name.lower() for name in dict.fromkeys(names))
            has_rule = True
    return max(counts.items(), key=lambda item: item[1], default=("", 0))


def _example(pattern: str) -> str:
    """Return a path that the pattern of a rule matches."""
    text = pattern.strip().removesuffix("$").replace("*", "-")
    return text if text.startswith("/") else f"/{text}"
