"""What was read of logs, told by content and never by name, so that nothing of a log is counted twice.

Each stretch that was read is a row: how many bytes follow the stretch before it (its parent; 0 at the start of a log),
and their digest. A log is found again by walking these rows along its content: a copy, packed or renamed, leads to the
end of what was read, and a log that has grown to its new lines. It stands in the hot log's file, so that one
transaction keeps a stretch's rows and that it was read.
"""

import hashlib
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from xxhash import xxh3_128

from ingest.errors import LogReadElsewhere
from ingest.imports.source import Content

MARK_EVERY_BYTES = 64 * 1024
MARKED_LINE_BYTES_MIN = 32
"""No line that tells of a page view is shorter; a log of empty lines would have as many marks as bytes."""
EXTENDED_BYTES_MAX = 1024 * 1024
"""A stretch that grows line by line, as a followed log does, is one row up to this."""
JOINED_LINES_MIN = 100
"""A log is taken for two that were put one after the other where it goes on with so many lines, each another, of the
beginning of a known one. A few may be chance: the same request, again within the second."""
JOINED_BYTES_MAX = 1024 * 1024
"""So far it is looked for them."""

_TABLE = """read_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, project_id TEXT NOT NULL, parent INTEGER NOT NULL, first BLOB NOT NULL,
    bytes INTEGER NOT NULL, digest BLOB NOT NULL, marks BLOB NOT NULL, is_cut INTEGER NOT NULL
)"""
_CREATE = f"""
CREATE TABLE IF NOT EXISTS {_TABLE};
CREATE INDEX IF NOT EXISTS read_logs_after ON read_logs (project_id, parent, first);
"""
_REHEARSE = f"""
CREATE TEMP TABLE {_TABLE};
CREATE INDEX temp.read_logs_after ON read_logs (project_id, parent, first);
INSERT INTO temp.read_logs SELECT * FROM main.read_logs;
"""
_MARK = struct.Struct("<Q8s")
_ELSEWHERE = "another import reads the same log: when it has ended, run this again for what is left"
_DIGEST_BYTES = 16
_DIGESTS: Mapping[int, Callable[[bytes], Any]] = {_DIGEST_BYTES: xxh3_128, 32: hashlib.sha256}
"""By their bytes. New ones are of the first, in a twentieth of the time: who made two logs alike would win nothing."""


class Fingerprint:
    """The digest of bytes as they come, and marks on the way: at each line end up to MARK_EVERY_BYTES, then at the
    first past each so many. The marks of a beginning are so the beginning of the marks, which tells a shorter copy.
    """

    def __init__(self, digest_bytes: int = _DIGEST_BYTES) -> None:
        self.bytes = 0
        self.marks = b""
        self._hash = _DIGESTS[digest_bytes](b"")
        self._head = b""
        self._next = 0

    def update(self, data: bytes) -> None:
        done = 0
        while (end := data.find(b"\n", max(done, self._next - self.bytes - 1))) >= 0:
            self._hash.update(memoryview(data)[done : end + 1])
            done = end + 1
            offset = self.bytes + done
            self.marks += _MARK.pack(offset, self._hash.digest()[:8])
            self._next = offset + (MARKED_LINE_BYTES_MIN if offset < MARK_EVERY_BYTES else MARK_EVERY_BYTES)
        self._hash.update(memoryview(data)[done:])
        self._head += data[: MARK_EVERY_BYTES - len(self._head)]
        self.bytes += len(data)

    @property
    def digest(self) -> bytes:
        return bytes(self._hash.digest())

    @property
    def first(self) -> bytes:
        """By which a log is looked up; see `_first`."""
        return _first(self._head)

    def copy(self) -> "Fingerprint":
        made = Fingerprint()
        made.bytes, made.marks, made._hash, made._next = self.bytes, self.marks, self._hash.copy(), self._next
        made._head = self._head
        return made


def _first(head: bytes) -> bytes:
    """Of the first line that is no `#` header, which many logs share, and what is before it; empty if that has no end
    within MARK_EVERY_BYTES."""
    begin = 0
    while (end := head.find(b"\n", begin, MARK_EVERY_BYTES) + 1) and head.startswith(b"#", begin):
        begin = end
    return hashlib.sha256(head[:end]).digest()[:8] if end else b""


@dataclass(slots=True)
class Place:
    """How far a log was read: after the stretch `id`, of which `fingerprint` is; 0 and an empty one at its start.

    `is_cut`: it is inside of a line, which was counted. `newest` is the newest row of the ledger that was looked at.
    `is_inside`: the log ends inside what was read, as an older copy does.
    """

    id: int
    fingerprint: Fingerprint
    is_cut: bool
    newest: int
    is_inside: bool = False

    @property
    def parents(self) -> tuple[int, int]:
        """What a stretch that follows may stand after: this one, or the start of a log that was put after this."""
        return self.id, self.id if self.is_cut else 0


@dataclass(frozen=True, slots=True)
class _Known:
    """A stretch of the ledger that a content goes on with: its row, and the bytes of it that are there."""

    id: int
    data: bytes
    is_cut: bool
    is_inside: bool


def create(connection: sqlite3.Connection) -> None:
    """Make the table where it is missing."""
    connection.executescript(_CREATE)


@contextmanager
def rehearsed(connection: sqlite3.Connection) -> Iterator[None]:
    """What is recorded within is known within, and forgotten after."""
    connection.executescript(_REHEARSE)
    try:
        yield
    finally:
        connection.execute("DROP TABLE temp.read_logs")


