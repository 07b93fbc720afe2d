"""Log of a job: its turns, their steps, the output of the coding agent, and failures."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.jobs.tables import STATEMENTS
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

TurnState = Literal["queued", "running", "done", "failed", "cancelled"]
EntryKind = Literal["turn", "step", "output", "failure"]
OUTPUT_BYTES_MAX = 64 * 1024
"""Maximum size of a turn's output in the log, in bytes. The beginning of a longer output is dropped."""
OUTPUT_BYTES_PER_S = 16 * 1024
"""Maximum mean rate at which a turn's output is written to the control database, in bytes per second."""
PAGE_ENTRIES = 250
"""Default number of entries on a page: about 30 turns, at most 5 MiB."""
TURN_ENTRIES_MAX = 1_000
"""Maximum number of entries of one turn that `turns` returns."""
FIRST_LINE_CHARACTERS = 200
"""Maximum length of the first line of a prompt in a summary."""
_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
"""Escape sequences of a terminal (ECMA-48), such as that of a colour or of a title."""
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a job's log. `turn` counts the job's turns from 1. Only the end of a long output is stored."""

    at_us: int
    turn: int
    kind: EntryKind
    text: str


def clean(text: str) -> str:
    """Remove escape sequences, and replace control characters and surrogates.

    A database cannot store some of them, and a terminal would execute others.
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", _ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n")))


def append(connection: Connection, job: str, turn: int, kind: EntryKind, text: str, now_us: int) -> None:
    """Append an entry to the log. An output replaces the earlier output of its turn."""
    values = {"job": job, "turn": turn, "now_us": now_us, "kind": kind, "text": clean(text)}
    if kind != "output" or not STATEMENTS.run(connection, "REPLACE_OUTPUT", values).rowcount:
        STATEMENTS.run(connection, "ADD_ENTRY", values)


def read(control: Pool, job: str, limit: int = PAGE_ENTRIES, offset: int = 0) -> tuple[list[Entry], bool]:
    """Return at most `limit` entries of a job's log after the first `offset`, oldest first, and whether more follow."""
    values = {"job": job, "limit": limit + 1, "offset": offset}
    with control.connect() as connection:  # one statement: the job may be removed meanwhile
        rows = STATEMENTS.run(connection, "ENTRIES_OF_JOB", values).fetchall()
    return [Entry(*row) for row in rows[:limit]], len(rows) > limit


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt of a job, and the log of its turn. `number` counts the job's turns from 1."""

    number: int
    prompt: str
    state: TurnState
    created_us: int
    started_us: int | None
    ended_us: int | None
    entries: list[Entry]


def turns(control: Pool, job: str, limit: int, offset: int = 0, *, has_entries: bool = True) -> list[Turn]:
    """Return at most `limit` turns of a job after the first `offset`, in order, with their logs if `has_entries`."""
    with control.connect() as connection:
        rows = STATEMENTS.run(connection, "TURNS", {"job": job, "limit": limit, "offset": offset}).fetchall()
        return [
            Turn(number, clean(text), state, at, begun, ended, _entries(connection, id, number) if has_entries else [])
            for number, (id, text, state, at, begun, ended) in enumerate(rows, start=offset + 1)
        ]


def _entries(connection: Connection, turn: int, number: int) -> list[Entry]:
    rows = STATEMENTS.run(connection, "ENTRIES_OF_TURN", {"turn": turn, "limit": TURN_ENTRIES_MAX}).fetchall()
    return [Entry(at_us, number, kind, text) for at_us, kind, text in rows]


@dataclass(frozen=True, slots=True)
class Summary:
    """Turns of a job in short. `worked_us` is the time from the start to the end of each turn, in total."""

    first_line: str
    turns: int
    is_running: bool
    worked_us: int


def summaries(control: Pool, jobs: Sequence[str], now_us: int) -> dict[str, Summary]:
    values = [{"job": job, "now_us": now_us} for job in jobs]
    with control.connect() as connection:
        rows = list(STATEMENTS.rows_of_each(connection, "SUMMARY", values))
    return {
        job: Summary(first_line(prompt), turns, bool(is_running), int(worked_us or 0))
        for job, prompt, turns, is_running, worked_us in rows
    }


def first_line(prompt: str) -> str:
    """Return the first line of a prompt that is not blank, shortened to FIRST_LINE_CHARACTERS."""
    line = next((line.strip() for line in clean(prompt).splitlines() if line.strip()), "")
    return line if len(line) <= FIRST_LINE_CHARACTERS else f"{line[: FIRST_LINE_CHARACTERS - 1]}…"


class Tail:
    """Last OUTPUT_BYTES_MAX of a turn's output, and the earliest time of the next write to the log.

    Several threads add output and another one writes it. Each write replaces the whole entry, so a write of n bytes is
    followed by a pause of n / OUTPUT_BYTES_PER_S seconds. This bounds the write rate for an agent that prints without
    end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._output = b""
        self._is_truncated = False
        self._written = ""
        self._next_write_s = 0.0

    def add(self, piece: bytes) -> None:
        with self._lock:
            output = self._output + piece
            self._is_truncated = self._is_truncated or len(output) > OUTPUT_BYTES_MAX
            self._output = output[-OUTPUT_BYTES_MAX:]

    def text(self) -> str:
        """Return the output as text; a truncated output starts with `[...]` and the next whole line."""
        text = self._output.decode(errors="replace")
        return f"[...]\n{text.partition(chr(10))[2]}" if self._is_truncated else text

    def unwritten(self, now_s: float, *, is_last: bool) -> str | None:
        """Return the text to write to the log at `now_s`.

        None: the log has the text already, or the pause after the last write has not passed. `is_last` skips the pause.
        """
        if not is_last and now_s < self._next_write_s:
            return None
        text = self.text()
        return text if text != self._written else None

    def set_written(self, text: str, now_s: float) -> None:
        """Record that the text was written to the log at `now_s`."""
        self._written = text
        self._next_write_s = now_s + len(text.encode()) / OUTPUT_BYTES_PER_S
