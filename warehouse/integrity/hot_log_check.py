"""Check of the hot log: its SQLite file, and the waiting batches in the file or on the server."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.database_errors import Cause, cause_of, status_of
from warehouse.hotlog import batches, wal
from warehouse.hotlog.connection import STATEMENTS, HotConnection, HotLogPlace, Server

MEMORY = Path("/dev/shm")  # noqa: S108  # a temporary folder is created in it


@contextmanager
def readable(hot: HotLogPlace) -> Iterator[HotLogPlace]:
    """Yield the place of the hot log, or the path of a copy in memory if SQLite cannot open the file on a full disk.

    To read a file that no other process has open, SQLite needs 32 KiB of disk space beside the file.
    """
    if not isinstance(hot, Path) or hot.stat().st_size == 0:  # connecting would create tables in the file
        yield hot
        return
    try:
        batches.connect(hot).close()
    except sqlite3.DatabaseError as error:
        if cause_of(error) is Cause.DISK_FULL:
            with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
                for name in (hot.name, f"{hot.name}-wal"):
                    if hot.with_name(name).exists():
                        shutil.copyfile(hot.with_name(name), Path(folder) / name)
                yield Path(folder) / hot.name
            return
    yield hot


def broken_file(hot: Path) -> str | None:
    """Return why the file is not a whole SQLite file; None without a fault."""
    if hot.stat().st_size == 0:
        return "the file is empty"
    try:
        with closing(batches.connect_file(hot)) as connection:
            result = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if result == "ok" else result


def broken_batch(connection: HotConnection) -> str | None:
    """Return the fault of the first waiting batch that is damaged or has another number of rows; None without one."""
    for id, rows, *message in STATEMENTS.stream(connection, "WAITING_ROWS", {}):
        try:
            actual_rows = _validated_rows(*message)
        except (OSError, ValueError, EOFError) as error:
            return f"batch {id} cannot be read: {error}"
        if actual_rows != rows:
            return f"batch {id} has {actual_rows} rows, not {rows}"
    return None


def _validated_rows(message: bytes, columns: int | None, kind: str | None) -> int:
    rows = batches.decode(message, columns, kind)
    rows.validate(full=True)
    return int(rows.num_rows)


VERSION_MIN = 14
"""Oldest version of PostgreSQL that frees the locks of paused clients (`idle_session_timeout`)."""
LATE_S = 300.0
"""Age of a waiting hit at which it should be in the lake, in seconds."""
SYNCED = "PostgreSQL syncs each commit to its disk"
LOADED = "a node loads the hits of all nodes"
_LOSSES = {
    "fsync": "a loss of power can lose acknowledged hits and damage the database",
    "full_page_writes": "a loss of power can damage the database",
    "synchronous_commit": "Readership turns it on for itself, and other programs can lose commits",
}
"""What a setting of the server means while it is off."""
_SETTINGS = "SELECT name FROM pg_settings WHERE name = ANY(%s) AND reset_val = 'off' ORDER BY name"


def broken_server(server: Server) -> str | None:
    """Return why the hot log cannot be read and written; None without a fault."""
    try:
        with closing(batches.connect(server)) as connection:
            wal.try_write(connection)
            version = int(connection.execute("SHOW server_version_num").fetchone()[0]) // 10_000
    except ServerError as error:
        return status_of(error)
    return None if version >= VERSION_MIN else f"the server is PostgreSQL {version}, and {VERSION_MIN} is needed"


def server_warnings(connection: PostgresqlConnection, late_s: float, now_s: float) -> Iterator[tuple[str, str | None]]:
    """Yield each invariant that the server's operator ensures, with a warning; None if the invariant is true.

    `late_s` is the age of a waiting hit at which it should be in the lake, and `now_s` the time since 1970, in seconds.
    """
    off = [name for (name,) in connection.execute(_SETTINGS, (list(_LOSSES),))]
    yield SYNCED, "; ".join(f"{name} is off: {_LOSSES[name]}" for name in off) or None
    is_late = batches.backlog(connection).age_s(now_s) > late_s
    late = f"hits wait for more than {late_s:g} s: no node runs, or the log of each has the error of its loads"
    yield LOADED, late if is_late else None
