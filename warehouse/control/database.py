"""The control database: what is small, changes in place and must be the same for every process.

SQLAlchemy Core, so that the SQLite file of one machine and a PostgreSQL server of many take the same code. Times in it
are since 1970: whole seconds in columns that end in `_s`, microseconds in those that end in `_us`.
"""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from warehouse import migrations
from warehouse.control import schema_steps
from warehouse.control.schema_steps import STEPS, Steps
from warehouse.database_errors import Cause, cause_of, is_damage, reason_of
from warehouse.errors import ControlUnreadable
from warehouse.transaction import BUSY_TIMEOUT_S

BUSY_TIMEOUT_MS = 1_000 * BUSY_TIMEOUT_S
SILENT_S = 10
"""A PostgreSQL server of which nothing comes back for so long is away. The system by itself would wait for minutes to
hours for one whose machine or network is gone without a word."""
MAKING = 0x72656164
"""The key of the lock by which one process at a time makes tables on PostgreSQL: `read` in ASCII."""
LIBPQ_DRIVERS = ("psycopg", "psycopg2")
METADATA = sa.MetaData()
SCHEMA_VERSION = sa.Table(
    "schema_version",
    METADATA,
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("database_id", sa.String(32), nullable=False),
)
"""One row: the version of all tables, and an id by which a database is recognised after a restore or a move."""
_ANY_PROJECT = sa.text("SELECT 1 FROM projects LIMIT 1")


def connect(url: str, steps: Steps = STEPS) -> sa.Engine:
    """Open the control database: bring its tables to the newest version, and create the missing ones.

    Safe when several processes start at once. Where nothing is to be done nothing is locked: on PostgreSQL even
    `CREATE INDEX IF NOT EXISTS` locks its table, and deadlocks were seen.

    Raises:
        StoreTooNew: a newer release wrote it; nothing is written.
        ControlUnreadable: it is damaged, or records no version although it has the table for it.
    """
    engine = _engine(url)
    try:
        with _named(url):
            _upgrade(engine, steps)
    except BaseException:
        engine.dispose()
        raise
    return engine


@dataclass(frozen=True, slots=True)
class ControlIdentity:
    """What a control database is: its name for messages, its id, and whether it has a project.

    `database_id` is None for one that is missing, that has no tables, or that 0.1.0 wrote.
    """

    name: str
    database_id: str | None
    has_projects: bool


def read_identity(url: str) -> ControlIdentity:
    """Read the identity of a control database. Creates and changes nothing.

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
    """Raise ControlUnreadable, with the name of the database, for a file that is damaged."""
    try:
        yield
    except (sa.exc.DatabaseError, sqlite3.DatabaseError) as error:
        if not is_damage(error):
            raise
        raise ControlUnreadable(f"{_name(url)} cannot be read ({reason_of(error)}): {schema_steps.RESTORE}") from None


def _engine(url: str) -> sa.Engine:
    is_file = url.startswith("sqlite")
    engine = sa.create_engine(
        url, pool_pre_ping=not is_file, hide_parameters=True, connect_args={} if is_file else _impatient(url)
    )
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _impatient(url: str) -> dict[str, int]:
    """What https://www.postgresql.org/docs/current/libpq-connect.html calls so, unless the URL says otherwise."""
    given = sa.make_url(url)
    if given.get_driver_name() not in LIBPQ_DRIVERS:
        return {}
    told = {
        "connect_timeout": SILENT_S,
        "keepalives_idle": SILENT_S // 2,
        "keepalives_interval": 1,
        "keepalives_count": SILENT_S // 2,
        "tcp_user_timeout": SILENT_S * 1000,
    }
    return {name: value for name, value in told.items() if name not in given.query}


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
            f"{schema_steps.STORE} records no schema version, so it is not complete: restore it from a backup"
        )
    return version


def _create_version(connection: sa.Connection, newest: int) -> None:
    """Record the version of a database that records none: that of 0.1.0 if it has projects, else the newest."""
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
    """Run one transaction that changes tables, by one process at a time."""
    with transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MAKING)))
        yield connection


@contextmanager
def transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Run the block as one write transaction, with the rollback policy of `warehouse.transaction`.

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
    """Read from every table with all its columns, and check that the database can be written; it stays unchanged.

    On SQLite the probe does not wait for another writer, whose lock proves that the file can be written.

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
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    try:
        _write_nothing(connection)
    except sa.exc.OperationalError as error:
        if cause_of(error) is not Cause.UNAVAILABLE:
            raise
    finally:
        connection.rollback()
        connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")


def _write_nothing(connection: sa.Connection) -> None:
    """Run a statement that a read-only database refuses. SQLite does not refuse BEGIN IMMEDIATE there."""
    connection.execute(METADATA.sorted_tables[0].delete().where(sa.false()))
    connection.rollback()


def _prepare_sqlite(connection: Any, record: Any) -> None:
    """`busy_timeout` first: turning WAL on takes a lock that another process may hold."""
    for pragma in (
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
