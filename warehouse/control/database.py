"""Control database: small tables that are updated in place and shared by all processes.

It is a SQLite file on one machine or a PostgreSQL server for many, with the same statements. Times are since 1970:
seconds in columns that end in `_s`, microseconds in columns that end in `_us`.
"""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from warehouse import migrations
from warehouse.control import schema_migrations
from warehouse.control.schema_migrations import MIGRATIONS, Migrations
from warehouse.database import tables
from warehouse.database.pool import Pool, PoolError, open_file
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.statements import Connection, Statements, has_table
from warehouse.database.transaction import BUSY_TIMEOUT_S, busy_timeout, transaction
from warehouse.database.url import libpq_url, name_of, sqlite_name
from warehouse.database_errors import Cause, cause_of, is_damage, reason_of
from warehouse.errors import ControlUnreadable
from warehouse.folder import refuse_moved

TABLES: list[Statements] = []
"""Statements of all modules with tables of the control database that the process has imported."""


def statements(module_file: str) -> Statements:
    """Return the statements in the `.sql` file beside a module, whose tables `connect` creates."""
    TABLES.append(each := Statements(Path(module_file).with_suffix(".sql")))
    return each


STATEMENTS = statements(__file__)


def connect(url: str, known: Migrations = MIGRATIONS, busy_timeout_s: int = BUSY_TIMEOUT_S) -> Pool:
    """Open the control database, upgrade its tables to the newest version, and create the missing ones.

    `busy_timeout_s` limits how long a statement waits for the lock of another process on SQLite, in seconds.

    Several processes may call this at once. An up-to-date database is not locked: on PostgreSQL even
    `CREATE INDEX IF NOT EXISTS` locks its table, which caused deadlocks.

    Raises:
        StoreTooNew: a newer release wrote the database; nothing is changed.
        ControlUnreadable: the database is damaged, or its table of the schema version is empty.
        DataMoved: the database of the folder was moved to a server.
    """
    pool = _pool(url, busy_timeout_s)
    try:
        with _named(url):
            _upgrade(pool, known)
        if sqlite_name(url) is not None:  # after the file was opened, which waits for the end of a move
            refuse_moved(Path(name_of(url)).parent, has_database=False, has_lake=True)
    except BaseException:
        pool.close()
        raise
    return pool


@dataclass(frozen=True, slots=True)
class ControlIdentity:
    """Identity of a control database: its name for messages, its id, and whether it has a project.

    `database_id` is None for a database that is missing, has no tables, or was written by 0.1.0.
    """

    name: str
    database_id: str | None
    has_projects: bool


def read_identity(url: str) -> ControlIdentity:
    """Return the identity of a control database. Creates and changes nothing.

    Raises:
        StoreTooNew, ControlUnreadable: see `connect`.
    """
    name = _name(url)
    if sqlite_name(url) is not None and not (Path(name).is_file() and Path(name).stat().st_size):
        return ControlIdentity(name, None, has_projects=False)
    pool = _pool(url)
    try:
        with _named(url), pool.connect() as connection:
            version = _version(connection)
            schema_migrations.pending(version)
            id = STATEMENTS.run(connection, "VERSION").fetchone()[1] if version else None
            is_filled = has_table(connection, "projects") and STATEMENTS.run(connection, "HAS_PROJECT").fetchone()
            return ControlIdentity(name, id, has_projects=bool(is_filled))
    finally:
        pool.close()


def _name(url: str) -> str:
    """Return the path of a SQLite file, or the name of a database on a server, without its password."""
    return name_of(url) if sqlite_name(url) is not None else f"the control {name_of(url)}"


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Raise ControlUnreadable, with the name of the database, if the block finds that the file is damaged."""
    try:
        yield
    except PoolError as error:
        if not is_damage(error):
            raise
        raise ControlUnreadable(
            f"{_name(url)} cannot be read ({reason_of(error)}): {schema_migrations.RESTORE}"
        ) from None


def _pool(url: str, busy_timeout_s: int = BUSY_TIMEOUT_S) -> Pool:
    server = libpq_url(url)
    if server is not None:
        return Pool(url, partial(PostgresqlConnection, server))
    name = sqlite_name(url)
    assert name is not None
    pragmas = "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"
    return Pool(url, partial(open_file, name, busy_timeout_s, *pragmas))


def _upgrade(pool: Pool, known: Migrations) -> None:
    with pool.connect() as connection:
        version = _version(connection)
        is_current = not schema_migrations.pending(version, known)
        if version is not None and is_current and not _incomplete(connection):
            return
        with _changing(connection):
            _create_version(connection, migrations.newest(known))
        for migration in known:
            with _changing(connection):
                if migration.version == (_version(connection) or 0) + 1:
                    migration.apply(connection)
                    STATEMENTS.run(connection, "SET_VERSION", {"version": migration.version})
        with _changing(connection):
            for each in _incomplete(connection):
                each.create(connection)


def _version(connection: Connection) -> int | None:
    """Return the schema version; None for a database without tables, or whose tables 0.1.0 created."""
    if not has_table(connection, "schema_version"):
        return None
    row = STATEMENTS.run(connection, "VERSION").fetchone()
    if row is None:
        raise ControlUnreadable(
            f"{schema_migrations.STORE} records no schema version and is therefore incomplete: restore it from a backup"
        )
    return int(row[0])


def _create_version(connection: Connection, newest: int) -> None:
    """Record the schema version of a database without one: that of 0.1.0 if it has projects, otherwise the newest."""
    if _version(connection) is None:
        version = migrations.FIRST if has_table(connection, "projects") else newest
        STATEMENTS.create(connection)
        STATEMENTS.run(connection, "ADD_VERSION", {"version": version, "database_id": uuid.uuid4().hex})


def _incomplete(connection: Connection) -> list[Statements]:
    return [each for each in TABLES if not each.is_complete(connection)]


@contextmanager
def _changing(connection: Connection) -> Iterator[None]:
    """Run the block as one transaction that changes tables, in one process at a time."""
    with transaction(connection):
        STATEMENTS.run(connection, "LOCK_SCHEMA")
        yield


def probe(control: Pool) -> None:
    """Check that all columns of all tables can be read and that the database can be written, without changing it.

    On SQLite the check does not wait for another writer, whose lock proves that the file can be written.

    Raises:
        PoolError: the database cannot be read or written; `database_errors.cause_of` returns the cause.
    """
    with control.connect() as connection:
        for table in tables.of(TABLES):
            names = ", ".join(f'{table.name}."{column.name}"' for column in table.columns)
            connection.execute(f"SELECT {names} FROM {table.name} LIMIT 1").fetchall()
        if not isinstance(connection, sqlite3.Connection):
            STATEMENTS.run(connection, "WRITE_NOTHING")
            return
        try:
            with busy_timeout(connection, 0):
                STATEMENTS.run(connection, "WRITE_NOTHING")
        except sqlite3.OperationalError as error:
            if cause_of(error) is not Cause.UNAVAILABLE:
                raise
