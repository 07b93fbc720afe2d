"""The control database: what is small, changes in place and must be the same for every process.

SQLAlchemy Core, so that the SQLite file of one machine and a PostgreSQL server of many take the same code. Times in it
are since 1970: whole seconds in columns that end in `_s`, microseconds in those that end in `_us`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from warehouse.database_errors import Cause, cause_of

BUSY_TIMEOUT_MS = 30_000
SILENT_S = 10
"""A PostgreSQL server of which nothing comes back for so long is away. The system by itself would wait for minutes to
hours for one whose machine or network is gone without a word."""
MAKING = 0x72656164
"""The key of the lock by which one process at a time makes tables on PostgreSQL: `read` in ASCII."""
LIBPQ_DRIVERS = ("psycopg", "psycopg2")
METADATA = sa.MetaData()


def connect(url: str) -> sa.Engine:
    """An engine over the control database, its tables made where they are missing.

    Not by `create_all`, which looks first and then makes: two processes that start at one time would both make them.
    And not where all are there: on PostgreSQL even an index that is not made locks its table, and deadlocks were seen.
    """
    is_file = url.startswith("sqlite")
    engine = sa.create_engine(
        url, pool_pre_ping=not is_file, hide_parameters=True, connect_args={} if is_file else _impatient(url)
    )
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
    with engine.connect() as connection:
        known = set(sa.inspect(connection).get_table_names())
    missing = [table for table in METADATA.sorted_tables if table.name not in known]
    if missing:
        _make(engine, missing)
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


def _make(engine: sa.Engine, tables: list[sa.Table]) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MAKING)))
        for table in tables:
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction that begins as a writer's: on SQLite no other writes meanwhile.

    SQLite's own way, to begin as a reader, refuses the first write at once if another has written since. On PostgreSQL
    the caller locks the rows that it decides by.
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
        SQLAlchemyError: the database cannot be read or written; `database_errors.cause_of` tells why.
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
