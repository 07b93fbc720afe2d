"""Removal of deleted rows and their space from the disk, and a probe that the hot log can be written."""

import sqlite3

from warehouse.database.transaction import busy_timeout
from warehouse.hotlog.connection import STATEMENTS, HotConnection

FREE_BYTES_MIN = LIVE_BYTES_MAX = 64 * 1024 * 1024
"""`shrink` needs at least this size of free pages, and at most this size of other pages, in bytes."""
EMPTY_WAIT_S = 1
"""Time for which `empty` waits for a reader, in seconds. Posts wait meanwhile."""


def empty(connection: HotConnection) -> None:
    """Checkpoint and truncate the WAL, so that deleted rows leave the disk: their old pages stay in it until reused.

    If a reader uses the WAL for longer than EMPTY_WAIT_S, the WAL stays as it is until the next maintenance run. In
    PostgreSQL, the space of deleted rows is freed for reuse, and the server's WAL is not changed.
    """
    if not isinstance(connection, sqlite3.Connection):
        connection.execute("VACUUM batches, staged")
        return
    with busy_timeout(connection, EMPTY_WAIT_S):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def shrink(connection: HotConnection) -> None:
    """Return the space of deleted rows to the file system, if it is most of the file, and empty the WAL.

    Posts wait meanwhile: about a second for LIVE_BYTES_MAX. A file with more rows stays as it is.
    """
    if isinstance(connection, sqlite3.Connection):
        pages, free, page_bytes = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        live = pages - free
        if free * page_bytes >= FREE_BYTES_MIN and free >= 2 * live and live * page_bytes <= LIVE_BYTES_MAX:
            with busy_timeout(connection, EMPTY_WAIT_S):
                connection.execute("VACUUM")
    empty(connection)


def try_write(connection: HotConnection) -> None:
    """Commit one page without a change. Raises an error of HOT_LOG_ERRORS at once if another process has the lock.

    In PostgreSQL, the statement needs no lock of another process.
    """
    if not isinstance(connection, sqlite3.Connection):
        STATEMENTS.run(connection, "TOUCH_NODE")
        return
    with busy_timeout(connection, 0):
        STATEMENTS.run(connection, "TOUCH_NODE")
