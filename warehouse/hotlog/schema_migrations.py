"""Schema versions of the hot log: its tables in a new file, and the migrations that upgrade an older file."""

import sqlite3
import uuid
from collections.abc import Callable, Sequence

from warehouse import migrations
from warehouse.database.statements import Statements, has_table
from warehouse.database.transaction import transaction
from warehouse.hotlog.connection import STATEMENTS, HotConnection
from warehouse.migrations import Migration

STORE = "the hot log"
"""Name of the store in messages."""
_SYNCED = "CREATE TABLE synced_tables (name TEXT PRIMARY KEY, version INTEGER NOT NULL, last_batch INTEGER NOT NULL)"
_REFUSALS = (
    "CREATE TABLE IF NOT EXISTS refusals (id INTEGER PRIMARY KEY AUTOINCREMENT, internal_id TEXT NOT NULL UNIQUE)"
)
_LOADS = (
    "CREATE TABLE loads (through_id INTEGER PRIMARY KEY, loaded_s REAL NOT NULL, bytes INTEGER NOT NULL)",
    "ALTER TABLE node ADD COLUMN generation INTEGER NOT NULL DEFAULT 0",
    "DROP INDEX IF EXISTS batches_rows",
    "CREATE INDEX batches_id_rows ON batches (id, rows)",
)
_BYTES = (
    "UPDATE batches SET bytes = length(message)",
    "DROP INDEX IF EXISTS batches_id_rows",
    "CREATE INDEX batches_id_rows_bytes ON batches (id, rows, bytes)",
)
UNKEYED_LOGS = "unkeyed_logs"
"""Name of the table of imported logs of older releases, which has unkeyed digests of lines. It is renamed, because the
migration has no secret: `ingest.hotlog.ledger_store` keys the digests."""
_RENAME_UNKEYED = (f"ALTER TABLE read_logs RENAME TO {UNKEYED_LOGS}", "DROP INDEX read_logs_after")

ADD_KIND = migrations.add_column("batches", "kind TEXT")  # null for a batch of `hits`

Migrations = Sequence[Migration[sqlite3.Connection]]


def run(*statements: str) -> Callable[[sqlite3.Connection], None]:
    """Return a migration that runs statements."""

    def apply(connection: sqlite3.Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    return apply


def rename_unkeyed(connection: HotConnection) -> None:
    """Give the table of imported logs, if it exists, the name UNKEYED_LOGS."""
    if has_table(connection, "read_logs"):
        for statement in _RENAME_UNKEYED:
            connection.execute(statement)


def add_bytes(connection: HotConnection) -> None:
    """Add the size of each batch, in bytes."""
    connection.execute("ALTER TABLE batches ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0")
    for statement in _BYTES:
        connection.execute(statement)


def drop_recounts(connection: HotConnection) -> None:
    """Delete what the hot log recorded of the table `daily_views`: its version, and the days to recount."""
    connection.execute("DROP TABLE IF EXISTS recounts")
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'recounts'")
    connection.execute("DELETE FROM synced_tables WHERE name = 'daily_views'")


MIGRATIONS: Migrations = (
    Migration(2, run(_SYNCED)),
    Migration(3, run(_REFUSALS)),
    Migration(4, migrations.add_column("batches", "checksum BLOB")),
    Migration(5, run(*_LOADS)),
    Migration(6, migrations.add_column("node", "first_version INTEGER NOT NULL DEFAULT 0")),
    Migration(7, migrations.add_column("batches", "columns INTEGER")),  # null for a batch of an older release
    Migration(8, rename_unkeyed),
    Migration(9, add_bytes),
    Migration(10, drop_recounts),
    Migration(11, ADD_KIND),
)


def pending(connection: sqlite3.Connection, known: Migrations = MIGRATIONS) -> Migrations:
    """Return the migrations that a hot log still needs. Raises StoreTooNew if a newer release wrote the hot log."""
    return migrations.pending(STORE, _version(connection) or migrations.FIRST, known)


def upgrade(connection: sqlite3.Connection, known: Migrations = MIGRATIONS) -> None:
    """Create the tables of a new hot log, or run the pending migrations of an older one, in one transaction.

    Another process may do the same at the same time: the state is read again inside the transaction.
    """
    if _version(connection) != 0 and not pending(connection, known):
        return
    with transaction(connection):
        if has_table(connection, "node"):
            for migration in pending(connection, known):
                migration.apply(connection)
        else:
            create_tables(connection)
        connection.execute(f"PRAGMA user_version={migrations.newest(known)}")


def create_tables(connection: HotConnection) -> None:
    """Create the tables at the newest schema version, and the id of the node."""
    STATEMENTS.create(connection)
    STATEMENTS.run(connection, "ADD_NODE", {"id": uuid.uuid4().hex})


def add_tables(connection: HotConnection, statements: Statements) -> None:
    """Create the tables of another room, unless they exist."""
    if isinstance(connection, sqlite3.Connection):
        statements.create(connection)
    elif not statements.is_complete(
        connection
    ):  # in PostgreSQL, creating an index locks its table even if the index exists
        with connection.changing_tables():
            statements.create(connection)


def _version(connection: sqlite3.Connection) -> int:
    """Return the schema version; 0 for a file without tables, or whose tables 0.1.0 created."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
