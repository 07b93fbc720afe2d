"""Record, in the hot log, of how far each Delta table is synced: see `warehouse.integrity.durability`."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

NAME = "synced_tables"
TABLE = "CREATE TABLE synced_tables (name TEXT PRIMARY KEY, version INTEGER NOT NULL, last_batch INTEGER NOT NULL)"


@dataclass(frozen=True, slots=True)
class Synced:
    """Newest completely synced version of a Delta table, and the id of the last hot batch in it (0 without batches)."""

    version: int
    last_batch: int


def create(connection: sqlite3.Connection) -> None:
    """Create the table, as a step of the hot log's schema."""
    connection.execute(TABLE)


def recorded(connection: sqlite3.Connection) -> dict[str, Synced]:
    """Return how far each Delta table is synced, by its name. Empty before the first load by a release after 0.1.0."""
    rows = connection.execute("SELECT name, version, last_batch FROM synced_tables")
    return {name: Synced(version, last_batch) for name, version, last_batch in rows}


def record(connection: sqlite3.Connection, tables: Mapping[str, Synced]) -> None:
    """Raise the recorded versions and batches to those of `tables`; a record that is as high already is not written."""
    connection.executemany(
        "INSERT INTO synced_tables VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET version = max(version, excluded.version), last_batch = max(last_batch, excluded.last_batch)"
        " WHERE version < excluded.version OR last_batch < excluded.last_batch",
        [(name, table.version, table.last_batch) for name, table in tables.items()],
    )


def forget(connection: sqlite3.Connection) -> None:
    """Delete all records."""
    connection.execute("DELETE FROM synced_tables")
