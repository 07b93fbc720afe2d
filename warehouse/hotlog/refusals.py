"""Deleted projects, whose rows the hot log refuses.

Each project has an internal id, which is not reused when a project is created again under the same id. A deletion adds
the internal id to this table before it erases rows, and each writer reads the table in the transaction that stores its
rows. A request that began before a deletion therefore stores nothing after it, however long the request takes.
"""

import sqlite3

TABLE = "CREATE TABLE IF NOT EXISTS refusals (id INTEGER PRIMARY KEY AUTOINCREMENT, internal_id TEXT NOT NULL UNIQUE)"


def create(connection: sqlite3.Connection) -> None:
    """Create the table, as a step of the hot log's schema."""
    connection.execute(TABLE)


def add(connection: sqlite3.Connection, internal_id: str) -> None:
    """Refuse the rows of a project in every transaction that begins after this call. Idempotent."""
    connection.execute("INSERT OR IGNORE INTO refusals (internal_id) VALUES (?)", (internal_id,))


def last(connection: sqlite3.Connection) -> int:
    """Return the id of the newest refusal; 0 without refusals."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM refusals").fetchone()[0])


def internal_ids(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the internal ids of all deleted projects."""
    return frozenset(internal_id for (internal_id,) in connection.execute("SELECT internal_id FROM refusals"))


def has(connection: sqlite3.Connection, internal_id: str) -> bool:
    """Return whether the rows of a project are refused."""
    query = "SELECT 1 FROM refusals WHERE internal_id = ?"
    return connection.execute(query, (internal_id,)).fetchone() is not None
