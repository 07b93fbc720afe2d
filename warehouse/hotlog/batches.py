"""Batches of the hot log: accepted hits that wait for the lake, and hits that were loaded in the last ten minutes.

Each node has one SQLite file. A batch is the Arrow IPC message of a record batch of schema `HOT`, or a list of staged
Parquet files. Batch ids rise in commit order and are never reused, so "all batches up to id n" is the same set for
every reader.
"""

import math
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
from xxhash import xxh3_64_digest

from warehouse.errors import BatchDamaged
from warehouse.hotlog import loads, schema_steps
from warehouse.hotlog.schema_steps import STEPS, Steps
from warehouse.lake.staging import Staged
from warehouse.schema import HOT
from warehouse.transaction import BUSY_TIMEOUT_S, transaction

DELETED_BYTES, DELETED_BATCHES = 1024 * 1024, 2_000
"""Approximate size, in bytes, and maximum number of the batches that one transaction deletes."""
ID_MAX = 2**63 - 1
"""Highest possible batch id."""
WAL_BYTES_MAX = 64 * 1024 * 1024
"""Size in bytes to which SQLite truncates the WAL after a checkpoint."""
FIRST_COLUMNS = 21
"""Number of columns of a batch without a recorded number: those of `HOT` in the first releases."""
_APPEND = f"INSERT INTO batches (rows, committed_s, message, checksum, columns) SELECT ?, ?, ?, ?, {len(HOT)}"
_END_OF_PART = """
SELECT max(id)
FROM (SELECT id, sum(size) OVER (ORDER BY id) - size AS before
      FROM (SELECT id, length(message) AS size FROM batches WHERE id <= ? ORDER BY id LIMIT ?))
WHERE before < ?
"""
_CONTENTS = "SELECT id, message, columns, files, checksum FROM batches LEFT JOIN staged USING (id)"
_LOADED = "SELECT coalesce(max(through_id), 0) FROM loads"
_NO_ROWS = pa.RecordBatch.from_pylist([], HOT)
_STAGED = msgspec.json.Decoder(Staged)


@dataclass(frozen=True, slots=True)
class Batch:
    """A committed batch: its rows in schema `HOT`, or no rows and the staged files that contain the rows."""

    id: int
    rows: pa.RecordBatch
    staged: Staged | None = None


def connect(path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S, steps: Steps = STEPS) -> sqlite3.Connection:
    """Open the hot log, create it if it is missing, and upgrade it to the newest schema version.

    Each commit is synced. `busy_timeout_s` limits how long a write waits for the lock of another process, in seconds.
    While the hot log is opened, the limit is BUSY_TIMEOUT_S: switching to WAL takes a lock.

    Raises:
        StoreTooNew: a newer release wrote the hot log; nothing is changed.
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
    connection.execute("PRAGMA secure_delete=ON")  # deleted rows are overwritten; the default depends on the build


def node_id(connection: sqlite3.Connection) -> str:
    """Return the node id, under which the lake records the offsets of this hot log. Each new file gets its own id."""
    return str(connection.execute("SELECT id FROM node").fetchone()[0])


def append(connection: sqlite3.Connection, rows: pa.RecordBatch, now_s: float) -> None:
    """Add one batch inside the caller's transaction. `now_s` is in seconds since 1970."""
    connection.execute(_APPEND, _values(rows, now_s))


def append_if_none_refused(
    connection: sqlite3.Connection, rows: pa.RecordBatch, now_s: float, last_refusal: int
) -> bool:
    """Add one batch, unless `refusals` has an id above `last_refusal`; return whether it was added.

    The check and the insert are one statement, because two statements would lock and unlock the file twice per post.
    """
    unless = f"{_APPEND} WHERE NOT EXISTS (SELECT 1 FROM refusals WHERE id > ?)"
    return connection.execute(unless, (*_values(rows, now_s), last_refusal)).rowcount == 1


def _values(rows: pa.RecordBatch, now_s: float) -> tuple[int, float, bytes, bytes]:
    message = rows.serialize().to_pybytes()
    return rows.num_rows, now_s, message, xxh3_64_digest(message)


def append_staged(connection: sqlite3.Connection, staged: Staged, now_s: float) -> None:
    """Add a batch of staged files, which must be synced, inside the caller's transaction. It counts as 0 rows."""
    files = msgspec.json.encode(staged)
    added = connection.execute(
        "INSERT INTO batches (rows, committed_s, message, checksum) VALUES (0, ?, x'', ?)",
        (now_s, xxh3_64_digest(files)),
    )
    connection.execute("INSERT INTO staged VALUES (?, ?)", (added.lastrowid, files))


def above(connection: sqlite3.Connection, offset: int, last_id: int = ID_MAX) -> Iterator[Batch]:
    """Yield the batches with an id above `offset` and up to `last_id`, in order.

    Raises:
        BatchDamaged: the content of a batch does not match its checksum.
    """
    for row in connection.execute(f"{_CONTENTS} WHERE id > ? AND id <= ? ORDER BY id", (offset, last_id)):
        yield _checked(connection, *row)


def waiting(connection: sqlite3.Connection, offset: int = 0) -> Iterator[Batch]:
    """Yield the batches above `offset` that wait to be loaded, in order. Reads in one statement.

    Raises:
        BatchDamaged: see `above`.
    """
    rows = connection.execute(f"{_CONTENTS} WHERE id > max(?, ({_LOADED})) ORDER BY id", (offset,))
    return (_checked(connection, *row) for row in rows)


