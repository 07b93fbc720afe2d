"""The hot log's table of batches: accepted hits that are not in the lake yet.

One SQLite file a node. A batch is the Arrow IPC message of a record batch of schema `HOT`, or names the Parquet files
that its rows were staged in; its id rises by commit order and is never used twice, so that "every batch up to id n"
means the same to every reader.
"""

import math
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
from xxhash import xxh3_64_digest

from warehouse import migrations
from warehouse.errors import BatchDamaged
from warehouse.hotlog import refusals, synced
from warehouse.hotlog.schema_steps import STEPS, Steps, has_table
from warehouse.hotlog.synced import Synced
from warehouse.lake.staging import Staged
from warehouse.schema import HOT
from warehouse.transaction import transaction

BUSY_TIMEOUT_S = 30
EMPTYING_WAIT_S = 1
"""Posts wait as long as a reader is waited for."""
DELETED_BYTES, DELETED_BATCHES = 1024 * 1024, 2_000
"""Size of the parts in which loaded batches are deleted."""
WAL_BYTES_KEPT = 64 * 1024 * 1024
_CREATE = f"""
CREATE TABLE IF NOT EXISTS node (id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rows INTEGER NOT NULL,
    committed_s REAL NOT NULL,
    message BLOB NOT NULL,
    checksum BLOB
);
CREATE INDEX IF NOT EXISTS batches_rows ON batches (rows);
CREATE TABLE IF NOT EXISTS staged (id INTEGER PRIMARY KEY, files BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS recounts (id INTEGER PRIMARY KEY AUTOINCREMENT, date TEXT NOT NULL UNIQUE);
{synced.TABLE};
{refusals.TABLE};
"""
_APPEND = "INSERT INTO batches (rows, committed_s, message, checksum) SELECT ?, ?, ?, ?"
_END_OF_PART = """
SELECT max(id)
FROM (SELECT id, sum(size) OVER (ORDER BY id) - size AS before
      FROM (SELECT id, length(message) AS size FROM batches WHERE id <= ? ORDER BY id LIMIT ?))
WHERE before < ?
"""
STORE = "the hot log"


_NO_ROWS = pa.RecordBatch.from_pylist([], HOT)
_STAGED = msgspec.json.Decoder(Staged)


@dataclass(frozen=True, slots=True)
class Batch:
    """One committed batch: its id, and its rows in schema `HOT`, or the files where they are."""

    id: int
    rows: pa.RecordBatch
    staged: Staged | None = None


def connect(path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S, steps: Steps = STEPS) -> sqlite3.Connection:
    """Open the hot log at the newest schema version, creating it if need be. Each commit waits for the disk.

    `busy_timeout_s` is how long a write waits for the lock of another process once the hot log is open.

    The timeout is set before the journal mode, because turning WAL on takes a lock that another process may hold.

    Raises:
        StoreTooNew: a newer release wrote it; nothing is written.
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, steps)
        connection.execute(f"PRAGMA busy_timeout={int(busy_timeout_s * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_newer(path: Path) -> None:
    """Raise StoreTooNew if a newer release wrote the hot log. Creates and changes nothing."""
    if path.exists():
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
            migrations.pending(STORE, _version(connection) or migrations.FIRST, STEPS)


def _prepare(connection: sqlite3.Connection, steps: Steps) -> None:
    version = _version(connection)
    is_current = not migrations.pending(STORE, version or migrations.FIRST, steps)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES_KEPT}")
    connection.execute("PRAGMA secure_delete=ON")  # what is erased leaves the file, however SQLite was compiled
    if version == 0 or not is_current:
        with transaction(connection):
            _bring_up_to_date(connection, steps)


def _bring_up_to_date(connection: sqlite3.Connection, steps: Steps) -> None:
    """Run the steps that are missing, or create the tables, inside the transaction that records the version."""
    if has_table(connection, "node"):
        for step in migrations.pending(STORE, _version(connection) or migrations.FIRST, steps):
            step.apply(connection)
    else:
        for statement in _CREATE.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO node VALUES (?)", (uuid.uuid4().hex,))
    connection.execute(f"PRAGMA user_version={migrations.newest(steps)}")


def _version(connection: sqlite3.Connection) -> int:
    """Return the schema version; 0 for a file without tables, or whose tables 0.1.0 created."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def node_id(connection: sqlite3.Connection) -> str:
    """The name under which this hot log's offsets stand in the lake. A new file has a new one."""
    return str(connection.execute("SELECT id FROM node").fetchone()[0])


def append(connection: sqlite3.Connection, rows: pa.RecordBatch, now_s: float) -> None:
    """Add one batch inside the caller's transaction; it is stored when that commits. `now_s` is seconds since 1970."""
    connection.execute(_APPEND, _values(rows, now_s))


def append_if_none_refused(
    connection: sqlite3.Connection, rows: pa.RecordBatch, now_s: float, last_refusal: int
) -> bool:
    """Add one batch as `append` does, unless `refusals` has one above `last_refusal`; return whether it was added.

    One statement, because a second one would cost each post a commit's lock and unlock.
    """
    unless = f"{_APPEND} WHERE NOT EXISTS (SELECT 1 FROM refusals WHERE id > ?)"
    return connection.execute(unless, (*_values(rows, now_s), last_refusal)).rowcount == 1


def _values(rows: pa.RecordBatch, now_s: float) -> tuple[int, float, bytes, bytes]:
    message = rows.serialize().to_pybytes()
    return rows.num_rows, now_s, message, xxh3_64_digest(message)


