"""Connection to a PostgreSQL server that opens again after it was lost.

The connection has `execute`, `in_transaction` and `close` of a `sqlite3.Connection` in autocommit mode, and callers use
both alike. Its errors are `ServerError`, because psycopg is an optional dependency and takes 0.1 s to import.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from warehouse.database.psycopg_connection import IDLE_IN_TRANSACTION_S, is_lost, open_connection

if TYPE_CHECKING:
    import psycopg

_END_PAUSED = f"""
SELECT pg_terminate_backend(pid)
FROM pg_locks JOIN pg_class ON pg_class.oid = relation JOIN pg_stat_activity USING (pid)
WHERE granted AND mode = 'RowShareLock' AND relnamespace = current_schema()::regnamespace
AND wait_event = 'ClientRead' AND query_start < clock_timestamp() - interval '{IDLE_IN_TRANSACTION_S} s'
"""
"""Statement that ends the write transactions whose client has sent only a part of a statement, and no more of it.

The server has no timeout for a client that is paused while it sends a statement which its socket cannot take at once.
"""
SCHEMA_LOCK_KEY = 0x686F746C
"""Key of the advisory lock under which one process at a time changes tables: `hotl` in ASCII."""
LOCK_NOT_AVAILABLE = "55P03"
"""SQLSTATE of a statement that has waited for a lock for the lock timeout."""
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"


class ServerError(Exception):
    """An error of the server or of the connection to it, with its SQLSTATE.

    `is_lost`: the connection failed, or could not be opened. `may_be_committed`: it failed after a COMMIT was sent, so
    the transaction may be committed. It is not committed after any other error.
    """

    def __init__(self, message: str, sqlstate: str | None, *, is_lost: bool) -> None:
        super().__init__(message)
        self.sqlstate, self.is_lost = sqlstate, is_lost
        self.may_be_committed = False


class Cursor(Protocol):
    """Result of a statement, as sqlite3 and psycopg have it."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class PostgresqlConnection:
    """Connection to one schema of a database. Threads may share it; they run their statements one at a time.

    A lost connection fails the statement that was running, and the transaction around it. The next statement or
    transaction opens a new connection.
    """

    def __init__(
        self, url: str, schema: str | None = None, lock: str | None = None, lock_timeout_s: float | None = None
    ) -> None:
        """Connect to `url`, a URL of libpq. `lock` is a statement that takes the lock of all write transactions.

        Without a `schema`, the connection has the server's search path and limits: see `open_connection`.

        Raises:
            ServerError: the server does not answer or refuses the connection.
        """
        self.url, self._schema, self._lock, self._lock_timeout_s = url, schema, lock, lock_timeout_s
        self._is_pinned = False
        self._mutex = threading.RLock()
        """Lock of the connection's status, which the library changes while a statement runs."""
        self._connection = self._open()
        self.database = self._connection.info.dbname
        """Name of the database."""

    @property
    def is_lost(self) -> bool:
        """Return whether the last statement found that the connection is lost."""
        return self._connection.closed

    @property
    def password(self) -> str:
        """Return the password of the connection, which may be one of a file of libpq."""
        return self._connection.info.password

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is open, or has failed and was not rolled back. False on a lost connection."""
        with self._mutex:
            connection = self._connection
            return not connection.closed and connection.info.transaction_status.name != "IDLE"

    def execute(self, sql: str, values: Mapping[str, object] | Sequence[object] = ()) -> Cursor:
        """Run one statement, with values for `%s` or `%(name)s`."""
        with self._mutex, _server_errors():
            return self._ready().execute(sql.encode(), values or None, binary=True)

    def execute_each(self, sql: str, values: Sequence[Mapping[str, object]]) -> Iterator[Cursor]:
        """Run one statement for each mapping, in one round trip, and yield the result of each."""
        if not values:
            return iter(())
        with self._mutex, _server_errors():
            cursor = self._ready().cursor(binary=True)
            cursor.executemany(sql.encode(), values, returning=True)
            return cursor.results()

    def stream(self, sql: str, values: Mapping[str, object]) -> Iterator[Any]:
        """Yield the rows of one statement as the server sends them. No other statement may run meanwhile."""
        with _server_errors():  # without the mutex, which another thread could then not take between two rows
            yield from self._ready().cursor(binary=True).stream(sql.encode(), values or None)

    @contextmanager
    def copying(self, sql: str) -> "Iterator[psycopg.Copy]":
        """Run a COPY FROM STDIN, and yield the writer of its rows."""
        with _server_errors(), self._ready().cursor() as cursor, cursor.copy(sql.encode()) as copy:
            yield copy

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as a write transaction. It begins in one round trip, and waits for the lock of all others.

        Raises:
            ServerError: the transaction was lost, or a statement of it failed, even if the block ignored that error.
        """
        with self._beginning():
            pass
        with self.pinned():
            try:
                yield
                self._commit()
            except BaseException:
                self._roll_back()
                raise

    def execute_alone(self, sql: str, values: Mapping[str, object]) -> Cursor:
        """Run one statement in the open transaction, or else as a write transaction of its own.

        The latter takes one round trip, in which the server gets all that it needs to commit.
        """
        if self.in_transaction:
            return self.execute(sql, values)
        with self._committing() as commit, self._beginning() as connection:
            cursor = connection.execute(sql.encode(), values, binary=True)
            commit.is_sent = True
            connection.execute("COMMIT")
        return cursor

    @contextmanager
    def changing_tables(self) -> Iterator[None]:
        """Run the block as a transaction that changes tables, in one process at a time."""
        self.execute(BEGIN)
        try:
            self.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK_KEY,))
            yield
            self.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Open no new connection in the block, which depends on a transaction, tables or locks of the present one."""
        before, self._is_pinned = self._is_pinned, True
        try:
            yield
        finally:
            self._is_pinned = before

    def send_if_idle(self) -> None:
        """Send a statement without effect, unless a statement or a transaction is running or the connection is lost.

        Another thread may call the method: the server then does not count the connection as idle.
        """
        import psycopg  # noqa: PLC0415  # see the module's docstring

        with self._mutex:
            connection = self._connection
            if not connection.closed and connection.info.transaction_status.name == "IDLE":
                with suppress(psycopg.Error):  # the next statement of the owner fails, too
                    connection.execute("SELECT 1")

    def close(self) -> None:
        self._connection.close()

    def _open(self) -> "psycopg.Connection[Any]":
        with _server_errors():
            return open_connection(self.url, self._schema, self._lock_timeout_s)

    def _ready(self) -> "psycopg.Connection[Any]":
        """Return the connection. Open a new one if it was lost, unless the connection is pinned."""
        with self._mutex:
            connection = self._connection
            if self._is_pinned:
                return connection
            if connection.closed or (connection.info.transaction_status.name == "IDLE" and is_lost(connection)):
                connection.close()
                self._connection = connection = self._open()
            return connection

    @contextmanager
    def _beginning(self) -> Iterator["psycopg.Connection[Any]"]:
        """Begin a write transaction, and send the statements of the block in the same round trip."""
        with self._ending_paused(), self._mutex, _server_errors():
            connection = self._ready()
            try:
                with connection.pipeline():
                    connection.execute(BEGIN)
                    if self._lock is not None:
                        connection.execute(self._lock.encode())
                    yield connection
            except BaseException:
                self._roll_back()
                raise

    def _commit(self) -> None:
        with self._committing() as commit, _server_errors():
            commit.is_sent = True
            status = self._connection.execute("COMMIT").statusmessage
        if status != "COMMIT":  # PostgreSQL rolls back without an error if a statement of the transaction failed
            raise ServerError("the transaction was rolled back, because a statement failed", None, is_lost=False)

    @contextmanager
    def _committing(self) -> Iterator["_Commit"]:
        """Yield the commit, which the block marks as sent before it sends it, and mark an error after it.

        A server that shuts down sends an error with an SQLSTATE, perhaps after the COMMIT, and closes the connection.
        """
        commit = _Commit()
        try:
            yield commit
        except ServerError as error:
            error.may_be_committed = commit.is_sent and (error.is_lost or self.is_lost)
            raise

    @contextmanager
    def _ending_paused(self) -> Iterator[None]:
        """End the transactions of paused clients if the block raises a lock timeout, which is then raised again."""
        try:
            yield
        except ServerError as error:
            if error.sqlstate == LOCK_NOT_AVAILABLE:
                self.execute(_END_PAUSED)
            raise

    def _roll_back(self) -> None:
        import psycopg  # noqa: PLC0415  # see the module's docstring

        if self.in_transaction:
            with suppress(psycopg.Error):  # a lost connection has no transaction
                self._connection.execute("ROLLBACK")


@dataclass(slots=True)
class _Commit:
    """A COMMIT that is sent, or not yet."""

    is_sent: bool = False


@contextmanager
def _server_errors() -> Iterator[None]:
    import psycopg  # noqa: PLC0415  # see the module's docstring

    try:
        yield
    except psycopg.Error as error:
        is_lost = error.sqlstate is None and isinstance(error, psycopg.OperationalError)
        raise ServerError(" ".join(str(error).split()), error.sqlstate, is_lost=is_lost) from error
