"""Ledger of imported logs, which recognises a log by its content, so that no line counts twice.

Each row is a chunk that was read: its parent (the chunk before it in the log; 0 at the log's start), its size in bytes
and its fingerprint. An import follows these rows along the content of a log. In a renamed or compressed copy of a log
they end at the copy's end, and in a log that has grown they end where its new lines begin. The ledger is a table of the
hot log, because one transaction stores the rows of a chunk and the ledger's row for the chunk. Stored digests are keyed
with the store's secret: see `ingest.hotlog.ledger_store`.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from ingest.errors import LogReadElsewhere
from ingest.hotlog.ledger_store import CHECKPOINT, Ledger, keyed, keyed_checkpoints, keyed_columns
from ingest.imports.fingerprint import (
    CHECKPOINT_BYTES,
    DIGEST_BYTES,
    EARLIER_DIGEST_BYTES,
    Fingerprint,
    digest_of_first_line,
    fingerprint,
)
from ingest.imports.log_stream import LogStream, ReadFailed

EXTENDED_BYTES_MAX = 1024 * 1024
"""Maximum size, in bytes, of a chunk that is extended line by line, as the chunks of a followed log are."""
JOINED_LINES_MIN = 100
"""Number of distinct lines by which the beginning of a known log is recognised behind another log. Fewer may be chance:
the same request may come again within a second."""
JOINED_BYTES_MAX = 1024 * 1024
"""Number of bytes in which JOINED_LINES_MIN distinct lines are searched for."""
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
    """A chunk of the ledger that the source continues with, and the fingerprint of the bytes that the source has."""

    id: int
    fingerprint: Fingerprint
    is_copy_end: bool


def find(ledger: Ledger, source: LogStream, on_known: Callable[[bytes], None] = lambda _: None) -> tuple[Position, int]:
    """Take the known chunks from the source; return the position after them, and their number of lines.

    `on_known` is called with each piece of a chunk that is taken.

    Raises:
        ReadFailed: the log was changed meanwhile.
    """
    newest = ledger.run("NEWEST_ID").fetchone()[0]
    position, lines = Position(0, Fingerprint(), ends_mid_line=False, newest_id=int(newest)), 0
    while source.peek(1) and (chunk := _known_after(ledger, position, source)) is not None:
        taken, last = Fingerprint(len(chunk.fingerprint.digest), starts_mid_line=position.ends_mid_line), b""
        for data in source.take_pieces(chunk.fingerprint.bytes):
            taken.update(data)
            lines += data.count(b"\n")
            on_known(data)
            last = data[-1:]
        if taken.digest != chunk.fingerprint.digest:
            raise ReadFailed(errno.ESTALE, "it was changed while it was read")
        position = Position(chunk.id, taken, last != b"\n", position.newest_id, chunk.is_copy_end)
    return position, lines + position.ends_mid_line


def _known_after(ledger: Ledger, position: Position, source: LogStream) -> _KnownChunk | None:
    """Return the known chunk that the source continues with, or the beginning of another known log."""
    known = _child(ledger, position.id, source, 0, position.ends_mid_line)
    if known is None and position.id and not position.ends_mid_line:
        return _joined(ledger, source)
    return known


def _joined(ledger: Ledger, source: LogStream) -> _KnownChunk | None:
    """Return the first chunk of a known log if the source continues with JOINED_LINES_MIN distinct lines of it."""
    first = chunk = _child(ledger, 0, source, 0, starts_mid_line=False)
    lines: set[bytes] = set()
    size = 0
    while chunk is not None:
        data = b"".join(source.ahead(size, min(chunk.fingerprint.bytes, JOINED_BYTES_MAX)))
        lines.update(data.splitlines())
        size += chunk.fingerprint.bytes
        if len(lines) >= JOINED_LINES_MIN:
            return first
        if size >= JOINED_BYTES_MAX or chunk.is_copy_end:
            return None
        chunk = _child(ledger, chunk.id, source, size, not data.endswith(b"\n"))
    return None


def _child(ledger: Ledger, parent: int, source: LogStream, offset: int, starts_mid_line: bool) -> _KnownChunk | None:
    """Return the chunk after `parent` that the source continues with at an offset, complete or truncated."""
    head = b"".join(source.ahead(offset, CHECKPOINT_BYTES))
    if not head:
        return None
    first, earlier = (
        _keyed_first(head, size, starts_mid_line, ledger.secret) for size in (DIGEST_BYTES, EARLIER_DIGEST_BYTES)
    )
    values = {"parent": parent, "first": first, "earlier_first": earlier, "no_line": b""}
    truncated = []
    begun = partial(fingerprint, head, starts_mid_line=starts_mid_line)
    checkpoints_of = cache(lambda size: dict(CHECKPOINT.iter_unpack(begun(size).checkpoints)))
    for id, size, known_digest, checkpoints, _ in ledger.run("CHILDREN", values):
        within = [each for each in CHECKPOINT.iter_unpack(checkpoints) if each[0] <= len(head)]
        if within and keyed(checkpoints_of(len(known_digest)).get(within[-1][0], b""), ledger.secret) != within[-1][1]:
            continue  # only a chunk that may begin with the head is read whole
        data = Fingerprint(len(known_digest), starts_mid_line=starts_mid_line)
        for piece in source.ahead(offset, size):
            data.update(piece)
        if keyed(data.digest, ledger.secret) == known_digest:
            return _KnownChunk(id, data, is_copy_end=False)
        if data.bytes < size:
            truncated.append((_KnownChunk(id, data, is_copy_end=True), checkpoints))
    return next((chunk for chunk, known in truncated if _is_prefix(chunk.fingerprint, known, ledger.secret)), None)


def _keyed_first(head: bytes, digest_bytes: int, starts_mid_line: bool, secret: bytes) -> bytes:
    """Return the stored digest of the first line of a chunk, which may lack its line end in a copy."""
    of = partial(digest_of_first_line, digest_bytes=digest_bytes, starts_mid_line=starts_mid_line)
    return keyed(of(head) or of(head + b"\n"), secret)


def _is_prefix(data: Fingerprint, checkpoints: bytes, secret: bytes) -> bool:
    """Return whether data, with or without the end of its last line, begins a chunk with these checkpoints."""
    with_line_end = data.copy()
    with_line_end.update(b"\n")
    own = (each.checkpoints for each in (data, with_line_end))
    return any(each and checkpoints.startswith(keyed_checkpoints(each, secret)) for each in own)


def record(ledger: Ledger, position: Position, chunk: Fingerprint, ends_mid_line: bool, now_s: float) -> Position:
    """Add a chunk that follows a position, in the caller's transaction, which also stores the chunk's rows.

    `now_s` is in seconds since 1970.

    Raises:
        LogReadElsewhere: another import has read further in the same log since the position was looked up.
    """
    columns, (parent, other_parent) = _columns(ledger, chunk, ends_mid_line, now_s), position.parents
    values = {"parent": parent, "other_parent": other_parent, "newest_id": position.newest_id}
    if first := columns["first"]:
        rivals = ledger.run("RIVALS_WITH_FIRST_LINE", {**values, "first": first, "no_line": b""})
    else:
        rivals = ledger.run("RIVALS", values)
    has_rival = rivals.fetchone() is not None
    unchanged = {"id": position.id, "bytes": position.fingerprint.bytes}
    has_parent = position.id == 0 or ledger.run("UNCHANGED", unchanged).fetchone()
    if has_rival or not has_parent:
        raise LogReadElsewhere(_READ_ELSEWHERE)
    ((id,),) = ledger.run("ADD", {"parent": position.id, **columns}).fetchall()
    return Position(id, chunk, ends_mid_line, newest_id=id)


def extend(ledger: Ledger, position: Position, data: bytes, ends_mid_line: bool, now_s: float) -> Position:
    """Add data to the chunk at a position, or beyond EXTENDED_BYTES_MAX a chunk. Raises LogReadElsewhere."""
    is_earlier = position.fingerprint.digest_bytes != DIGEST_BYTES and not position.ends_mid_line
    if position.id == 0 or is_earlier or position.fingerprint.bytes + len(data) > EXTENDED_BYTES_MAX:
        chunk = fingerprint(data, starts_mid_line=position.ends_mid_line)
        return record(ledger, position, chunk, ends_mid_line, now_s)
    extended = position.fingerprint.copy()
    extended.update(data)
    same = {"id": position.id, "bytes_before": position.fingerprint.bytes}
    if ledger.run("EXTEND", {**same, **_columns(ledger, extended, ends_mid_line, now_s)}).rowcount == 0:
        raise LogReadElsewhere(_READ_ELSEWHERE)
    return Position(position.id, extended, ends_mid_line, newest_id=position.newest_id)


def _columns(ledger: Ledger, chunk: Fingerprint, ends_mid_line: bool, now_s: float) -> dict[str, object]:
    keyed = keyed_columns(chunk.first_line, chunk.digest, chunk.checkpoints, ledger.secret)
    return {**keyed, "bytes": chunk.bytes, "is_cut": int(ends_mid_line), "read_s": int(now_s)}
