"""Control database: small tables that are updated in place and shared by all processes.

It is a SQLite file on one machine or a PostgreSQL server for many, with the same code (SQLAlchemy Core). Times are
since 1970: seconds in columns that end in `_s`, microseconds in columns that end in `_us`.
"""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from warehouse import migrations
from warehouse.control import schema_steps
from warehouse.control.schema_steps import STEPS, Steps
from warehouse.database.psycopg_connection import SYNCHRONOUS_COMMIT
from warehouse.database_errors import Cause, cause_of, is_damage, reason_of
from warehouse.errors import ControlUnreadable
from warehouse.folder import refuse_moved
from warehouse.transaction import BUSY_TIMEOUT_S

SERVER_TIMEOUT_S = 10
"""Time without a reply after which a PostgreSQL connection counts as lost, in seconds.

Linux by itself waits from minutes to hours for a server whose machine or network has failed.
"""
SCHEMA_LOCK_KEY = 0x72656164
"""Key of the advisory lock under which one process at a time changes tables on PostgreSQL: `read` in ASCII."""
LIBPQ_DRIVERS = ("psycopg", "psycopg2")
METADATA = sa.MetaData()
SCHEMA_VERSION = sa.Table(
    "schema_version",
    METADATA,
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("database_id", sa.String(32), nullable=False),
)
"""Table of one row: the schema version of all tables, and the id of the database, which a restore or move preserves."""
PROJECTS = sa.Table(
    "projects",
    METADATA,
    sa.Column("id", sa.String(63), primary_key=True),
    sa.Column("origins", sa.JSON, nullable=False),
    sa.Column("created_s", sa.BigInteger, nullable=False),
    sa.Column("is_ending", sa.Boolean, nullable=False, default=False),
    sa.Column("internal_id", sa.String(32), nullable=False, server_default=""),
)
"""Table of `projects`, to which most other tables refer."""
_ANY_PROJECT = sa.text("SELECT 1 FROM projects LIMIT 1")


def connect(url: str, steps: Steps = STEPS, busy_timeout_s: int = BUSY_TIMEOUT_S) -> sa.Engine:
    """Open the control database, upgrade its tables to the newest version, and create the missing ones.

    `busy_timeout_s` limits how long a statement waits for the lock of another process on SQLite, in seconds.

    Several processes may call this at once. An up-to-date database is not locked: on PostgreSQL even
    `CREATE INDEX IF NOT EXISTS` locks its table, which caused deadlocks.

    Raises:
        StoreTooNew: a newer release wrote the database; nothing is changed.
        ControlUnreadable: the database is damaged, or its table of the schema version is empty.
        DataMoved: the database of the folder was moved to a server.
    """
    engine = _engine(url, busy_timeout_s)
    try:
        with _named(url):
            _upgrade(engine, steps)
        if url.startswith("sqlite"):  # after the file was opened, which waits for the end of a move
            refuse_moved(Path(_name(url)).parent, has_database=False, has_lake=True)
    except BaseException:
        engine.dispose()
        raise
    return engine


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
    if url.startswith("sqlite") and not (Path(name).is_file() and Path(name).stat().st_size):
        return ControlIdentity(name, None, has_projects=False)
    engine = _engine(url)
    try:
        with _named(url), engine.connect() as connection:
            version = _version(connection)
            schema_steps.pending(version)
            id = connection.execute(sa.select(SCHEMA_VERSION.c.database_id)).scalar_one() if version else None
            is_filled = sa.inspect(connection).has_table("projects") and connection.execute(_ANY_PROJECT).first()
            return ControlIdentity(name, id, has_projects=bool(is_filled))
    finally:
        engine.dispose()


def _name(url: str) -> str:
    """Return the path of a SQLite file, or the name of a database on a server, without its password."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return str(parsed.database).removeprefix("file:")  # SQLite also takes a URI
    return f"the control database {parsed.database} on {parsed.host or parsed.query.get('host') or 'localhost'}"


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Raise ControlUnreadable, with the name of the database, if the block finds that the file is damaged."""
    try:
        yield
    except (sa.exc.DatabaseError, sqlite3.DatabaseError) as error:
        if not is_damage(error):
            raise
        raise ControlUnreadable(f"{_name(url)} cannot be read ({reason_of(error)}): {schema_steps.RESTORE}") from None


def _engine(url: str, busy_timeout_s: int = BUSY_TIMEOUT_S) -> sa.Engine:
    is_file = url.startswith("sqlite")
    timeouts = {} if is_file else _server_timeouts(url)
    engine = sa.create_engine(url, pool_pre_ping=not is_file, hide_parameters=True, connect_args=timeouts)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", partial(_prepare_sqlite, busy_timeout_s))
    elif engine.dialect.name == "postgresql":
        sa.event.listen(engine, "connect", _prepare_postgresql)
    return engine


