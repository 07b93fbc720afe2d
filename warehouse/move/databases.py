"""The control database and the hot log, copied to a PostgreSQL database in one transaction.

A process that is killed leaves the database as it was. Nodes that start meanwhile wait, because the transaction has the
locks under which they create their tables.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from warehouse.control import database as control_database
from warehouse.database import tables as definitions
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.statements import Statements, has_table
from warehouse.database.tables import Table
from warehouse.database.transaction import BUSY_TIMEOUT_S
from warehouse.database.url import libpq_url
from warehouse.errors import MoveRefused
from warehouse.hotlog import postgresql
from warehouse.hotlog.connection import STATEMENTS, Server
from warehouse.move import tables
from warehouse.move.tables import OnRows


@dataclass(frozen=True, slots=True)
class Sources:
    """Files of a data folder, opened by `opened`. `control` is None if it is in the new database already.

    `more` are the statements of those tables in the hot log that `postgresql.create` does not create.
    """

    hot: sqlite3.Connection
    control: sqlite3.Connection | None
    more: Sequence[Statements]

    def hot_tables(self) -> list[Table]:
        return definitions.of((STATEMENTS, *self.more))

    def control_tables(self) -> list[Table]:
        """Return the tables of the control database: those of all modules that the process has imported."""
        return [] if self.control is None else definitions.of(control_database.TABLES)

    def files(self) -> Iterator[tuple[sqlite3.Connection, str, list[Table]]]:
        """Yield each file, its name in messages, and its tables."""
        yield self.hot, "the hot log", self.hot_tables()
        if self.control is not None:
            yield self.control, "the control database", self.control_tables()


def has_hot_log(server: Server, node: str) -> bool:
    """Return whether the database has the hot log of a node. Raises MoveRefused if the database has another hot log."""
    with closing(postgresql.connect(server, create=False)) as target:
        if not has_table(target, "node"):
            return False
        (owner,) = target.execute("SELECT id FROM node").fetchone()
    if owner != node:
        raise MoveRefused(f"{server.database} has the hot log of another data folder: name an empty database")
    return True


def rehearse(server: Server, sources: Sources, schema: str) -> None:
    """Create all tables, and roll back, so that a missing right is found before the copy. Raises MoveRefused."""
    with _connected(server) as target, suppress(_Rehearsed), _creating(target, sources, schema):
        raise _Rehearsed


class _Rehearsed(Exception):
    """Cause of the rollback of a rehearsal."""


def copy(
    server: Server, sources: Sources, schema: str, on_rows: OnRows, before_commit: Callable[[], None]
) -> dict[str, int]:
    """Create the tables, copy their rows, and return the numbers of rows by table.

    `schema` is that of the control database's tables. `before_commit` is called in the transaction.

    Raises:
        MoveRefused: the database is not empty, or has another number of rows than the files.
        ServerError: see `PostgresqlConnection`.
    """
    counts: dict[str, int] = {}
    with _connected(server) as target, _creating(target, sources, schema):
        if sources.control is not None:
            _search(target, schema)
            counts |= _copy_all(sources.control, target, sources.control_tables(), on_rows)
            _search(target, postgresql.SCHEMA)
        target.execute(f"ALTER TABLE {postgresql.COUNTED} DISABLE TRIGGER USER")
        counts |= _copy_all(sources.hot, target, sources.hot_tables(), on_rows)
        target.execute(f"ALTER TABLE {postgresql.COUNTED} ENABLE TRIGGER USER")
        before_commit()
    return counts


@contextmanager
def _connected(server: Server) -> Iterator[PostgresqlConnection]:
    """Yield a connection that is not opened again if it is lost, which would end its transaction unnoticed."""
    connection = PostgresqlConnection(server.url, postgresql.SCHEMA, postgresql.LOCK, BUSY_TIMEOUT_S)
    with closing(connection) as target, target.pinned():
        yield target


@contextmanager
def _creating(target: PostgresqlConnection, sources: Sources, schema: str) -> Iterator[None]:
    """Run the block in a transaction that has created all tables."""
    with target.changing_tables():
        for timeout in ("idle_in_transaction_session_timeout", "statement_timeout"):  # a large table takes longer
            target.execute(f"SET LOCAL {timeout} = 0")
        control_database.STATEMENTS.run(target, "LOCK_SCHEMA")
        if has_table(target, "node"):
            raise MoveRefused(f"the database {target.database} has a hot log: name an empty database")
        if sources.control is not None:
            _search(target, schema)
            _create_control(target)
        _search(target, postgresql.SCHEMA)
        postgresql.create(target)
        for each in sources.more:
            each.create(target)
        yield


def _create_control(target: PostgresqlConnection) -> None:
    for table in definitions.of(control_database.TABLES):
        if has_table(target, table.name):
            raise MoveRefused(f"the database {target.database} has a table {table.name}: name an empty database")
    for each in control_database.TABLES:
        each.create(target)


def _search(target: PostgresqlConnection, schema: str) -> None:
    """Look up and create tables in a schema, until the end of the transaction."""
    target.execute(f'SET LOCAL search_path TO "{schema}"')


def _copy_all(
    source: sqlite3.Connection, target: PostgresqlConnection, chosen: Sequence[Table], on_rows: OnRows
) -> dict[str, int]:
    counts = {}
    for table in chosen:
        counts[table.name] = tables.copy(source, target, table, on_rows)
        id = tables.last_id(source, table)
        if table.name == postgresql.COUNTED:
            target.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", (id, table.name))
        elif id is not None:
            tables.continue_above(target, table, id)
    return counts


def control_schema(url: str) -> str:
    """Return the schema in which a database has the tables of the control database."""
    server = libpq_url(url)
    assert server is not None
    with closing(PostgresqlConnection(server)) as connection:
        return connection.execute("SELECT current_schema()").fetchone()[0] or "public"


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
