"""Batches of the hot log: accepted hits that wait for the lake, and hits that were loaded in the last ten minutes.

Each machine has one SQLite file, or several machines share a PostgreSQL database. A batch is the Arrow IPC message of a
record batch of one table, with the columns `Spec.hot`, or a list of staged Parquet files. Batch ids rise in commit
order and are never reused, so "all batches up to id n" is the same set for every reader.
"""

import math
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
from xxhash import xxh3_64_digest

from warehouse.database.transaction import BUSY_TIMEOUT_S, transaction
from warehouse.errors import BatchDamaged
from warehouse.folder import refuse_moved
from warehouse.hotlog import loads, postgresql, schema_migrations
from warehouse.hotlog.connection import STATEMENTS, HotConnection, HotLogPlace, Server, name_of
from warehouse.hotlog.schema_migrations import MIGRATIONS, Migrations
from warehouse.lake.staging import Staged, StagedFile
from warehouse.tables import HITS_TABLE, TABLES, Spec

DELETED_BYTES, DELETED_BATCHES = 1024 * 1024, 2_000
"""Approximate size, in bytes, and maximum number of the batches that one transaction deletes."""
ID_MAX = 2**63 - 1
"""Highest possible batch id."""
AHEAD_MAX_S = 60.0
"""Time by which the clock of another node may be ahead of this one's, in seconds."""
WAL_BYTES_MAX = 64 * 1024 * 1024
"""Size in bytes to which SQLite truncates the WAL after a checkpoint."""
FIRST_COLUMNS = 21
"""Number of columns of a batch without a recorded number: those of `hits` in the first releases."""
_NO_ROWS = pa.RecordBatch.from_pylist([], HITS_TABLE.hot)
_STAGED = msgspec.json.Decoder(dict[str, tuple[StagedFile, ...]])
_TABLES = {spec.name: spec for spec in TABLES}


@dataclass(frozen=True, slots=True)
class Batch:
    """A committed batch: its rows and their table, or no rows and the staged files that contain the rows."""

    id: int
    rows: pa.RecordBatch
    spec: Spec = HITS_TABLE
    staged: Staged | None = None


def connect(place: HotLogPlace, busy_timeout_s: float = BUSY_TIMEOUT_S) -> HotConnection:
    """Open the hot log, create it if it is missing, and upgrade it to the newest schema version.

    Each commit is synced. `busy_timeout_s` limits how long a write waits for the lock of another process, in seconds.

    Raises:
        StoreTooNew: a newer release wrote the hot log; nothing is changed.
        ServerError: the server of the hot log does not answer.
        DataMoved: the hot log of the folder was moved to a database.
    """
    if isinstance(place, Server):
        return postgresql.connect(place, busy_timeout_s)
    connection = connect_file(place, busy_timeout_s)
    try:  # after the file was opened, which waits for the end of a move
        refuse_moved(place.parent, has_database=False, has_lake=True)
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_newer(place: HotLogPlace) -> None:
    """Raise StoreTooNew if a newer release wrote the hot log. Creates and changes nothing."""
    if isinstance(place, Server) or place.exists():
        open_only(place).close()


