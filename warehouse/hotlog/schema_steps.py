"""Tables of the hot log, and the steps that bring an older file to the newest schema version."""

import sqlite3
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from warehouse import migrations
from warehouse.hotlog import dirty_days, loads, refusals, synced
from warehouse.migrations import Step
from warehouse.transaction import BUSY_TIMEOUT_S, transaction

STORE = "the hot log"
"""Name of the store in messages."""
_CREATE = f"""
CREATE TABLE IF NOT EXISTS node (id TEXT NOT NULL, {loads.GENERATION}, {loads.FIRST_VERSION});
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rows INTEGER NOT NULL,
    committed_s REAL NOT NULL,
    message BLOB NOT NULL,
    checksum BLOB,
    columns INTEGER
);
{loads.INDEX};
CREATE TABLE IF NOT EXISTS staged (id INTEGER PRIMARY KEY, files BLOB NOT NULL);
{dirty_days.TABLE};
{synced.TABLE};
{refusals.TABLE};
{loads.TABLE};
"""

Steps = Sequence[Step[sqlite3.Connection]]


def add_column(table: str, definition: str) -> Callable[[sqlite3.Connection], None]:
    """Return a step that adds a column, such as `checksum BLOB`.

    The step skips a table that does not exist yet: it is created at the newest version when it is first needed.
    """

    def apply(connection: sqlite3.Connection) -> None:
        if has_table(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}")

    return apply


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether the hot log has a table."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (name,)).fetchone() is not None


STEPS: Steps = (
    Step(2, synced.create),
    Step(3, refusals.create),
    Step(4, add_column("batches", "checksum BLOB")),
    Step(5, loads.create),
    Step(6, add_column("node", loads.FIRST_VERSION)),
    Step(7, add_column("batches", "columns INTEGER")),  # null for a batch of an older release
)


def pending(connection: sqlite3.Connection, steps: Steps = STEPS) -> Steps:
    """Return the steps that a hot log still needs.

    Raises:
        StoreTooNew: a newer release wrote the hot log.
    """
    return migrations.pending(STORE, _version(connection) or migrations.FIRST, steps)


def refuse_newer(path: Path) -> None:
    """Raise StoreTooNew if a newer release wrote the hot log. Creates and changes nothing."""
    if path.exists():
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
            pending(connection)


def upgrade(connection: sqlite3.Connection, steps: Steps = STEPS) -> None:
    """Create the tables of a new hot log, or run the pending steps of an older one, in one transaction.

    Another process may do the same at the same time: the state is read again inside the transaction.
    """
    if _version(connection) != 0 and not pending(connection, steps):
        return
    with transaction(connection):
        if has_table(connection, "node"):
            for step in pending(connection, steps):
                step.apply(connection)
        else:
            _create_tables(connection)
        connection.execute(f"PRAGMA user_version={migrations.newest(steps)}")


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _CREATE.split(";"):
        connection.execute(statement)
    connection.execute("INSERT INTO node (id) VALUES (?)", (uuid.uuid4().hex,))


def _version(connection: sqlite3.Connection) -> int:
    """Return the schema version; 0 for a file without tables, or whose tables 0.1.0 created."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
