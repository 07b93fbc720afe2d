"""Detection of repeated events and posts: event ids and Idempotency-Keys of the last seven days, in the hot log.

They are written in the transaction that stores the rows: after a crash either both exist or neither does.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec

from ingest.errors import IdempotencyMismatch
from ingest.hits.body import Rejection
from ingest.hits.hit import DEDUPLICATION_DAYS
from warehouse.database.statements import Statements, Values, has_table
from warehouse.database.transaction import transaction
from warehouse.hotlog.connection import HotConnection
from warehouse.hotlog.schema_migrations import add_tables
from warehouse.schema import Row
from warehouse.tables import EVENTS_TABLE, HITS_TABLE, Spec

DAY_S = 86_400
REMEMBERED_S = DEDUPLICATION_DAYS * DAY_S
"""Time in seconds for which event ids and Idempotency-Keys are remembered."""
DELETED_AT_ONCE = 10_000
"""Number of rows that one statement deletes."""

STATEMENTS = Statements(Path(__file__).with_name("tables.sql"))
"""Statements on the tables of event ids, Idempotency-Keys and new values."""
MANY = 100
"""Number of event ids that the statement ADD_MANY_EVENT_IDS adds."""
TABLES = {"hit": HITS_TABLE, "event": EVENTS_TABLE}
"""Table of the rows of a post, by the name of `body.Kind`."""
EVENT_ID = {spec: spec.hot.names.index("event_id") for spec in (HITS_TABLE, EVENTS_TABLE)}
SOURCE = {spec: spec.hot.names.index("source") for spec in (HITS_TABLE, EVENTS_TABLE)}
"""Indexes of `event_id` and `source` in a `Row` of a table."""


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """Response to a post: the numbers of accepted and of duplicate rows, the rejected rows, and the number of rows with
    a text that was cut."""

    accepted: Annotated[int, msgspec.Meta(description="Hits or events stored.")]
    duplicates: Annotated[int, msgspec.Meta(description="Hits or events whose `eventId` was stored before.")]
    rejected: Annotated[list[Rejection], msgspec.Meta(description="Hits or events that were not stored.")]
    cut: Annotated[
        int,
        msgspec.Meta(description="Hits or events with a text that was cut to its maximum length; absent without any."),
    ] = 0


class Post(msgspec.Struct, frozen=True):
    """Rows of one request, all of one project, with its Idempotency-Key and the fingerprint of its body.

    `earlier_fingerprints` are those that earlier releases would have stored for the same body.
    `internal_id` is the internal id of the project when the request began: see `warehouse.hotlog.refusals`. `cut` is
    the number of rows with a text that was cut. `spec` is the table of the rows.
    """

    project: str
    rows: Sequence[Row]
    rejected: list[Rejection]
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    internal_id: str = ""
    earlier_fingerprints: tuple[bytes, ...] = ()
    cut: int = 0
    spec: Spec = HITS_TABLE


_NAMES = [f"id{number}" for number in range(MANY)]
_BEACON, _ENDS = b"b", {HITS_TABLE: b"", EVENTS_TABLE: b"e"}
"""Ends of the keys of beacons, and of rows of each table. Anybody can send beacons: their event ids must not make a
server's hits duplicates."""
_LAST_TABLE = "new_value_days"
_RECEIPT = msgspec.json.Decoder(Receipt)


def create(connection: HotConnection) -> None:
    """Create the tables unless they exist.

    An earlier release, which lacked the last table, stored one key for the beacon and the server with an event id. Its
    event ids count for both sources until they expire.
    """
    if has_table(connection, "event_ids") and not has_table(connection, _LAST_TABLE):
        with transaction(connection):
            STATEMENTS.run(connection, "COPY_FOR_BEACONS")
    add_tables(connection, STATEMENTS)


def deduplicate(
    connection: HotConnection, post: Post, new_rows: list[Row], now_s: int
) -> Receipt | IdempotencyMismatch:
    """Append the rows of the post that are not duplicates to `new_rows`, and return its receipt.

    The event ids and the key of the post are written in the caller's transaction. If the key was used before, no row is
    appended, and the result is the earlier receipt, or IdempotencyMismatch if the body was different.
    """
    if (earlier := _earlier_answer(connection, post, now_s)) is not None:
        return earlier
    new = _new_rows(connection, post, now_s)
    new_rows += new
    receipt = Receipt(len(new), len(post.rows) - len(new), post.rejected, post.cut)
    if post.idempotency_key is not None:
        values = {
            "project": post.project,
            "key": post.idempotency_key,
            "fingerprint": post.fingerprint,
            "receipt": msgspec.json.encode(receipt),
            "now_s": now_s,
        }
        STATEMENTS.run(connection, "ADD_ANSWER", values)
    return receipt


def add_event_ids(connection: HotConnection, event_ids: Iterable[tuple[str, str, str, str, int]]) -> None:
    """Add event ids of the lake: tuples of kind, project, source, event id and time in seconds since 1970."""
    rows = [
        {"id": _key(project, source, id, _ENDS[TABLES[kind]]), "now_s": seen_s}
        for kind, project, source, id, seen_s in event_ids
    ]
    with transaction(connection):
        STATEMENTS.run_many(connection, "ADD_KNOWN_EVENT_ID", rows)


