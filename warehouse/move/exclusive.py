"""Connections to SQLite files that no other process may open meanwhile."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from warehouse.errors import MoveRefused

WAIT_S = 2.0
"""Time for which the lock waits for a command that is ending, in seconds."""


@contextmanager
def opened(file: Path, wait_s: float = WAIT_S) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file for reading, while no other connection to it is open in any process.

    A connection in WAL mode has a shared lock on the file until it is closed, also between its statements. The
    exclusive lock, for which the call waits `wait_s` seconds, therefore shows that no service, worker or import uses
    the file. Another process that opens the file meanwhile waits, at most for its own timeout.

    Raises:
        MoveRefused: another process has the file open.
    """
    with closing(sqlite3.connect(file, timeout=wait_s, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            raise MoveRefused(
                f"another process has {file} open: stop the service, its workers and all imports, then try again"
            ) from None
        yield connection
        connection.execute("ROLLBACK")
