"""Table of the AI agents in `agents.toml`, and the search for an agent's token in a user agent."""

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

# A URL is one word: https://example.com/gptbot names a page and not GPTBot. A dot belongs to a word only inside it: in
# "(compatible; GPTBot.)" the dot ends a sentence. Only the dots after a word are read twice, which makes matching
# linear in time.
_WORD = re.compile(r"(?:https?://|www\.)[^\s;,)]*|[\w-]+(?:\.+[\w-]+)*|\S")


class Agent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An AI agent.

    `tokens` match whole words, case-insensitively. `checked` is the day on which the row was compared with `source`.
    `until` is a day by which the operator had ended or renamed the agent; its tokens are still recognised after it.
    """

    name: str
    tokens: tuple[str, ...]
    operator: str
    purpose: Purpose
    source: str
    checked: date
    note: str | None = None
    until: date | None = None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    agent: tuple[Agent, ...]


def words(text: str) -> Words:
    """Return the words and single punctuation marks of a text, in lower case: `GPTBot/1.2` has three."""
    return tuple(_WORD.findall(text.lower()))


def parse(toml: str) -> tuple[Agent, ...]:
    """Return the rows in their order.

    Raises: msgspec.ValidationError for an unknown purpose or field, ValueError for a repeated token or name.
    """
    rows = msgspec.convert(tomllib.loads(toml), _Table).agent
    _refuse_repeated("token", [words(token) for row in rows for token in row.tokens])
    _refuse_repeated("name", [words(row.name) for row in rows])
    return rows


def find(user_agent: str) -> Agent | None:
    """Return the agent whose token comes first in the user agent, or None.

    A caller searches for FIRST_WORDS first, which is faster: a user agent that does not match FIRST_WORDS has no agent.
    """
    token = _find_token(words(user_agent))
    return None if token is None else token[0]


def matched_text(user_agent: str) -> str | None:
    """Return the part of the user agent that is the token of `find`, or None. It may be in lower case."""
    lower = user_agent.lower()
    matches = list(_WORD.finditer(lower))
    token = _find_token(tuple(match[0] for match in matches))
    if token is None:
        return None
    _, first, last = token
    text = user_agent if len(user_agent) == len(lower) else lower  # İ is two characters in lower case
    return text[matches[first].start() : matches[last].end()]


def _find_token(text: Words) -> tuple[Agent, int, int] | None:
    """Return the agent whose token comes first, and the indexes of the token's first and last word; or None."""
    if "electron" in text:  # the web view of a desktop app, such as an AI code editor: a person reads
        return None
    for start, word in enumerate(text):
        for token, agent in _BY_FIRST_WORD.get(word, ()):
            if text[start : start + len(token)] == token:
                return agent, start, start + len(token) - 1
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


AGENTS = parse((Path(__file__).parent / "agents.toml").read_text(encoding="utf-8"))
BY_NAME = {agent.name: agent for agent in AGENTS}
_BY_FIRST_WORD = _by_first_word(AGENTS)
FIRST_WORDS = "(?i)" + "|".join(map(re2.escape, _BY_FIRST_WORD))
"""Pattern of the first words of all tokens, which most user agents do not match."""


def names(operator: str | None, purpose: str | None) -> tuple[str, ...]:
    """Return the names of the agents of an operator and purpose. None matches all."""
    return tuple(each.name for each in AGENTS if operator in (None, each.operator) and purpose in (None, each.purpose))


def rows() -> list[dict[str, str]]:
    """Return the rows of the lake's table of agents: one for each token."""
    return [
        {"name": agent.name, "operator": agent.operator, "purpose": agent.purpose, "pattern": token}
        for agent in AGENTS
        for token in agent.tokens
    ]
