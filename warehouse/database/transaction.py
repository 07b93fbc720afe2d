"""Write transactions, with one rollback policy.

A transaction waits at its start for the lock of all write transactions: on SQLite by `BEGIN IMMEDIATE`, as long as the
connection's `busy_timeout`, and in a hot log on PostgreSQL by the lock of a row, as long as the connection's
`lock_timeout`. A deferred transaction of SQLite that has read fails at once on its first write if another process has
written since.

Rollback policy: any exception rolls back, `KeyboardInterrupt` and a failed COMMIT included, and is raised unchanged.
SQLite may roll back by itself after a full disk or an I/O error
(https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction), and a lost connection has no
transaction. A ROLLBACK would then fail and hide the cause, and is therefore skipped.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from warehouse.database.postgresql import PostgresqlConnection

BUSY_TIMEOUT_S = 30
"""Time for which a connection waits for the lock of another process, in seconds, unless its opener sets another."""


@contextmanager
def transaction(connection: sqlite3.Connection | PostgresqlConnection) -> Iterator[None]:
    """Run the block as one write transaction. The connection must be in autocommit mode (`isolation_level=None`)."""
    if not isinstance(connection, sqlite3.Connection):
        with connection.transaction():
            yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def busy_timeout(connection: sqlite3.Connection, wait_s: int) -> Iterator[None]:
    """Limit the time for which the statements of the block wait for locks to `wait_s` seconds."""
    (usual_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout={wait_s * 1000}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout={usual_ms}")
