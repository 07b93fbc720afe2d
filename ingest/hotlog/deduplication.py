"""Detection of repeated events and posts: event ids and Idempotency-Keys of the last seven days, in the hot log.

They are written in the transaction that stores the rows: after a crash either both exist or neither does.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import msgspec

from ingest.errors import IdempotencyMismatch
from ingest.hits.body import Rejection
from ingest.hits.hit import DEDUPLICATION_DAYS
from warehouse.schema import EVENT_ID, Row
from warehouse.transaction import transaction

REMEMBERED_S = DEDUPLICATION_DAYS * 24 * 3600
"""Time in seconds for which event ids and Idempotency-Keys are remembered."""
DELETED_AT_ONCE = 10_000
"""Number of rows that one statement deletes."""

_CREATE = """
CREATE TABLE IF NOT EXISTS event_ids (id BLOB PRIMARY KEY, seen_s INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_ids_seen ON event_ids (seen_s);
CREATE TABLE IF NOT EXISTS answers (
    project_id TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL, receipt BLOB NOT NULL,
    seen_s INTEGER NOT NULL, PRIMARY KEY (project_id, key)
) WITHOUT ROWID;
"""
_ADD_EVENT_ID = f"""
INSERT INTO event_ids VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET seen_s = excluded.seen_s WHERE seen_s <= excluded.seen_s - {REMEMBERED_S}
"""


class Receipt(msgspec.Struct, frozen=True):
    """Numbers of accepted and duplicate rows of a post, and its rejected rows."""

    accepted: Annotated[int, msgspec.Meta(description="Hits stored.")]
    duplicates: Annotated[int, msgspec.Meta(description="Hits whose `eventId` was stored before.")]
    rejected: Annotated[list[Rejection], msgspec.Meta(description="Hits not stored.")]


@dataclass(frozen=True, slots=True)
class Post:
    """Rows of one request, all of one project, with its Idempotency-Key and the fingerprint of its body.

    `internal_id` is that of the project when the request began: see `warehouse.hotlog.refusals`.
    """

    project: str
    rows: Sequence[Row]
    rejected: list[Rejection]
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    internal_id: str = ""


_RECEIPT = msgspec.json.Decoder(Receipt)


def create(connection: sqlite3.Connection) -> None:
    """Create the tables unless they exist."""
    connection.executescript(_CREATE)


def is_identifiable(post: Post) -> bool:
    """Return whether the post has an Idempotency-Key or an event id."""
    return post.idempotency_key is not None or any(row[EVENT_ID] is not None for row in post.rows)


def deduplicate(
    connection: sqlite3.Connection, post: Post, new_rows: list[Row], now_s: int
) -> Receipt | IdempotencyMismatch:
    """Append the rows of the post that are not duplicates to `new_rows`, and return its receipt.

    The event ids and the key of the post are written in the caller's transaction. If the key was used before, no row is
    appended, and the result is the earlier receipt, or IdempotencyMismatch if the body was different.
    """
    if (earlier := _earlier_answer(connection, post, now_s)) is not None:
        return earlier
    new = [row for row in post.rows if row[EVENT_ID] is None or _add_event_id(connection, row, now_s)]
    new_rows += new
    receipt = Receipt(len(new), len(post.rows) - len(new), post.rejected)
    if post.idempotency_key is not None:
        connection.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
            (post.project, post.idempotency_key, post.fingerprint, msgspec.json.encode(receipt), now_s),
        )
    return receipt


def add_event_ids(connection: sqlite3.Connection, event_ids: Iterable[tuple[str, str, int]]) -> None:
    """Add the event ids of hits in the lake: tuples of project, event id and time of the hit in seconds since 1970."""
    rows = [(_key(project, event_id), seen_s) for project, event_id, seen_s in event_ids]
    with transaction(connection):
        connection.executemany("INSERT OR IGNORE INTO event_ids VALUES (?, ?)", rows)


def _earlier_answer(connection: sqlite3.Connection, post: Post, now_s: int) -> Receipt | IdempotencyMismatch | None:
    if post.idempotency_key is None:
        return None
    answer = connection.execute(
        "SELECT fingerprint, receipt FROM answers WHERE project_id = ? AND key = ? AND seen_s > ?",
        (post.project, post.idempotency_key, now_s - REMEMBERED_S),
    ).fetchone()
    if answer is None:
        return None
    fingerprint, receipt = answer
    if fingerprint != post.fingerprint:
        return IdempotencyMismatch("this Idempotency-Key was used for another body; send a new key with a new body")
    return _RECEIPT.decode(receipt)


def _add_event_id(connection: sqlite3.Connection, row: Row, now_s: int) -> bool:
    """Add the event id of a row, and return whether it is new."""
    return connection.execute(_ADD_EVENT_ID, (_key(str(row[0]), str(row[EVENT_ID])), now_s)).rowcount == 1


def _key(project: str, event_id: str) -> bytes:
    return _project_prefix(project) + hashlib.blake2b(event_id.encode(), digest_size=16).digest()


@lru_cache(1_000)
def _project_prefix(project: str) -> bytes:
    """Return the prefix of the keys of all event ids of a project."""
    return hashlib.blake2b(project.encode(), digest_size=8).digest()


def delete_expired(connection: sqlite3.Connection, now_s: float) -> None:
    """Delete the event ids and Idempotency-Keys that are older than seven days."""
    until_s = int(now_s) - REMEMBERED_S
    _delete(connection, "event_ids", "id", "seen_s <= ?", (until_s,))
    _delete(connection, "answers", "(project_id, key)", "seen_s <= ?", (until_s,))


def delete_project(connection: sqlite3.Connection, project: str) -> None:
    """Delete all event ids and Idempotency-Keys of a project, because a later project may have the same id."""
    first = _project_prefix(project)
    _delete(connection, "event_ids", "id", "id BETWEEN ? AND ?", (first, first + 17 * b"\xff"))
    _delete(connection, "answers", "(project_id, key)", "project_id = ?", (project,))


def _delete(connection: sqlite3.Connection, table: str, key: str, where: str, values: tuple[object, ...]) -> None:
    """Delete the rows in parts: to delete a million rows at once would block all posts for seconds."""
    columns = key.strip("()")
    part = f"DELETE FROM {table} WHERE {key} IN (SELECT {columns} FROM {table} WHERE {where} LIMIT {DELETED_AT_ONCE})"
    while connection.execute(part, values).rowcount == DELETED_AT_ONCE:
        pass
