"""The AI agents named in `agents.toml`, read once at import, and the look-up of one in a user agent."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Literal

import msgspec
import re2  # type: ignore[import-untyped]  # ships no types

Purpose = Literal["training", "search", "assistant", "agent", "data"]
Words = tuple[str, ...]

# A URL is one word, so that https://example.com/gptbot names a page and not GPTBot. A dot belongs to a word only
# within it: "(compatible; GPTBot.)" ends a sentence. Dots after a word are looked at once more, nothing else is: the
# time is linear in the text.
_WORD = re.compile(r"(?:https?://|www\.)[^\s;,)]*|[\w-]+(?:\.+[\w-]+)*|\S")


class Agent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`tokens` are matched as whole words, in any case; `checked` is the day the row was compared with `source`."""

    name: str
    tokens: tuple[str, ...]
    operator: str
    purpose: Purpose
    source: str
    checked: date
    note: str | None = None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    agent: tuple[Agent, ...]


def words(text: str) -> Words:
    """Lower-case words and single punctuation marks: `GPTBot/1.2` has three."""
    return tuple(_WORD.findall(text.lower()))


def read(toml: str) -> tuple[Agent, ...]:
    """The rows in their order.

    Raises: msgspec.ValidationError for an unknown purpose or field, ValueError for a token or name given twice.
    """
    rows = msgspec.convert(tomllib.loads(toml), _Table).agent
    _refuse_repeated("token", [words(token) for row in rows for token in row.tokens])
    _refuse_repeated("name", [words(row.name) for row in rows])
    return rows


def find(user_agent: str) -> Agent | None:
    """The agent whose token comes first in the user agent. FIRST_WORDS tells sooner that there is none."""
    found = words(user_agent)
    if "electron" in found:  # the web view of a desktop app, such as an AI code editor: a person reads
        return None
    for start, word in enumerate(found):
        for token, agent in _BY_FIRST_WORD.get(word, ()):
            if found[start : start + len(token)] == token:
                return agent
    return None


def _refuse_repeated(what: str, values: list[Words]) -> None:
    seen: set[Words] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"agents.toml has the {what} {' '.join(value)!r} twice")
        seen.add(value)


def _by_first_word(rows: Iterable[Agent]) -> dict[str, list[tuple[Words, Agent]]]:
    table: defaultdict[str, list[tuple[Words, Agent]]] = defaultdict(list)
    for row in rows:
        for token in row.tokens:
            table[words(token)[0]].append((words(token), row))
    return dict(table)


AGENTS = read((Path(__file__).parent / "agents.toml").read_text(encoding="utf-8"))
_BY_FIRST_WORD = _by_first_word(AGENTS)
FIRST_WORDS = "(?i)" + "|".join(map(re2.escape, _BY_FIRST_WORD))
"""What nearly all user agents have nowhere."""


def rows() -> list[dict[str, str]]:
    """The table as an analyst sees it: a row a token."""
    return [
        {"name": agent.name, "operator": agent.operator, "purpose": agent.purpose, "pattern": token}
        for agent in AGENTS
        for token in agent.tokens
    ]
