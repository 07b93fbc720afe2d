"""Ledger of imported logs, which recognises a log by its content, so that no line counts twice.

Each row is a chunk that was read: its parent (the chunk before it in the log; 0 at the log's start), its size in bytes
and its fingerprint. An import follows these rows along the content of a log. In a renamed or compressed copy of a log
they end at the copy's end, and in a log that has grown they end where its new lines begin. The ledger is a table of the
hot log, because one transaction stores the rows of a chunk and the ledger's row for the chunk.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingest import hotlog
from ingest.errors import LogReadElsewhere
from ingest.imports.fingerprint import CHECKPOINT_BYTES, Fingerprint, digest, digest_of_first_line, fingerprint
from ingest.imports.source import Source
from warehouse.database.statements import Statements
from warehouse.hotlog.connection import HotConnection
from warehouse.hotlog.schema_steps import add_tables

EXTENDED_BYTES_MAX = 1024 * 1024
"""Maximum size, in bytes, of a chunk that is extended line by line, as the chunks of a followed log are."""
JOINED_LINES_MIN = 100
"""Number of distinct lines by which the beginning of a known log is recognised behind another log. Fewer may be chance:
the same request may come again within a second."""
JOINED_BYTES_MAX = 1024 * 1024
"""Number of bytes in which JOINED_LINES_MIN distinct lines are searched for."""

STATEMENTS = Statements("ingest.hotlog.ledger_tables", Path(hotlog.__path__[0]) / "ledger_tables.sqlite.sql")
"""Statements on the table of `ingest.hotlog.ledger_tables`."""
_SQLITE_TEMPORARY = (
    "CREATE TEMP TABLE read_logs (id INTEGER PRIMARY KEY, project_id, parent, first, bytes, digest, marks, is_cut)",
    "CREATE INDEX temp.read_logs_after ON read_logs (project_id, parent, first)",
    "INSERT INTO temp.read_logs SELECT * FROM main.read_logs",
)
_POSTGRESQL_TEMPORARY = (
    "CREATE TEMP TABLE read_logs (LIKE read_logs INCLUDING INDEXES)",
    "INSERT INTO pg_temp.read_logs SELECT * FROM hot_log.read_logs",
    "CREATE TEMP SEQUENCE read_logs_id",
    "SELECT setval('pg_temp.read_logs_id', coalesce(max(id), 0) + 1) FROM pg_temp.read_logs",
    "ALTER TABLE pg_temp.read_logs ALTER COLUMN id SET DEFAULT nextval('pg_temp.read_logs_id')",
)
_READ_ELSEWHERE = "another import reads the same log: when it has ended, run this again to read the rest"


@dataclass(slots=True)
class Position:
    """Position up to which a log was read: the id and the fingerprint of the last chunk read. At the start of the log
    the id is 0 and the fingerprint is that of no bytes.

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


def create(connection: HotConnection) -> None:
    """Create the table if it does not exist."""
    add_tables(connection, STATEMENTS, "read_logs")


@contextmanager
def temporary(connection: HotConnection) -> Iterator[None]:
    """Shadow the table with a temporary copy, to which a dry run writes."""
    if not isinstance(connection, sqlite3.Connection):
        with connection.pinned():
            for statement in _POSTGRESQL_TEMPORARY:
                connection.execute(statement)
            try:
                yield
            finally:
                connection.execute("DISCARD TEMP")
        return
    for statement in _SQLITE_TEMPORARY:
        connection.execute(statement)
    try:
        yield
    finally:
        connection.execute("DROP TABLE temp.read_logs")


def find(
    connection: HotConnection,
    project: str,
    source: Source,
    on_known: Callable[[bytes], None] = lambda data: None,
) -> tuple[Position, int]:
    """Take the known chunks from the source; return the position after them, and their number of lines.

    `on_known` is called with each chunk that is taken.
    """
    newest = STATEMENTS.run(connection, "NEWEST_ID").fetchone()[0]
    position, lines = Position(0, Fingerprint(), ends_mid_line=False, newest_id=int(newest)), 0
    while source.peek(1) and (chunk := _known_after(connection, project, position, source)) is not None:
        data = source.take(len(chunk.data))
        lines += data.count(b"\n")
        on_known(data)
        position = Position(chunk.id, fingerprint(data), chunk.ends_mid_line, position.newest_id, chunk.is_copy_end)
    return position, lines + position.ends_mid_line


