"""Check of the hot log: its SQLite file, and the waiting batches in the file or on the server."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from warehouse.database_errors import Cause, cause_of
from warehouse.hotlog import batches
from warehouse.hotlog.connection import STATEMENTS, HotConnection, HotLogPlace

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
        result = _integrity(hot)
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if result == "ok" else result


def _integrity(hot: Path) -> str:
    with closing(batches.connect_file(hot)) as connection:
        return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])


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
