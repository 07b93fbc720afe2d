"""Deleted projects, of which the hot log stores nothing any more.

A project has an internal id beside its id. A project that is created later under the same id has another one. The
deletion adds the internal id here before it erases anything, and each writer looks here in the transaction that stores
rows. A request that began before the deletion therefore stores nothing after it, however long the request takes.
"""

import sqlite3

TABLE = "CREATE TABLE IF NOT EXISTS refusals (id INTEGER PRIMARY KEY AUTOINCREMENT, internal_id TEXT NOT NULL UNIQUE)"


def create(connection: sqlite3.Connection) -> None:
    """Create the table: a step of the hot log's schema."""
    connection.execute(TABLE)


def add(connection: sqlite3.Connection, internal_id: str) -> None:
    """Refuse the rows of a project in every transaction that begins after this call. It may be repeated."""
    connection.execute("INSERT OR IGNORE INTO refusals (internal_id) VALUES (?)", (internal_id,))


def last(connection: sqlite3.Connection) -> int:
    """Return the id of the newest refusal; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM refusals").fetchone()[0])


def internal_ids(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the internal ids of all deleted projects."""
    return frozenset(internal_id for (internal_id,) in connection.execute("SELECT internal_id FROM refusals"))


def has(connection: sqlite3.Connection, internal_id: str) -> bool:
    """Return whether a project is refused."""
    query = "SELECT 1 FROM refusals WHERE internal_id = ?"
    return connection.execute(query, (internal_id,)).fetchone() is not None
