"""The hot log's table of batches: accepted hits that are not in the lake yet.

One SQLite file a node. A batch is the Arrow IPC message of a record batch of schema `HOT`, or names the Parquet files
that its rows were staged in; its id rises by commit order and is never used twice, so that "every batch up to id n"
means the same to every reader.
"""

import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
from xxhash import xxh3_64_digest

from warehouse.errors import BatchDamaged
from warehouse.hotlog import schema_steps, synced
from warehouse.hotlog.schema_steps import STEPS, Steps
from warehouse.hotlog.synced import Synced
from warehouse.lake.staging import Staged
from warehouse.schema import HOT
from warehouse.transaction import BUSY_TIMEOUT_S, transaction

DELETED_BYTES, DELETED_BATCHES = 1024 * 1024, 2_000
"""Size of the parts in which loaded batches are deleted."""
WAL_BYTES_MAX = 64 * 1024 * 1024
_APPEND = "INSERT INTO batches (rows, committed_s, message, checksum) SELECT ?, ?, ?, ?"
_END_OF_PART = """
SELECT max(id)
FROM (SELECT id, sum(size) OVER (ORDER BY id) - size AS before
      FROM (SELECT id, length(message) AS size FROM batches WHERE id <= ? ORDER BY id LIMIT ?))
WHERE before < ?
"""
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
        schema_steps.pending(connection, steps)
        _set_pragmas(connection)
        schema_steps.upgrade(connection, steps)
        connection.execute(f"PRAGMA busy_timeout={int(busy_timeout_s * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _set_pragmas(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES_MAX}")
    connection.execute("PRAGMA secure_delete=ON")  # what is erased leaves the file, however SQLite was compiled


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
        yield Batch(id, decode(message)) if files is None else Batch(id, _NO_ROWS, _STAGED.decode(files))


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


def decode(message: bytes) -> pa.RecordBatch:
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
