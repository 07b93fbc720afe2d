"""Statements of tests on a control database, in SQLite or PostgreSQL, with values as `:name`."""

import re
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

from warehouse.database.pool import Pool
from warehouse.database.postgresql import Cursor, PostgresqlConnection
from warehouse.database.statements import Connection
from warehouse.database.url import libpq_url, sqlite_name


def execute(connection: Connection, sql: str, **values: object) -> Cursor:
    """Run a statement."""
    if isinstance(connection, sqlite3.Connection):
        return connection.execute(sql, values)
    return connection.execute(re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql), values)


def run(control: Pool, sql: str, **values: object) -> None:
    """Run a statement as a transaction."""
    with control.transaction() as connection:
        execute(connection, sql, **values)


def rows(control: Pool, sql: str, **values: object) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with control.connect() as connection:
        return execute(connection, sql, **values).fetchall()


def column(control: Pool, sql: str, **values: object) -> list[Any]:
    """Return the values of a query of one column."""
    return [value for (value,) in rows(control, sql, **values)]


def table_names(control: Pool) -> list[str]:
    """Return the names of the tables, in alphabetical order."""
    if sqlite_name(control.url) is None:
        return column(control, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
    return column(control, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")


def opened(url: str, busy_timeout_s: float = 30) -> Pool:
    """Return a pool that creates and changes no table."""
    return Pool(url, partial(_open, url, busy_timeout_s, sqlite3.Connection, PostgresqlConnection))


def watch(control: Pool, after: Callable[[str], object]) -> None:
    """Call `after` with each statement of the pool's next connections, when the statement has been run."""

    class File(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            cursor = super().execute(sql, *arguments)
            after(sql)
            return cursor

    class Server(PostgresqlConnection):
        def execute(self, sql: str, *arguments: Any) -> Cursor:
            cursor = super().execute(sql, *arguments)
            after(sql)
            return cursor

    control.close()
    control._open = partial(_open, control.url, 30, File, Server)


def _open(
    url: str, busy_timeout_s: float, file: type[sqlite3.Connection], server: type[PostgresqlConnection]
) -> Connection:
    if (address := libpq_url(url)) is not None:
        return server(address)
    name = sqlite_name(url)
    assert name is not None
    connection = sqlite3.connect(
        name,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
        factory=file,
        uri=name.startswith("file:"),
    )
    try:
        connection.execute("PRAGMA foreign_keys=ON")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection
