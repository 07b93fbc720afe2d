"""A job's log: what its turns did, what the coding agent printed last, and why a turn failed."""

import re
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from agent.jobs.tables import LOG, TURNS

Kind = Literal["turn", "step", "output", "failure"]
OUTPUT_BYTES_MAX = 64 * 1024
"""Of a turn's output the end is kept."""
OUTPUT_BYTES_PER_S = 16 * 1024
"""Mean rate at which a turn's output is written to the control database."""
PAGE_ENTRIES = 250
"""Entries of a page unless the caller asks for fewer: those of some 30 turns, at most 5 MiB."""
_UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """`turn` counts a job's turns from 1. `text` of an output is the end of it, so far."""

    at_us: int
    turn: int
    kind: Kind
    text: str


def clean(text: str) -> str:
    """What a database stores and a terminal shows of it: an agent may print anything, and half of an emoji."""
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def note(connection: sa.Connection, job: str, turn: int, kind: Kind, text: str, now_us: int) -> None:
    """Add an entry; the output of a turn is one entry, which grows."""
    text = clean(text)
    if kind == "output":
        same = (LOG.c.turn_id == turn) & (LOG.c.kind == "output")
        if connection.execute(LOG.update().where(same).values(text=text, at_us=now_us)).rowcount:
            return
    connection.execute(LOG.insert().values(job_id=job, turn_id=turn, at_us=now_us, kind=kind, text=text))


@dataclass(frozen=True, slots=True)
class Page:
    """Entries of a job's log, the oldest first, and whether more come after them."""

    entries: list[Entry]
    has_more: bool


def read(engine: sa.Engine, job: str, limit: int = PAGE_ENTRIES, offset: int = 0) -> Page:
    """Return the entries of a job's log from the one with the number `offset` on, at most `limit` of them."""
    query = LOG.select().where(LOG.c.job_id == job).order_by(LOG.c.id).limit(limit + 1).offset(offset)
    with engine.connect() as connection:  # the entries first: a turn of theirs is then among those that are read after
        rows = connection.execute(query).all()
        turns = connection.execute(sa.select(TURNS.c.id).where(TURNS.c.job_id == job).order_by(TURNS.c.id)).scalars()
        number = {id: place for place, id in enumerate(turns, start=1)}
    entries = [Entry(row.at_us, number[row.turn_id], row.kind, row.text) for row in rows[:limit]]
    return Page(entries, len(rows) > limit)


class Tail:
    """The last OUTPUT_BYTES_MAX of what a turn printed, and when it may be written to the log.

    One thread adds, another writes. The log's entry is replaced as a whole by each write, so a write of n bytes is
    followed by a pause of n / OUTPUT_BYTES_PER_S seconds: an agent that prints without end writes no more than that.
    """

    def __init__(self) -> None:
        self._kept = b""
        self._is_cut = False
        self._written = ""
        self._write_from_s = 0.0

    def add(self, piece: bytes) -> None:
        whole = self._kept + piece
        self._is_cut = self._is_cut or len(whole) > OUTPUT_BYTES_MAX
        self._kept = whole[-OUTPUT_BYTES_MAX:]

    def text(self) -> str:
        text = self._kept.decode(errors="replace")
        return f"[...]\n{text.partition(chr(10))[2]}" if self._is_cut else text

    def unwritten(self, now_s: float, *, is_last: bool) -> str | None:
        """Return the text if the log lacks it and it may be written at `now_s`. The last text may always be written."""
        if not is_last and now_s < self._write_from_s:
            return None
        text = self.text()
        return text if text != self._written else None

    def set_written(self, text: str, now_s: float) -> None:
        """Remember that the log has the text since `now_s`."""
        self._written = text
        self._write_from_s = now_s + len(text) / OUTPUT_BYTES_PER_S