def _known_after(connection: HotConnection, project: str, position: Position, source: Source) -> _KnownChunk | None:
    """Return the known chunk that the source continues with, or the beginning of another known log."""
    known = _child(connection, project, position.id, source, 0)
    if known is None and position.id and not position.ends_mid_line:
        return _joined(connection, project, source)
    return known


def _joined(connection: HotConnection, project: str, source: Source) -> _KnownChunk | None:
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


def _child(connection: HotConnection, project: str, parent: int, source: Source, offset: int) -> _KnownChunk | None:
    """Return the chunk after `parent` that the source continues with at an offset, complete or truncated."""

    def ahead(size: int) -> bytes:
        return source.peek(offset + size)[offset:]

    head = ahead(CHECKPOINT_BYTES)
    if not head:
        return None
    first = digest_of_first_line(head) or digest_of_first_line(head + b"\n")  # a copy may lack the last line end
    values = {"project": project, "parent": parent, "first": first, "no_line": b""}
    rows = STATEMENTS.run(connection, "CHILDREN", values).fetchall()
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
    connection: HotConnection, project: str, position: Position, chunk: Fingerprint, ends_mid_line: bool
) -> Position:
    """Add a chunk that follows a position, in the caller's transaction, which also stores the chunk's rows.

    Raises:
        LogReadElsewhere: another import has read further in the same log since the position was looked up.
    """
    first, (parent, other_parent) = chunk.first_line, position.parents
    values = {"project": project, "parent": parent, "other_parent": other_parent, "newest_id": position.newest_id}
    if first:
        rivals = STATEMENTS.run(connection, "RIVALS_WITH_FIRST_LINE", {**values, "first": first, "no_line": b""})
    else:
        rivals = STATEMENTS.run(connection, "RIVALS", values)
    has_rival = rivals.fetchone() is not None
    unchanged = {"id": position.id, "bytes": position.fingerprint.bytes}
    has_parent = position.id == 0 or STATEMENTS.run(connection, "UNCHANGED", unchanged).fetchone()
    if has_rival or not has_parent:
        raise LogReadElsewhere(_READ_ELSEWHERE)
    ((id,),) = STATEMENTS.run(
        connection, "ADD", {"project": project, "parent": position.id, **_columns(chunk, ends_mid_line)}
    ).fetchall()
    return Position(id, chunk, ends_mid_line, newest_id=id)


def extend(connection: HotConnection, project: str, position: Position, data: bytes, ends_mid_line: bool) -> Position:
    """Add data to the chunk at a position if the chunk stays within EXTENDED_BYTES_MAX, else add a chunk.

    Raises:
        LogReadElsewhere: see `record`.
    """
    if position.id == 0 or position.fingerprint.bytes + len(data) > EXTENDED_BYTES_MAX:
        return record(connection, project, position, fingerprint(data), ends_mid_line)
    extended = position.fingerprint.copy()
    extended.update(data)
    same = {"id": position.id, "bytes_before": position.fingerprint.bytes}
    changed = STATEMENTS.run(connection, "EXTEND", {**same, **_columns(extended, ends_mid_line)})
    if changed.rowcount == 0:
        raise LogReadElsewhere(_READ_ELSEWHERE)
    return Position(position.id, extended, ends_mid_line, newest_id=position.newest_id)


def _columns(chunk: Fingerprint, ends_mid_line: bool) -> dict[str, object]:
    return {
        "first": chunk.first_line,
        "bytes": chunk.bytes,
        "digest": chunk.digest,
        "marks": chunk.checkpoints,
        "is_cut": int(ends_mid_line),
    }


def delete_project(connection: HotConnection, project: str) -> None:
    """Delete the ledger of a project, so that a new project with its id can import the same logs."""
    STATEMENTS.run(connection, "DELETE_OF_PROJECT", {"project": project})