def find(
    connection: sqlite3.Connection,
    project: str,
    content: Content,
    on_taken: Callable[[bytes], None] = lambda data: None,
) -> tuple[Place, int]:
    """Take from the content what was read before; where that ends, and how many lines it was.

    `on_taken` is told of what is taken, piece by piece.
    """
    place, lines = _start(connection), 0
    while content.peek(1) and (known := _next(connection, project, place, content)) is not None:
        taken = content.take(known.fingerprint.bytes)
        lines += taken.count(b"\n")
        on_taken(taken)
        place = known
    return place, lines + place.is_cut


def _start(connection: sqlite3.Connection) -> Place:
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM read_logs").fetchone()[0]
    return Place(0, Fingerprint(), is_cut=False, newest=int(newest))


def _next(connection: sqlite3.Connection, project: str, before: Place, content: Content) -> Place | None:
    """The stretch after a place that the content goes on with, whole, or else as far as the content goes."""
    known = _after(connection, project, before.id, content, 0)
    if known is None and before.id and not before.is_cut:
        known = _joined(connection, project, content)
    if known is None:
        return None
    return Place(known.id, _of(known.data), known.is_cut, before.newest, known.is_inside)


def _joined(connection: sqlite3.Connection, project: str, content: Content) -> _Known | None:
    """The first stretch of a log that was put after another; see JOINED_LINES_MIN."""
    begun = known = _after(connection, project, 0, content, 0)
    lines: set[bytes] = set()
    size = 0
    while known is not None:
        lines.update(known.data[:JOINED_BYTES_MAX].splitlines())
        size += len(known.data)
        if len(lines) >= JOINED_LINES_MIN:
            return begun
        if size >= JOINED_BYTES_MAX or known.is_inside:
            return None
        known = _after(connection, project, known.id, content, size)
    return None


def _after(connection: sqlite3.Connection, project: str, parent: int, content: Content, offset: int) -> _Known | None:
    """The stretch after another that the content goes on with from an offset."""

    def ahead(size: int) -> bytes:
        return content.peek(offset + size)[offset:]

    head = ahead(MARK_EVERY_BYTES)
    if not head:
        return None
    first = _first(head) or _first(head + b"\n")  # a copy may have been cut just before the end of a line
    rows = connection.execute(
        "SELECT id, bytes, digest, marks, is_cut FROM read_logs"
        " WHERE project_id = ? AND parent = ? AND first IN (?, x'') ORDER BY bytes DESC",
        (project, parent, first),
    ).fetchall()
    for id, size, digest, _, is_cut in rows:
        data = ahead(size)
        if _DIGESTS[len(digest)](data).digest() == digest:
            return _Known(id, data, bool(is_cut), is_inside=False)
    for id, size, digest, marks, _ in rows:
        rest = ahead(size)
        if len(rest) < size and any(
            seen and marks.startswith(seen) for seen in (_marks(rest, len(digest)), _marks(rest + b"\n", len(digest)))
        ):
            return _Known(id, rest, not rest.endswith(b"\n"), is_inside=True)
    return None


def _of(data: bytes, digest_bytes: int = _DIGEST_BYTES) -> Fingerprint:
    made = Fingerprint(digest_bytes)
    made.update(data)
    return made


def _marks(data: bytes, digest_bytes: int) -> bytes:
    return _of(data, digest_bytes).marks


def record(connection: sqlite3.Connection, project: str, place: Place, read: Fingerprint, is_cut: bool) -> Place:
    """Note that the bytes after a place were read, inside the caller's transaction, which also stores their rows.

    Raises:
        LogReadElsewhere: another import has come further in the same log meanwhile.
    """
    rivals = "SELECT 1 FROM read_logs WHERE project_id = ? AND parent IN (?, ?) AND id > ?"
    values: tuple[object, ...] = (project, *place.parents, place.newest)
    if read.first:
        rivals, values = f"{rivals} AND first IN (?, x'')", (*values, read.first)
    stands = "SELECT 1 FROM read_logs WHERE id = ? AND bytes = ?"
    is_overtaken = connection.execute(rivals, values).fetchone() is not None
    is_there = place.id == 0 or connection.execute(stands, (place.id, place.fingerprint.bytes)).fetchone() is not None
    if is_overtaken or not is_there:
        raise LogReadElsewhere(_ELSEWHERE)
    added = connection.execute(
        "INSERT INTO read_logs (project_id, parent, first, bytes, digest, marks, is_cut) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (project, place.id, read.first, read.bytes, read.digest, read.marks, is_cut),
    )
    id = int(added.lastrowid or 0)
    return Place(id, read, is_cut, newest=id)


def extend(connection: sqlite3.Connection, project: str, place: Place, more: bytes, is_cut: bool) -> Place:
    """The same for a little more of a log: it is added to the stretch that the place is after, where that is short.

    Raises: LogReadElsewhere, as `record` does.
    """
    if place.id == 0 or place.fingerprint.bytes + len(more) > EXTENDED_BYTES_MAX:
        return record(connection, project, place, _of(more), is_cut)
    grown = place.fingerprint.copy()
    grown.update(more)
    changed = connection.execute(
        "UPDATE read_logs SET bytes = ?, digest = ?, marks = ?, first = ?, is_cut = ? WHERE id = ? AND bytes = ?"
        " AND NOT EXISTS (SELECT 1 FROM read_logs AS later WHERE later.parent = read_logs.id)",
        (grown.bytes, grown.digest, grown.marks, grown.first, is_cut, place.id, place.fingerprint.bytes),
    )
    if changed.rowcount == 0:
        raise LogReadElsewhere(_ELSEWHERE)
    return Place(place.id, grown, is_cut, newest=place.newest)


def forget_project(connection: sqlite3.Connection, project: str) -> None:
    """Drop what is known of a project's logs, so that one made anew under its id may read them again."""
    connection.execute("DELETE FROM read_logs WHERE project_id = ?", (project,))
