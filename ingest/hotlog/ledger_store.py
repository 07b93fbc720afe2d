"""Rows of the ledger of imported logs: their creation, the key of their digests, and the deletion of old logs.

`ingest.imports.ledger` looks logs up in them. `hits` has all of a log line but its address: an attacker could try all
addresses against an unkeyed digest of the line. Stored digests are therefore keyed with the secret of the store.
The key is applied to digests and not to lines, so that unkeyed digests of older releases can be keyed, too.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path

from warehouse.database.postgresql import Cursor, PostgresqlConnection
from warehouse.database.statements import Statements, Values, has_table
from warehouse.database.transaction import transaction
from warehouse.hotlog import wal
from warehouse.hotlog.connection import HotConnection
from warehouse.hotlog.schema_migrations import UNKEYED_LOGS, add_tables

CHECKPOINT = struct.Struct("<Q8s")
"""Format of a checkpoint: see `ingest.imports.fingerprint`."""
_PERSON = b"ledger of logs"
STATEMENTS = Statements(Path(__file__).with_suffix(".sql"))
"""Statements on the table of the ledger."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Ledger of a project. `secret` keys its digests: see `warehouse.control.store_secret`."""

    connection: HotConnection
    project: str
    secret: bytes

    def run(self, name: str, values: Values = {}) -> Cursor:  # noqa: B006  # never changed
        """Run a statement on the rows of the project."""
        return STATEMENTS.run(self.connection, name, {"project": self.project, **values})


def create(connection: HotConnection) -> None:
    add_tables(connection, STATEMENTS)


def prepare(connection: HotConnection, secret: bytes, now: Callable[[], float]) -> None:
    """Create the table, and key the rows of an older release. `now` returns seconds since 1970."""
    create(connection)
    if has_table(connection, UNKEYED_LOGS):
        _key_older(connection, secret, now())


def _key_older(connection: HotConnection, secret: bytes, now_s: float) -> None:
    """Key the digests of an older release, so that its logs are still recognised, and delete the unkeyed ones.

    SQLite overwrites the pages of a deleted table, because `secure_delete` is on.
    """
    with transaction(connection):
        if not has_table(connection, UNKEYED_LOGS):  # another process has keyed the digests
            return
        for id, project, parent, first, size, digest, marks, is_cut in STATEMENTS.run(connection, "UNKEYED"):
            values = {"id": id, "project": project, "parent": parent, "bytes": size, "is_cut": is_cut}
            keyed = keyed_columns(first, digest, marks, secret)
            STATEMENTS.run(connection, "ADD_KEYED", {**values, **keyed, "read_s": int(now_s)})
        STATEMENTS.run_script(connection, "END_KEYING")
    wal.empty(connection)


def foreign_until_s(ledger: Ledger) -> int:
    """Return the time until which logs of the project were read with another secret, in seconds since 1970; 0 for none.

    These logs are not recognised, until the control database with that secret is restored.
    """
    (until_s,) = ledger.run("FOREIGN_UNTIL", {"key_check": _key_check(ledger.secret)}).fetchone()
    return int(until_s) + 1 if until_s else 0


def delete_before(connection: HotConnection, first_retained: date) -> None:
    """Delete the logs that were last read before a day, as the retention deletes their lines, which are older.

    A log stays whole while one of its chunks was read since: its first chunk identifies it.
    """
    values = {"until_s": int(datetime.combine(first_retained, time(), UTC).timestamp())}
    with transaction(connection):
        STATEMENTS.run(connection, "DELETE_BEFORE", values)


@contextmanager
def temporary(connection: HotConnection) -> Iterator[None]:
    """Shadow the table with a temporary copy, to which a dry run writes."""
    with connection.pinned() if isinstance(connection, PostgresqlConnection) else nullcontext():
        STATEMENTS.run_script(connection, "BEGIN_TEMPORARY")
        try:
            yield
        finally:
            STATEMENTS.run_script(connection, "END_TEMPORARY")


def keyed(digest: bytes, secret: bytes) -> bytes:
    """Return a digest as the ledger stores it. The empty digest of a missing line stays empty."""
    return hashlib.blake2b(digest, digest_size=len(digest), key=secret, person=_PERSON).digest() if digest else b""


def keyed_checkpoints(checkpoints: bytes, secret: bytes) -> bytes:
    each = CHECKPOINT.iter_unpack(checkpoints)
    return b"".join(CHECKPOINT.pack(offset, keyed(digest, secret)) for offset, digest in each)


def keyed_columns(first: bytes, digest: bytes, checkpoints: bytes, secret: bytes) -> dict[str, bytes]:
    """Return the columns of a row that depend on the secret."""
    return {
        "first": keyed(first, secret),
        "digest": keyed(digest, secret),
        "marks": keyed_checkpoints(checkpoints, secret),
        "key_check": _key_check(secret),
    }


def _key_check(secret: bytes) -> bytes:
    return keyed(b"the key of the row", secret)


def delete_project(connection: HotConnection, project: str) -> None:
    """Delete the ledger of a project, so that a new project with its id can import the same logs."""
    STATEMENTS.run(connection, "DELETE_OF_PROJECT", {"project": project})