def _server_timeouts(url: str) -> dict[str, int]:
    """Return libpq's parameters that detect a lost server, without those that the URL sets.

    https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
    """
    parsed = sa.make_url(url)
    if parsed.get_driver_name() not in LIBPQ_DRIVERS:
        return {}
    defaults = {
        "connect_timeout": SERVER_TIMEOUT_S,
        "keepalives_idle": SERVER_TIMEOUT_S // 2,
        "keepalives_interval": 1,
        "keepalives_count": SERVER_TIMEOUT_S // 2,
        "tcp_user_timeout": SERVER_TIMEOUT_S * 1000,
    }
    return {name: value for name, value in defaults.items() if name not in parsed.query}


def _upgrade(engine: sa.Engine, steps: Steps) -> None:
    with engine.connect() as connection:
        version = _version(connection)
        is_current = not schema_steps.pending(version, steps)
        if version is not None and is_current and not _missing(connection):
            return
    with _changing(engine) as connection:
        _create_version(connection, migrations.newest(steps))
    for step in steps:
        with _changing(engine) as connection:
            if step.version == (_version(connection) or 0) + 1:
                step.apply(connection)
                connection.execute(SCHEMA_VERSION.update().values(version=step.version))
    with _changing(engine) as connection:
        for table in _missing(connection):
            _create(connection, table)


def _version(connection: sa.Connection) -> int | None:
    """Return the schema version; None for a database without tables, or whose tables 0.1.0 created."""
    if not sa.inspect(connection).has_table(SCHEMA_VERSION.name):
        return None
    version: int | None = connection.execute(sa.select(SCHEMA_VERSION.c.version)).scalar_one_or_none()
    if version is None:
        raise ControlUnreadable(
            f"{schema_steps.STORE} records no schema version and is therefore incomplete: restore it from a backup"
        )
    return version


def _create_version(connection: sa.Connection, newest: int) -> None:
    """Record the schema version of a database without one: that of 0.1.0 if it has projects, otherwise the newest."""
    if _version(connection) is None:
        is_first = sa.inspect(connection).has_table("projects")
        _create(connection, SCHEMA_VERSION)
        values = {"version": migrations.FIRST if is_first else newest, "database_id": uuid.uuid4().hex}
        connection.execute(SCHEMA_VERSION.insert().values(values))


def _missing(connection: sa.Connection) -> list[sa.Table]:
    known = set(sa.inspect(connection).get_table_names())
    return [table for table in METADATA.sorted_tables if table.name not in known]


def _create(connection: sa.Connection, table: sa.Table) -> None:
    connection.execute(CreateTable(table))
    for index in table.indexes:
        connection.execute(CreateIndex(index))


@contextmanager
def _changing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Run the block as one transaction that changes tables, in one process at a time."""
    with transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(SCHEMA_LOCK_KEY)))
        yield connection


@contextmanager
def transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Run the block as one write transaction, with the rollback policy of `warehouse.transaction`.

    The two helpers have only `BEGIN IMMEDIATE` in common, and are therefore not one. This one yields a connection of
    the pool, SQLAlchemy begins and rolls back the transaction, and PostgreSQL needs no lock of all write transactions.

    On SQLite the transaction has the write lock from its start. On PostgreSQL the caller locks the rows that its
    decision depends on. SQLAlchemy rolls back when the connection returns to its pool; a rollback that fails there is
    logged, and does not hide the exception that ended the block. Errors are SQLAlchemy's.
    """
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection
        connection.commit()


def probe(engine: sa.Engine) -> None:
    """Check that all columns of all tables can be read and that the database can be written, without changing it.

    On SQLite the check does not wait for another writer, whose lock proves that the file can be written.

    Raises:
        SQLAlchemyError: the database cannot be read or written; `database_errors.cause_of` returns the cause.
    """
    with engine.connect() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(table.select().limit(1)).all()
        connection.rollback()
        if engine.dialect.name == "sqlite":
            _probe_sqlite(connection)
        else:
            _write_nothing(connection)


def _probe_sqlite(connection: sa.Connection) -> None:
    timeout_ms = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    try:
        _write_nothing(connection)
    except sa.exc.OperationalError as error:
        if cause_of(error) is not Cause.UNAVAILABLE:
            raise
    finally:
        connection.rollback()
        connection.exec_driver_sql(f"PRAGMA busy_timeout={timeout_ms}")


def _write_nothing(connection: sa.Connection) -> None:
    """Run a statement that a read-only database refuses, unlike BEGIN IMMEDIATE, which SQLite accepts there."""
    connection.execute(METADATA.sorted_tables[0].delete().where(sa.false()))
    connection.rollback()


def _prepare_sqlite(busy_timeout_s: int, connection: Any, record: Any) -> None:
    """Configure a new connection."""
    for pragma in (
        f"busy_timeout={1_000 * busy_timeout_s}",  # first: switching to WAL takes a lock that another process may hold
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _prepare_postgresql(connection: Any, record: Any) -> None:
    """Configure a new connection."""
    cursor = connection.cursor()
    cursor.execute(SYNCHRONOUS_COMMIT)
    cursor.close()
    connection.commit()
