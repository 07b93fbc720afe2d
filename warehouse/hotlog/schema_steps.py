"""Changes of the hot log's schema, in the order in which older files take them: see `warehouse.migrations`."""

import sqlite3
from collections.abc import Callable, Sequence

from warehouse.hotlog import refusals, synced
from warehouse.migrations import Step

Steps = Sequence[Step[sqlite3.Connection]]


def add_column(table: str, definition: str) -> Callable[[sqlite3.Connection], None]:
    """Return a step that adds a column, such as `checksum BLOB`.

    A table that is not there yet is left out: it is created at the newest version when it is first needed.
    """

    def apply(connection: sqlite3.Connection) -> None:
        if has_table(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}")

    return apply


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether the hot log has a table."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)).fetchone()
    return found is not None


STEPS: Steps = (
    Step(2, synced.create),
    Step(3, refusals.create),
    Step(4, add_column("batches", "checksum BLOB")),
)
