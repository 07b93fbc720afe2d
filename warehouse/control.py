"""The control database: what is small, changes in place and must be the same for every process.

SQLAlchemy Core, so that the SQLite file of one machine and a PostgreSQL server of many take the same code. Times in it
are whole seconds since 1970.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

BUSY_TIMEOUT_MS = 30_000
METADATA = sa.MetaData()


def connect(url: str) -> sa.Engine:
    """An engine over the control database, its tables made where they are missing.

    Not by `create_all`, which looks first and then makes: two processes that start at one time would both make them.
    """
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
    with engine.begin() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
    return engine


def _prepare_sqlite(connection: Any, record: Any) -> None:
    """`busy_timeout` first: turning WAL on takes a lock that another process may hold."""
    for pragma in (
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