def _earlier_answer(connection: HotConnection, post: Post, now_s: int) -> Receipt | IdempotencyMismatch | None:
    if post.idempotency_key is None:
        return None
    values = {"project": post.project, "key": post.idempotency_key, "since_s": now_s - REMEMBERED_S}
    answer = STATEMENTS.run(connection, "EARLIER_ANSWER", values).fetchone()
    if answer is None:
        return None
    fingerprint, receipt = answer
    if fingerprint not in (post.fingerprint, *post.earlier_fingerprints):
        return IdempotencyMismatch("this Idempotency-Key was used for another body; send a new key with a new body")
    return _RECEIPT.decode(receipt)


def _new_rows(connection: HotConnection, post: Post, now_s: int) -> list[Row]:
    """Add the event ids of the rows; return the rows without an event id, and the first row of each new event id."""
    id, source, end = EVENT_ID[post.spec], SOURCE[post.spec], _ENDS[post.spec]
    keys = [None if row[id] is None else _key(str(row[0]), str(row[source]), str(row[id]), end) for row in post.rows]
    distinct = {key for key in keys if key is not None}
    if not distinct:
        return [*post.rows]
    new = _add_new(connection, sorted(distinct), now_s)
    chosen = []
    for row, key in zip(post.rows, keys, strict=True):
        if key is None or key in new:
            new.discard(key)
            chosen.append(row)
    return chosen


def _add_new(connection: HotConnection, keys: list[bytes], now_s: int) -> set[bytes | None]:
    """Add distinct event ids in ascending order, and return those that are new or have expired."""
    whole = len(keys) - len(keys) % MANY
    new = _add_many(connection, keys[:whole], now_s) if whole else set()
    rest = keys[whole:]
    values = [{"id": key, "now_s": now_s, "since_s": now_s - REMEMBERED_S} for key in rest]
    for key, changed in zip(rest, STATEMENTS.changes_of_each(connection, "ADD_EVENT_ID", values), strict=True):
        if changed:
            new.add(key)
    return new


def _add_many(connection: HotConnection, keys: list[bytes], now_s: int) -> set[bytes | None]:
    """Add a multiple of MANY event ids, and return the new ones.

    The event ids are looked up before they are added, because a statement that adds several does not return which of
    them are new.
    """
    parts = [
        {**dict(zip(_NAMES, keys[start : start + MANY], strict=True)), "now_s": now_s, "since_s": now_s - REMEMBERED_S}
        for start in range(0, len(keys), MANY)
    ]
    new: set[bytes | None] = set(keys)
    new.difference_update(id for (id,) in STATEMENTS.rows_of_each(connection, "KNOWN_EVENT_IDS", parts))
    added = [part for part in parts if not new.isdisjoint(part.values())]
    STATEMENTS.run_many(connection, "ADD_MANY_EVENT_IDS", added)
    return new


def _key(project: str, source: str, event_id: str, end: bytes = b"") -> bytes:
    digest = hashlib.blake2b(event_id.encode(), digest_size=16).digest()
    return project_prefix(project) + digest + (_BEACON if source == "beacon" else b"") + end


@lru_cache(1_000)
def project_prefix(project: str) -> bytes:
    """Return the prefix of the keys of all event ids and new values of a project."""
    return hashlib.blake2b(project.encode(), digest_size=8).digest()


def delete_expired(connection: HotConnection, now_s: float) -> None:
    """Delete the event ids, Idempotency-Keys and new values that are older than seven days."""
    until_s = int(now_s) - REMEMBERED_S
    _delete(connection, "DELETE_EXPIRED_EVENT_IDS", {"until_s": until_s})
    _delete(connection, "DELETE_EXPIRED_ANSWERS", {"until_s": until_s})
    for name in ("DELETE_UNSEEN_VALUES", "DELETE_OLD_VALUE_DAYS"):
        _delete(connection, name, {"until_day": until_s // DAY_S})


def delete_project(connection: HotConnection, project: str) -> None:
    """Delete all event ids, Idempotency-Keys and new values of a project, because a later one may have the same id."""
    first = project_prefix(project)
    for name in ("DELETE_EVENT_IDS_OF_PROJECT", "DELETE_VALUES_OF_PROJECT"):
        _delete(connection, name, {"first": first, "last": first + 17 * b"\xff"})
    for name in ("DELETE_ANSWERS_OF_PROJECT", "DELETE_VALUE_DAYS_OF_PROJECT"):
        _delete(connection, name, {"project": project})


def _delete(connection: HotConnection, name: str, values: Values) -> None:
    """Delete the rows in parts: to delete a million rows at once would block all posts for seconds."""
    deleted = DELETED_AT_ONCE
    while deleted == DELETED_AT_ONCE:
        with transaction(connection):
            deleted = STATEMENTS.run(connection, name, {**values, "limit": DELETED_AT_ONCE}).rowcount
