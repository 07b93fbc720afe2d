"""Connections to the hot log, and the statements on its tables."""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.database.statements import Statements
from warehouse.database.url import libpq_url
from warehouse.database.url import name_of as database_name_of

HotConnection: TypeAlias = sqlite3.Connection | PostgresqlConnection
"""Connection to the hot log, as `warehouse.hotlog.batches.connect` returns it."""
HOT_LOG_ERRORS = (sqlite3.DatabaseError, ServerError)
"""Errors of a hot log that cannot be read or written."""
STATEMENTS = Statements(Path(__file__).with_name("tables.sql"))
"""Statements on the tables of the hot log."""


@dataclass(frozen=True, slots=True)
class Server:
    """A hot log in PostgreSQL: the URL of its database, as libpq reads it, and the database's name for messages."""

    url: str = field(repr=False)
    database: str

    def __str__(self) -> str:
        return f"the hot log in {self.database}"


HotLogPlace: TypeAlias = Path | Server
"""Place of a hot log: a SQLite file, or a database on a server."""


def name_of(connection: HotConnection) -> str:
    """Return the path of a hot log's file, or the name of its database without a password."""
    if isinstance(connection, sqlite3.Connection):
        _, _, file = connection.execute("PRAGMA database_list").fetchone()
        return str(file)
    return f"the hot log in the database {connection.database}"


def server_of(url: str) -> Server | None:
    """Return the hot log in the database of a URL; None if it is not one of PostgreSQL."""
    server = libpq_url(url)
    return None if server is None else Server(server, f"the {database_name_of(server)}")