def open_only(place: HotLogPlace) -> HotConnection:
    """Open an existing hot log, of any older release, and create and change nothing. Raises StoreTooNew."""
    if isinstance(place, Server):
        return postgresql.connect(place, create=False)
    connection = sqlite3.connect(place, timeout=BUSY_TIMEOUT_S)
    try:
        schema_migrations.pending(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_file(
    path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S, known: Migrations = MIGRATIONS
) -> sqlite3.Connection:
    """Open a SQLite file as `connect` does.

    While it is opened, the limit of waiting is BUSY_TIMEOUT_S: switching to WAL takes a lock.
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        schema_migrations.pending(connection, known)
        _set_pragmas(connection)
        schema_migrations.upgrade(connection, known)
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


def node_id(connection: HotConnection) -> str:
    """Return the node id, under which the lake records the offsets of this hot log. Each new hot log gets an id."""
    return str(STATEMENTS.run(connection, "NODE_ID").fetchone()[0])


def append(connection: HotConnection, rows: pa.RecordBatch, now_s: float, spec: Spec = HITS_TABLE) -> None:
    """Add one batch of a table inside the caller's transaction. `now_s` is in seconds since 1970."""
    STATEMENTS.run(connection, "APPEND", _values(rows.num_rows, rows.serialize().to_pybytes(), now_s, spec))


def append_if_none_refused(
    connection: HotConnection, rows: pa.RecordBatch, now_s: float, last_refusal: int, spec: Spec = HITS_TABLE
) -> int:
    """Add one batch, and return its size in bytes; 0 if nothing was added, because `refusals` has an id above
    `last_refusal`.

    The check and the insert are one statement, because two statements would lock and unlock the file twice per post.
    """
    message = rows.serialize().to_pybytes()
    values = _values(rows.num_rows, message, now_s, spec) | {"last_refusal": last_refusal}
    return len(message) * STATEMENTS.run_alone(connection, "APPEND_IF_NONE_REFUSED", values).rowcount


def _values(rows: int, message: bytes, now_s: float, spec: Spec = HITS_TABLE) -> dict[str, object]:
    return {
        "rows": rows,
        "now_s": now_s,
        "message": message,
        "checksum": xxh3_64_digest(message),
        "columns": len(spec.hot),
        "kind": None if spec is HITS_TABLE else spec.name,
        "bytes": len(message),
    }


def append_staged(connection: HotConnection, staged: Staged, now_s: float) -> None:
    """Add a batch of staged files, which must be synced, inside the caller's transaction. It counts as 0 rows."""
    files = msgspec.json.encode(staged.tables)
    values = {**_values(0, b"", now_s), "checksum": xxh3_64_digest(files), "columns": None}
    ((id,),) = STATEMENTS.run(connection, "APPEND_RETURNING_ID", values).fetchall()
    STATEMENTS.run(connection, "ADD_STAGED", {"id": id, "files": files})


def above(connection: HotConnection, offset: int, last_id: int = ID_MAX) -> Iterator[Batch]:
    """Yield the batches with an id above `offset` and up to `last_id`, in order. Raises BatchDamaged."""
    for row in STATEMENTS.stream(connection, "BETWEEN", {"offset": offset, "last_id": last_id}):
        yield _checked(connection, *row)


def waiting(connection: HotConnection, offset: int = 0) -> Iterator[Batch]:
    """Yield the batches above `offset` that wait to be loaded, in order, from one statement. Raises BatchDamaged."""
    return (_checked(connection, *row) for row in STATEMENTS.stream(connection, "WAITING", {"offset": offset}))


def staged_above(connection: HotConnection, offset: int) -> Iterator[tuple[int, Staged]]:
    """Yield the ids and the staged files of the batches above `offset`, in order. Batches of rows are left out."""
    for id, files in STATEMENTS.run(connection, "STAGED_ABOVE", {"offset": offset}):
        yield id, Staged(_STAGED.decode(files))


def _checked(
    connection: HotConnection,
    id: int,
    message: bytes,
    columns: int | None,
    kind: str | None,
    files: bytes | None,
    checksum: bytes | None,
) -> Batch:
    _check(connection, id, message if files is None else files, checksum)
    if files is not None:
        return Batch(id, _NO_ROWS, staged=Staged(_STAGED.decode(files)))
    return Batch(id, decode(message, columns, kind), _TABLES[kind or HITS_TABLE.name])


def _check(connection: HotConnection, id: int, content: bytes, checksum: bytes | None) -> None:
    """Raise BatchDamaged if `content` does not match its checksum. Batches of Readership 0.1.0 have no checksum."""
    if checksum is not None and xxh3_64_digest(content) != checksum:
        reason = "its content does not match its checksum. Nothing was deleted; restore the data folder from a backup"
        raise BatchDamaged(f"batch {id} in {name_of(connection)} is damaged: {reason}")


def find_damaged(connection: HotConnection) -> str | None:
    """Return the error of the first waiting batch whose content does not match its checksum; None if all match."""
    try:
        for id, message, _, _, files, checksum in STATEMENTS.stream(connection, "WAITING", {"offset": 0}):
            _check(connection, id, message if files is None else files, checksum)
    except BatchDamaged as error:
        return str(error)
    return None


def decode(message: bytes, columns: int | None, kind: str | None) -> pa.RecordBatch:
    """Return the rows of a batch's message, with null in the columns that an older release did not have.

    `columns` is their number in the message; None for FIRST_COLUMNS. `kind` is the name of the table; None for `hits`.
    Raises OSError, EOFError or ValueError (Arrow's) for a damaged message.
    """
    hot = _TABLES[kind or HITS_TABLE.name].hot
    if columns == len(hot):
        return pa.ipc.read_record_batch(pa.py_buffer(message), hot)
    fields, count = [*hot], columns or FIRST_COLUMNS
    rows = pa.ipc.read_record_batch(pa.py_buffer(message), pa.schema(fields[:count]))
    later = [pa.nulls(rows.num_rows, field.type) for field in fields[count:]]
    return pa.RecordBatch.from_arrays([*rows.columns, *later], schema=hot)


def last_id(connection: HotConnection) -> int:
    """Return the highest batch id ever used, even if that batch is deleted; 0 before the first batch."""
    row = STATEMENTS.run(connection, "LAST_ID").fetchone()
    return int(row[0]) if row else 0


def continue_above(connection: HotConnection, id: int) -> None:
    """Raise the highest used batch id to `id`, inside the caller's transaction. A lower `id` changes nothing."""
    STATEMENTS.run(connection, "ADD_LAST_ID", {"id": id})
    STATEMENTS.run(connection, "RAISE_LAST_ID", {"id": id})


@dataclass(frozen=True, slots=True)
class Backlog:
    """Hits that wait to be loaded, their bytes, and the commit time of the oldest batch (seconds since 1970; None if
    empty)."""

    rows: int
    bytes: int
    oldest_s: float | None

    def age_s(self, now_s: float) -> float:
        """Return the age of the oldest batch in seconds; infinite if the clock was set back, to have it loaded now.

        A batch of a node whose clock is ahead of this one's is new.
        """
        age_s = 0.0 if self.oldest_s is None else now_s - self.oldest_s
        return max(age_s, 0.0) if age_s >= -AHEAD_MAX_S else math.inf


def backlog(connection: HotConnection) -> Backlog:
    """Return the backlog. The sum reads an index without the messages, and is cheap enough to run once a second."""
    loaded = loads.loaded_through(connection)
    rows, size = STATEMENTS.run(connection, "COUNT_WAITING", {"loaded": loaded}).fetchone()
    oldest = STATEMENTS.run(connection, "OLDEST_WAITING", {"loaded": loaded}).fetchone()
    return Backlog(int(rows), int(size), float(oldest[0]) if oldest else None)


def delete_through(connection: HotConnection, id: int) -> None:
    """Delete the batches up to `id`, which all tables have.

    Each transaction deletes about DELETED_BYTES. `secure_delete` writes each deleted page into the WAL, so one large
    transaction would grow the WAL by the size of the batches, and posts would wait for it. Between two transactions
    SQLite checkpoints the WAL and reuses its space.
    """
    values = {"through": id, "batches_max": DELETED_BATCHES, "bytes_max": DELETED_BYTES}
    while (last := STATEMENTS.run(connection, "END_OF_PART", values).fetchone()[0]) is not None:
        with transaction(connection):
            STATEMENTS.run(connection, "DELETE_BATCHES", {"through": last})
            STATEMENTS.run(connection, "DELETE_STAGED", {"through": last})


def deleted_through(connection: HotConnection) -> int:
    """Return the id of the last deleted batch, which all tables have; 0 before the first deletion."""
    # Ids have no gaps, so the batch before the first one in the table is the last deleted one. The highest id is read
    # first: a batch that is posted between the two statements would otherwise count as deleted.
    last = last_id(connection)
    first = STATEMENTS.run(connection, "FIRST_ID").fetchone()[0]
    return last if first is None else int(first) - 1