def staged_above(connection: sqlite3.Connection, offset: int) -> Iterator[tuple[int, Staged]]:
    """Yield the ids and the staged files of the batches above `offset`, in order. Batches of rows are left out."""
    for id, files in connection.execute("SELECT id, files FROM staged WHERE id > ? ORDER BY id", (offset,)):
        yield id, _STAGED.decode(files)


def _checked(
    connection: sqlite3.Connection,
    id: int,
    message: bytes,
    columns: int | None,
    files: bytes | None,
    checksum: bytes | None,
) -> Batch:
    _check(connection, id, message if files is None else files, checksum)
    return Batch(id, decode(message, columns)) if files is None else Batch(id, _NO_ROWS, _STAGED.decode(files))


def _check(connection: sqlite3.Connection, id: int, content: bytes, checksum: bytes | None) -> None:
    """Raise BatchDamaged if `content` does not match its checksum. Batches of Readership 0.1.0 have no checksum."""
    if checksum is not None and xxh3_64_digest(content) != checksum:
        _, _, file = connection.execute("PRAGMA database_list").fetchone()
        raise BatchDamaged(
            f"batch {id} in {file} is damaged: its content does not match its checksum. Nothing was deleted; "
            "restore the data folder from a backup"
        )


def find_damaged(connection: sqlite3.Connection) -> str | None:
    """Return the error of the first waiting batch whose content does not match its checksum; None if all match."""
    try:
        for id, message, _, files, checksum in connection.execute(f"{_CONTENTS} WHERE id > ({_LOADED}) ORDER BY id"):
            _check(connection, id, message if files is None else files, checksum)
    except BatchDamaged as error:
        return str(error)
    return None


def decode(message: bytes, columns: int | None) -> pa.RecordBatch:
    """Return the rows of a batch's message, with null in the columns that an older release did not have.

    `columns` is the number of columns of the message; None for FIRST_COLUMNS. Raises OSError, EOFError or ValueError
    (Arrow's) for a damaged message.
    """
    if columns == len(HOT):
        return pa.ipc.read_record_batch(pa.py_buffer(message), HOT)
    schema = pa.schema([HOT.field(index) for index in range(columns or FIRST_COLUMNS)])
    rows = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
    later = [pa.nulls(rows.num_rows, HOT.field(index).type) for index in range(len(schema), len(HOT))]
    return pa.RecordBatch.from_arrays([*rows.columns, *later], schema=HOT)


def last_id(connection: sqlite3.Connection) -> int:
    """Return the highest batch id ever used, even if that batch is deleted; 0 before the first batch."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'batches'").fetchone()
    return int(row[0]) if row else 0


def continue_above(connection: sqlite3.Connection, id: int) -> None:
    """Raise the highest used batch id to `id`, inside the caller's transaction. A lower `id` changes nothing."""
    if connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'batches'", (id,)).rowcount == 0:
        connection.execute("INSERT INTO sqlite_sequence VALUES ('batches', ?)", (id,))


@dataclass(frozen=True, slots=True)
class Backlog:
    """Hits that wait to be loaded, and the commit time of the oldest batch (seconds since 1970; None if empty)."""

    rows: int
    oldest_s: float | None

    def age_s(self, now_s: float) -> float:
        """Return the age of the oldest batch in seconds; infinite if the clock was set back, to have it loaded now."""
        if self.oldest_s is None:
            return 0.0
        return now_s - self.oldest_s if now_s >= self.oldest_s else math.inf


def backlog(connection: sqlite3.Connection) -> Backlog:
    """Return the backlog. The sum reads an index without the messages, and is cheap enough to run once a second."""
    loaded = loads.loaded_through(connection)
    rows = connection.execute("SELECT coalesce(sum(rows), 0) FROM batches WHERE id > ?", (loaded,)).fetchone()[0]
    oldest = connection.execute(
        "SELECT committed_s FROM batches WHERE id > ? ORDER BY id LIMIT 1", (loaded,)
    ).fetchone()
    return Backlog(int(rows), float(oldest[0]) if oldest else None)


def waiting_bytes(connection: sqlite3.Connection) -> int:
    """Return the size of the messages of all waiting batches, in bytes."""
    sql = f"SELECT coalesce(sum(length(message)), 0) FROM batches WHERE id > ({_LOADED})"
    return int(connection.execute(sql).fetchone()[0])


def delete_through(connection: sqlite3.Connection, id: int) -> None:
    """Delete the batches up to `id`, which all tables have.

    Each transaction deletes about DELETED_BYTES. `secure_delete` writes each deleted page into the WAL, so one large
    transaction would grow the WAL by the size of the batches, and posts would wait for it. Between two transactions
    SQLite checkpoints the WAL and reuses its space.
    """
    while (last := _end_of_part(connection, id)) is not None:
        with transaction(connection):
            connection.execute("DELETE FROM batches WHERE id <= ?", (last,))
            connection.execute("DELETE FROM staged WHERE id <= ?", (last,))


def _end_of_part(connection: sqlite3.Connection, id: int) -> int | None:
    """Return the last batch id that the next transaction deletes; None if no batch is left."""
    row = connection.execute(_END_OF_PART, (id, DELETED_BATCHES, DELETED_BYTES)).fetchone()
    return None if row[0] is None else int(row[0])


def deleted_through(connection: sqlite3.Connection) -> int:
    """Return the id of the last deleted batch, which all tables have; 0 before the first deletion."""
    # Ids have no gaps, so the batch before the first one in the table is the last deleted one.
    first = connection.execute("SELECT min(id) FROM batches").fetchone()[0]
    return (last_id(connection) + 1 if first is None else int(first)) - 1
