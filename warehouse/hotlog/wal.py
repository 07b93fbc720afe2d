"""Write-ahead log of the hot log's SQLite file: empty it, and probe that it can be written."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

EMPTY_WAIT_S = 1
"""Time for which `empty` waits for a reader, in seconds. Posts wait meanwhile."""


def empty(connection: sqlite3.Connection) -> None:
    """Checkpoint and truncate the WAL, so that deleted rows leave the disk: their old pages stay in it until reused.

    If a reader uses the WAL for longer than EMPTY_WAIT_S, the WAL stays as it is until the next maintenance run.
    """
    with _busy_timeout(connection, EMPTY_WAIT_S):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def try_write(connection: sqlite3.Connection) -> None:
    """Commit one page without a change. Raises sqlite3.OperationalError at once if another process has the lock."""
    with _busy_timeout(connection, 0):
        connection.execute("UPDATE node SET id = id")


@contextmanager
def _busy_timeout(connection: sqlite3.Connection, wait_s: int) -> Iterator[None]:
    """Limit the time for which the statements of the block wait for locks to `wait_s` seconds."""
    (usual_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout={wait_s * 1000}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout={usual_ms}")
