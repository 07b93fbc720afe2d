"""What was posted before: event ids and Idempotency-Keys, remembered in the hot log for seven days.

They are written in the transaction that stores the rows, so that a crash cannot part the two.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from ingest.errors import IdempotencyMismatch
from ingest.hits.body import Rejection
from warehouse.schema import EVENT_ID, Row
from warehouse.transaction import transaction

REMEMBERED_S = 7 * 24 * 3600
DELETED_AT_ONCE = 10_000

_CREATE = """
CREATE TABLE IF NOT EXISTS event_ids (id BLOB PRIMARY KEY, seen_s INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_ids_seen ON event_ids (seen_s);
CREATE TABLE IF NOT EXISTS answers (
    project_id TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL, receipt BLOB NOT NULL,
    seen_s INTEGER NOT NULL, PRIMARY KEY (project_id, key)
) WITHOUT ROWID;
"""
_SEE_EVENT_ID = f"""
INSERT INTO event_ids VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET seen_s = excluded.seen_s WHERE seen_s <= excluded.seen_s - {REMEMBERED_S}
"""


class Receipt(msgspec.Struct, frozen=True):
    """What became of a post's rows."""

    accepted: int
    duplicates: int
    rejected: list[Rejection]


@dataclass(frozen=True, slots=True)
class Post:
    """The rows of one request, all of one project, and what its sender wants remembered of it.

    `internal_id` is the project's, as it was when the request began: see `warehouse.hotlog.refusals`.
    """

    project: str
    rows: Sequence[Row]
    rejected: list[Rejection]
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    internal_id: str = ""


_RECEIPT = msgspec.json.Decoder(Receipt)


def create(connection: sqlite3.Connection) -> None:
    """Make the tables where they are missing."""
    connection.executescript(_CREATE)


def leaves_a_trace(post: Post) -> bool:
    """Whether anything of the post must be looked up and remembered."""
    return post.idempotency_key is not None or any(row[EVENT_ID] is not None for row in post.rows)


def remember(connection: sqlite3.Connection, post: Post, rows: list[Row], now_s: int) -> Receipt | IdempotencyMismatch:
    """Add the post's new rows to `rows`, inside the caller's transaction; answers as before if its key came before."""
    if post.idempotency_key is not None:
        seen = connection.execute(
            "SELECT fingerprint, receipt FROM answers WHERE project_id = ? AND key = ? AND seen_s > ?",
            (post.project, post.idempotency_key, now_s - REMEMBERED_S),
        ).fetchone()
        if seen is not None:
            return (
                _RECEIPT.decode(seen[1])
                if seen[0] == post.fingerprint
                else IdempotencyMismatch(
                    "this Idempotency-Key was used for another body; send a new key with a new body"
                )
            )
    new = [row for row in post.rows if row[EVENT_ID] is None or _first_seen(connection, row, now_s)]
    rows += new
    receipt = Receipt(len(new), len(post.rows) - len(new), post.rejected)
    if post.idempotency_key is not None:
        connection.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
            (post.project, post.idempotency_key, post.fingerprint, msgspec.json.encode(receipt), now_s),
        )
    return receipt


def learn(connection: sqlite3.Connection, event_ids: Iterable[tuple[str, str, int]]) -> None:
    """Remember event ids of hits that are in the lake already, each with its project and the second of its hit."""
    rows = [(_key(project, event_id), seen_s) for project, event_id, seen_s in event_ids]
    with transaction(connection):
        connection.executemany("INSERT OR IGNORE INTO event_ids VALUES (?, ?)", rows)


def _first_seen(connection: sqlite3.Connection, row: Row, now_s: int) -> bool:
    return connection.execute(_SEE_EVENT_ID, (_key(str(row[0]), str(row[EVENT_ID])), now_s)).rowcount == 1


def _key(project: str, event_id: str) -> bytes:
    return _of_project(project) + hashlib.blake2b(event_id.encode(), digest_size=16).digest()


@lru_cache(1_000)
def _of_project(project: str) -> bytes:
    """What the keys of all event ids of a project begin with."""
    return hashlib.blake2b(project.encode(), digest_size=8).digest()


def forget(connection: sqlite3.Connection, now_s: float) -> None:
    """Drop the event ids and Idempotency-Keys whose seven days are over."""
    until_s = int(now_s) - REMEMBERED_S
    _delete(connection, "event_ids", "id", "seen_s <= ?", (until_s,))
    _delete(connection, "answers", "(project_id, key)", "seen_s <= ?", (until_s,))


def forget_project(connection: sqlite3.Connection, project: str) -> None:
    """Drop all that is remembered of a project, so that one made anew under its id starts from nothing."""
    first = _of_project(project)
    _delete(connection, "event_ids", "id", "id BETWEEN ? AND ?", (first, first + 17 * b"\xff"))
    _delete(connection, "answers", "(project_id, key)", "project_id = ?", (project,))


def _delete(connection: sqlite3.Connection, table: str, key: str, where: str, values: tuple[object, ...]) -> None:
    """A part at a time: a million rows at once would keep every post waiting for seconds."""
    columns = key.strip("()")
    part = f"DELETE FROM {table} WHERE {key} IN (SELECT {columns} FROM {table} WHERE {where} LIMIT {DELETED_AT_ONCE})"
    while connection.execute(part, values).rowcount == DELETED_AT_ONCE:
        pass
