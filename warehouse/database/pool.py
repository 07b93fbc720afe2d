"""Connections to one database, which the threads of a process share."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warehouse.database.postgresql import ServerError
from warehouse.database.statements import Connection
from warehouse.database.transaction import transaction

CONNECTIONS_MAX = 15
"""Maximum number of connections of one process."""
WAIT_S = 30
"""Time for which a thread waits for a connection that others use, in seconds."""


class PoolError(Exception):
    """An error of a pool's database, or of the connection to it. `orig` is the error of SQLite or psycopg."""

    def __init__(self, orig: sqlite3.Error | ServerError) -> None:
        super().__init__(str(orig))
        self.orig = orig


def open_file(name: Path | str, wait_s: float, *pragmas: str) -> sqlite3.Connection:
    """Open a SQLite file for all threads, without implicit transactions. A name that begins with `file:` is a URI.

    A statement waits for the lock of another process up to `wait_s` seconds.
    """
    is_uri = str(name).startswith("file:")
    connection = sqlite3.connect(name, timeout=wait_s, isolation_level=None, check_same_thread=False, uri=is_uri)
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


class Pool:
    """Connections that `open` opens, for as many threads as use the database at once."""

    def __init__(
        self, url: str, open: Callable[[], Connection], connections_max: int = CONNECTIONS_MAX, wait_s: float = WAIT_S
    ) -> None:
        self.url, self._open, self._wait_s = url, open, wait_s
        self._idle: list[Connection] = []
        self._free = threading.BoundedSemaphore(connections_max)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Yield a connection that no other thread uses meanwhile. Each statement commits, unless a transaction is open.

        Raises:
            PoolError: the block, or the connection, failed with an error of the database.
        """
        if not self._free.acquire(timeout=self._wait_s):
            raise PoolError(ServerError("every connection of the pool is in use", None, is_lost=True))
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._idle.append(connection)
        except (sqlite3.Error, ServerError) as error:
            raise PoolError(error) from error
        finally:
            self._free.release()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run the block as one write transaction: see `warehouse.database.transaction`.

        On SQLite it has the write lock from its start. On PostgreSQL the caller locks the rows that its decision
        depends on.
        """
        with self.connect() as connection, transaction(connection):
            yield connection

    def close(self) -> None:
        """Close the connections that no thread uses."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _take(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()
