"""The rules of `rules.toml`: who a user agent is that names no AI agent."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec
import re2  # type: ignore[import-untyped]  # ships no types

Patterns = tuple[str, ...]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table; `name` is the agent's name where the row is about one agent."""

    kind: str
    pattern: str
    name: str | None = None


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables in the order they are searched; within each, the first row that matches decides."""

    named_bot: tuple[Rule, ...]
    known_person: tuple[Rule, ...]
    bot_habit: tuple[Rule, ...]
    person: tuple[Rule, ...]
    unshaped: tuple[Rule, ...]


class PatternSet:
    """Patterns that one pass over a text searches together, in time linear in the text.

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
        """Return the places of all patterns that match, in no order."""
        return self._set.Match(text) or []


def read(toml: str) -> Rules:
    """Return the tables of a TOML text.

    Raises: msgspec.ValidationError for an unknown or missing field, ValueError if the last row of `unshaped` has a
    pattern, because no user agent may be left without a rule.
    """
    rules = msgspec.convert(tomllib.loads(toml), Rules)
    if rules.unshaped[-1].pattern:
        raise ValueError("rules.toml: the last row of unshaped must match every text: give it an empty pattern")
    return rules


def patterns(rules: Iterable[Rule]) -> Patterns:
    """Return the pattern of each row."""
    return tuple(rule.pattern for rule in rules)


RULES = read(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