def append_staged(connection: sqlite3.Connection, staged: Staged, now_s: float) -> None:
    """The same for rows that are in files, which must be on the disk. They are no part of the backlog."""
    files = msgspec.json.encode(staged)
    added = connection.execute(
        "INSERT INTO batches (rows, committed_s, message, checksum) VALUES (0, ?, x'', ?)",
        (now_s, xxh3_64_digest(files)),
    )
    connection.execute("INSERT INTO staged VALUES (?, ?)", (added.lastrowid, files))


def above(connection: sqlite3.Connection, offset: int) -> Iterator[Batch]:
    """Yield the batches with an id above `offset`, in order.

    Raises:
        BatchDamaged: the content of a batch does not have its checksum.
    """
    for id, message, files, checksum in connection.execute(
        "SELECT id, message, files, checksum FROM batches LEFT JOIN staged USING (id) WHERE id > ? ORDER BY id",
        (offset,),
    ):
        _check(connection, id, message if files is None else files, checksum)
        yield Batch(id, decoded(message)) if files is None else Batch(id, _NO_ROWS, _STAGED.decode(files))


def _check(connection: sqlite3.Connection, id: int, content: bytes, checksum: bytes | None) -> None:
    """Raise BatchDamaged if `content` does not have its checksum. Batches of Readership 0.1.0 have none."""
    if checksum is not None and xxh3_64_digest(content) != checksum:
        _, _, file = connection.execute("PRAGMA database_list").fetchone()
        raise BatchDamaged(
            f"batch {id} in {file} is damaged: its content does not have its checksum. Nothing was deleted; "
            "restore the data folder from a backup"
        )


def find_damaged(connection: sqlite3.Connection) -> str | None:
    """Return the error of the first batch whose content does not have its checksum; None if all have theirs."""
    every = "SELECT id, coalesce(files, message), checksum FROM batches LEFT JOIN staged USING (id) ORDER BY id"
    try:
        for id, content, checksum in connection.execute(every):
            _check(connection, id, content, checksum)
    except BatchDamaged as error:
        return str(error)
    return None


def decoded(message: bytes) -> pa.RecordBatch:
    """The rows of a batch's message. Raises OSError, EOFError or ValueError (Arrow's) if it is not whole."""
    return pa.ipc.read_record_batch(pa.py_buffer(message), HOT)


def last_id(connection: sqlite3.Connection) -> int:
    """The highest id ever given, also when that batch is deleted; 0 before the first."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'batches'").fetchone()
    return int(row[0]) if row else 0


def continue_above(connection: sqlite3.Connection, id: int) -> None:
    """Give later batches ids above `id`, inside the caller's transaction. Ids never go back."""
    if connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'batches'", (id,)).rowcount == 0:
        connection.execute("INSERT INTO sqlite_sequence VALUES ('batches', ?)", (id,))


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits to be loaded: hits, and when the oldest batch was committed (seconds since 1970; None if none)."""

    rows: int
    oldest_s: float | None

    def age_s(self, now_s: float) -> float:
        """Seconds the oldest has waited; endless if the clock was set back since, so that it is loaded now."""
        if self.oldest_s is None:
            return 0.0
        return now_s - self.oldest_s if now_s >= self.oldest_s else math.inf


def backlog(connection: sqlite3.Connection) -> Backlog:
    """Cheap enough to ask every second: the sum runs over an index, without the messages."""
    rows = connection.execute("SELECT coalesce(sum(rows), 0) FROM batches").fetchone()[0]
    oldest = connection.execute("SELECT committed_s FROM batches ORDER BY id LIMIT 1").fetchone()
    return Backlog(int(rows), float(oldest[0]) if oldest else None)


def delete_through(connection: sqlite3.Connection, offset: int, tables: Mapping[str, Synced]) -> None:
    """Remove the batches up to `offset`, which every table has, in parts of about DELETED_BYTES.

    Before the first part, record how far the tables are synced.

    `secure_delete` writes each deleted page into the WAL. One transaction would grow the WAL by the size of the
    backlog, and posts would wait for it. Between the parts SQLite checkpoints the WAL and uses its space again.
    """
    while (last := _end_of_part(connection, offset)) is not None:
        with transaction(connection):
            synced.record(connection, tables)
            connection.execute("DELETE FROM batches WHERE id <= ?", (last,))
            connection.execute("DELETE FROM staged WHERE id <= ?", (last,))
    with transaction(connection):  # where there was no batch to delete; else this writes nothing
        synced.record(connection, tables)


def _end_of_part(connection: sqlite3.Connection, offset: int) -> int | None:
    """Return the last batch id of the next part to delete; None if no batch is left."""
    row = connection.execute(_END_OF_PART, (offset, DELETED_BATCHES, DELETED_BYTES)).fetchone()
    return None if row[0] is None else int(row[0])


def deleted_through(connection: sqlite3.Connection) -> int:
    """Return the last batch that was deleted because every table has it; 0 if none was. Ids have no gaps."""
    first = connection.execute("SELECT min(id) FROM batches").fetchone()[0]
    return (last_id(connection) + 1 if first is None else int(first)) - 1


def empty_wal(connection: sqlite3.Connection) -> None:
    """Take from the disk what was deleted, not only from the file: the WAL has pages as they were until it is reused.

    A reader that is in its way for EMPTYING_WAIT_S keeps it as it is: the next upkeep tries again.
    """
    with _busy_timeout(connection, EMPTYING_WAIT_S):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def try_write(connection: sqlite3.Connection) -> None:
    """Commit one page that changes nothing. Raises sqlite3.OperationalError at once if another process has the lock."""
    with _busy_timeout(connection, 0):
        connection.execute("UPDATE node SET id = id")


@contextmanager
def _busy_timeout(connection: sqlite3.Connection, wait_s: int) -> Iterator[None]:
    """Let the block wait for locks no longer than `wait_s` seconds."""
    (usual_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout={wait_s * 1000}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout={usual_ms}")
