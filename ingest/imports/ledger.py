"""Ledger of imported logs: identifies a log by its content, so that no line counts twice.

Each row is a chunk that was read: its parent (the chunk before it in the log; 0 at the log's start), its size in bytes
and its fingerprint. An import follows these rows along the content of a log. A copy, renamed or compressed, leads to
the end of what was read, and a log that has grown leads to its new lines. The ledger is a table of the hot log's file,
because one transaction stores the rows of a chunk and the ledger's row for the chunk.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ingest.errors import LogReadElsewhere
from ingest.imports.fingerprint import CHECKPOINT_BYTES, Fingerprint, digest, digest_of_first_line, fingerprint
from ingest.imports.source import Source

EXTENDED_BYTES_MAX = 1024 * 1024
"""Maximum size, in bytes, of a chunk that is extended line by line, as the chunks of a followed log are."""
JOINED_LINES_MIN = 100
"""Number of distinct lines by which the beginning of a known log is recognised behind another log. Fewer may be chance:
the same request may come again within a second."""
JOINED_BYTES_MAX = 1024 * 1024
"""Number of bytes in which JOINED_LINES_MIN distinct lines are searched for."""

_TABLE = """read_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, project_id TEXT NOT NULL, parent INTEGER NOT NULL, first BLOB NOT NULL,
    bytes INTEGER NOT NULL, digest BLOB NOT NULL, marks BLOB NOT NULL, is_cut INTEGER NOT NULL
)"""
"""`first` is the digest of the first line, `marks` are the checkpoints, and `is_cut` is 1 if the chunk ends inside a
line."""
_CREATE = f"""
CREATE TABLE IF NOT EXISTS {_TABLE};
CREATE INDEX IF NOT EXISTS read_logs_after ON read_logs (project_id, parent, first);
"""
_CREATE_TEMPORARY = f"""
CREATE TEMP TABLE {_TABLE};
CREATE INDEX temp.read_logs_after ON read_logs (project_id, parent, first);
INSERT INTO temp.read_logs SELECT * FROM main.read_logs;
"""
_READ_ELSEWHERE = "another import reads the same log: when it has ended, run this again to read the rest"


@dataclass(slots=True)
class Position:
    """How far a log was read: the last chunk read, by its id in the ledger and its fingerprint; 0 and an empty one at
    the start of the log.

    `ends_mid_line`: the chunk ends inside a line, which was counted. `newest_id`: the newest row that the ledger had
    when the chunk was looked up. `is_copy_end`: the log ends inside the chunk, as an older copy does.
    """

    id: int
    fingerprint: Fingerprint
    ends_mid_line: bool
    newest_id: int
    is_copy_end: bool = False

    @property
    def parents(self) -> tuple[int, int]:
        """Return the possible parents of the next chunk: this chunk, or 0 if another log may follow in the file."""
        return self.id, self.id if self.ends_mid_line else 0


@dataclass(frozen=True, slots=True)
class _KnownChunk:
    """A chunk of the ledger that the source continues with, and the bytes of the chunk that the source has."""

    id: int
    data: bytes
    ends_mid_line: bool
    is_copy_end: bool


def create(connection: sqlite3.Connection) -> None:
    """Create the table if it does not exist."""
    connection.executescript(_CREATE)


@contextmanager
def temporary(connection: sqlite3.Connection) -> Iterator[None]:
    """Shadow the table by a temporary copy, which a dry run writes to."""
    connection.executescript(_CREATE_TEMPORARY)
    try:
        yield
    finally:
        connection.execute("DROP TABLE temp.read_logs")


def find(
    connection: sqlite3.Connection,
    project: str,
    source: Source,
    on_known: Callable[[bytes], None] = lambda data: None,
) -> tuple[Position, int]:
    """Take the known chunks from the source; return the position after them, and their number of lines.

    `on_known` is called with each chunk that is taken.
    """
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM read_logs").fetchone()[0]
    position, lines = Position(0, Fingerprint(), ends_mid_line=False, newest_id=int(newest)), 0
    while source.peek(1) and (chunk := _known_after(connection, project, position, source)) is not None:
        data = source.take(len(chunk.data))
        lines += data.count(b"\n")
        on_known(data)
        position = Position(chunk.id, fingerprint(data), chunk.ends_mid_line, position.newest_id, chunk.is_copy_end)
    return position, lines + position.ends_mid_line


def _known_after(
    connection: sqlite3.Connection, project: str, position: Position, source: Source
) -> _KnownChunk | None:
    """Return the known chunk that the source continues with, or the beginning of another known log."""
    known = _child(connection, project, position.id, source, 0)
    if known is None and position.id and not position.ends_mid_line:
        return _joined(connection, project, source)
    return known


def _joined(connection: sqlite3.Connection, project: str, source: Source) -> _KnownChunk | None:
    """Return the first chunk of a known log if the source continues with JOINED_LINES_MIN distinct lines of it."""
    first = chunk = _child(connection, project, 0, source, 0)
    lines: set[bytes] = set()
    size = 0
    while chunk is not None:
        lines.update(chunk.data[:JOINED_BYTES_MAX].splitlines())
        size += len(chunk.data)
        if len(lines) >= JOINED_LINES_MIN:
            return first
        if size >= JOINED_BYTES_MAX or chunk.is_copy_end:
            return None
        chunk = _child(connection, project, chunk.id, source, size)
    return None


def _child(
    connection: sqlite3.Connection, project: str, parent: int, source: Source, offset: int
) -> _KnownChunk | None:
    """Return the chunk after `parent` that the source continues with at an offset, complete or truncated."""

    def ahead(size: int) -> bytes:
        return source.peek(offset + size)[offset:]

    head = ahead(CHECKPOINT_BYTES)
    if not head:
        return None
    first = digest_of_first_line(head) or digest_of_first_line(head + b"\n")  # a copy may lack the last line end
    rows = connection.execute(
        "SELECT id, bytes, digest, marks, is_cut FROM read_logs"
        " WHERE project_id = ? AND parent = ? AND first IN (?, x'') ORDER BY bytes DESC",
        (project, parent, first),
    ).fetchall()
    for id, size, known_digest, _, is_cut in rows:
        data = ahead(size)
        if digest(data, len(known_digest)) == known_digest:
            return _KnownChunk(id, data, bool(is_cut), is_copy_end=False)
    for id, size, known_digest, checkpoints, _ in rows:
        data = ahead(size)
        if len(data) < size and _is_prefix(data, checkpoints, len(known_digest)):
            return _KnownChunk(id, data, not data.endswith(b"\n"), is_copy_end=True)
    return None


def _is_prefix(data: bytes, checkpoints: bytes, digest_bytes: int) -> bool:
    """Return whether data, with or without the end of its last line, begins a chunk with these checkpoints."""
    return any(
        own and checkpoints.startswith(own)
        for own in (fingerprint(data, digest_bytes).checkpoints, fingerprint(data + b"\n", digest_bytes).checkpoints)
    )


def record(
    connection: sqlite3.Connection, project: str, position: Position, chunk: Fingerprint, ends_mid_line: bool
) -> Position:
    """Add a chunk that follows a position, in the caller's transaction, which also stores the chunk's rows.

    Raises:
        LogReadElsewhere: another import has read on in the same log since the position was looked up.
    """
    rivals = "SELECT 1 FROM read_logs WHERE project_id = ? AND parent IN (?, ?) AND id > ?"
    values: tuple[object, ...] = (project, *position.parents, position.newest_id)
    if chunk.first_line:
        rivals, values = f"{rivals} AND first IN (?, x'')", (*values, chunk.first_line)
    has_rival = connection.execute(rivals, values).fetchone() is not None
    parent = "SELECT 1 FROM read_logs WHERE id = ? AND bytes = ?"
    has_parent = position.id == 0 or connection.execute(parent, (position.id, position.fingerprint.bytes)).fetchone()
    if has_rival or not has_parent:
        raise LogReadElsewhere(_READ_ELSEWHERE)
    added = connection.execute(
        "INSERT INTO read_logs (project_id, parent, first, bytes, digest, marks, is_cut) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (project, position.id, chunk.first_line, chunk.bytes, chunk.digest, chunk.checkpoints, ends_mid_line),
    )
    id = int(added.lastrowid or 0)
    return Position(id, chunk, ends_mid_line, newest_id=id)


def extend(
    connection: sqlite3.Connection, project: str, position: Position, data: bytes, ends_mid_line: bool
) -> Position:
    """Add data to the chunk at a position if the chunk stays within EXTENDED_BYTES_MAX, else add a chunk.

    Raises:
        LogReadElsewhere: see `record`.
    """
    if position.id == 0 or position.fingerprint.bytes + len(data) > EXTENDED_BYTES_MAX:
        return record(connection, project, position, fingerprint(data), ends_mid_line)
    extended = position.fingerprint.copy()
    extended.update(data)
    changed = connection.execute(
        "UPDATE read_logs SET bytes = ?, digest = ?, marks = ?, first = ?, is_cut = ? WHERE id = ? AND bytes = ?"
        " AND NOT EXISTS (SELECT 1 FROM read_logs AS later WHERE later.parent = read_logs.id)",
        (
            extended.bytes,
            extended.digest,
            extended.checkpoints,
            extended.first_line,
            ends_mid_line,
            position.id,
            position.fingerprint.bytes,
        ),
    )
    if changed.rowcount == 0:
        raise LogReadElsewhere(_READ_ELSEWHERE)
    return Position(position.id, extended, ends_mid_line, newest_id=position.newest_id)


def forget_project(connection: sqlite3.Connection, project: str) -> None:
    """Delete the ledger of a project, so that a new project with its id can import the same logs."""
    connection.execute("DELETE FROM read_logs WHERE project_id = ?", (project,))
