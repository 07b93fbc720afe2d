"""Loads: which batches of the hot log are in all tables of the lake, and since when.

A batch above `loaded_through` waits to be loaded. Loaded batches stay in the hot log for ten minutes, because the
moments of reports name them (`warehouse.hotlog.retention`).
"""

import sqlite3

TABLE = "CREATE TABLE loads (through_id INTEGER PRIMARY KEY, loaded_s REAL NOT NULL, bytes INTEGER NOT NULL)"
"""A row for each load whose batches are in the hot log, and one for the newest load.

`through_id` is the last batch of the load, `loaded_s` its time in seconds since 1970, and `bytes` the size of its
batches, 0 once they are deleted.
"""
INDEX = "CREATE INDEX batches_id_rows ON batches (id, rows)"
"""Index from which the rows of waiting batches are counted without reading their messages."""
GENERATION = "generation INTEGER NOT NULL DEFAULT 0"
"""Column of the table `node`: the number of times that all moments were revoked."""
FIRST_VERSION = "first_version INTEGER NOT NULL DEFAULT 0"
"""Column of the table `node`: the version of `hits` after the last erasure. Versions before it have erased rows."""

_SIZE = """
SELECT coalesce(sum(length(message) + coalesce(length(files), 0)), 0)
FROM batches LEFT JOIN staged USING (id) WHERE id > ? AND id <= ?
"""
_DUE = """
SELECT max(through_id)
FROM (SELECT through_id, loaded_s, bytes, sum(bytes) OVER (ORDER BY through_id DESC) AS bytes_since FROM loads)
WHERE bytes > 0 AND (abs(? - loaded_s) >= ? OR bytes_since > ?)
"""


def create(connection: sqlite3.Connection) -> None:
    """Create the table, the index and the column, as a step of the hot log's schema."""
    connection.execute(TABLE)
    connection.execute(f"ALTER TABLE node ADD COLUMN {GENERATION}")
    connection.execute("DROP INDEX IF EXISTS batches_rows")
    connection.execute(INDEX)


def loaded_through(connection: sqlite3.Connection) -> int:
    """Return the id of the last batch that all tables have; 0 before the first load."""
    return int(connection.execute("SELECT coalesce(max(through_id), 0) FROM loads").fetchone()[0])


def size_bytes(connection: sqlite3.Connection, after: int, through: int) -> int:
    """Return the size of the batches above `after` and up to `through`, in bytes."""
    return int(connection.execute(_SIZE, (after, through)).fetchone()[0])


def add(connection: sqlite3.Connection, through: int, loaded_s: float, bytes: int) -> None:
    """Add a load, inside the caller's transaction. A load that is recorded already stays as it is."""
    connection.execute("INSERT OR IGNORE INTO loads VALUES (?, ?, ?)", (through, loaded_s, bytes))


def last_due(connection: sqlite3.Connection, now_s: float, age_s: float, bytes_max: int) -> int:
    """Return the last batch that may be deleted: its load was `age_s` seconds ago, or `bytes_max` are exceeded.

    0 if no batch may be deleted. If the clock was set back, a load may be in the future; its age is then the time until
    it.
    """
    return int(connection.execute(_DUE, (now_s, age_s, bytes_max)).fetchone()[0] or 0)


def remove_through(connection: sqlite3.Connection, through: int) -> None:
    """Remove the loads up to batch `through`, whose batches are deleted, inside the caller's transaction."""
    connection.execute("UPDATE loads SET bytes = 0 WHERE through_id <= ?", (through,))
    connection.execute("DELETE FROM loads WHERE bytes = 0 AND through_id < (SELECT max(through_id) FROM loads)")


def replace_all(connection: sqlite3.Connection, through: int) -> None:
    """Make `through` the last loaded batch, inside the caller's transaction: later batches wait to be loaded again."""
    connection.execute("DELETE FROM loads")
    if through > 0:
        add(connection, through, 0, max(1, size_bytes(connection, 0, through)))


def generation(connection: sqlite3.Connection) -> int:
    """Return the number of times that all moments were revoked."""
    return int(connection.execute("SELECT generation FROM node").fetchone()[0])


def first_version(connection: sqlite3.Connection) -> int:
    """Return the first version of `hits` that a moment may have."""
    return int(connection.execute("SELECT first_version FROM node").fetchone()[0])


def revoke_moments(connection: sqlite3.Connection, first_version: int = 0) -> None:
    """Revoke all moments: their rows are not read any more. New ones have `first_version` or a later one."""
    connection.execute("UPDATE node SET generation = generation + 1, first_version = ?", (first_version,))
