"""The hot log in PostgreSQL: the schema of its tables, and the lock of all its write transactions.

Write transactions lock one row, the counter of the batch ids, and run one at a time, as after `BEGIN IMMEDIATE` in
SQLite. Batch ids therefore rise in commit order over all nodes, which a sequence of PostgreSQL does not promise, and
all readers, `asOf` and the loader are the same for both databases. PostgreSQL releases the lock after the transaction
is visible. A post without event ids is one round trip. If the server has all of it, it commits even while the node is
paused. `IDLE_IN_TRANSACTION_S` limits longer transactions, and those of which the server has only a part.
"""

from collections.abc import Sequence
from contextlib import closing

from warehouse import migrations
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.psycopg_connection import COUNT_OTHERS
from warehouse.database.statements import has_table
from warehouse.database.transaction import BUSY_TIMEOUT_S
from warehouse.errors import StoreTooNew
from warehouse.hotlog import schema_migrations
from warehouse.hotlog.connection import STATEMENTS, Server
from warehouse.migrations import Migration

SCHEMA = "hot_log"
"""Name of the schema of PostgreSQL in which the tables are."""
MIGRATIONS: Sequence[Migration[PostgresqlConnection]] = (
    Migration(2, schema_migrations.rename_unkeyed),
    Migration(3, schema_migrations.add_bytes),
    Migration(4, schema_migrations.drop_recounts),
    Migration(5, schema_migrations.ADD_KIND),
)
VERSION = migrations.newest(MIGRATIONS)
"""Newest schema version of the tables in PostgreSQL."""
LOCK = "SELECT seq FROM sqlite_sequence WHERE name = 'batches' FOR UPDATE"
_COUNT = """
CREATE FUNCTION next_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = TG_TABLE_NAME RETURNING seq INTO NEW.id;
    RETURN NEW;
END $$
"""
COUNTED = "batches"
"""Table whose highest id is read from the counter."""


def connect(server: Server, lock_timeout_s: float = BUSY_TIMEOUT_S, *, create: bool = True) -> PostgresqlConnection:
    """Connect to the hot log. If `create`, create its tables if they are missing, and upgrade older ones.

    Raises:
        StoreTooNew: a newer release wrote the hot log; nothing is changed.
        ServerError: the server does not answer or refuses the connection.
    """
    connection = PostgresqlConnection(server.url, SCHEMA, LOCK, lock_timeout_s)
    try:
        if create and _version(connection) is None:
            _create(connection)
        _require_known(connection)
        if create and _version(connection) != VERSION:
            _upgrade(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def count_other_clients(server: Server) -> int:
    """Return the number of connections of other services, workers and commands, on any node, to the hot log."""
    with closing(PostgresqlConnection(server.url, SCHEMA, LOCK, BUSY_TIMEOUT_S)) as connection:
        return int(connection.execute(COUNT_OTHERS).fetchone()[0])


def _require_known(connection: PostgresqlConnection) -> None:
    version = _version(connection) or VERSION
    if version > VERSION:
        raise StoreTooNew(
            f"{schema_migrations.STORE} has schema version {version} in PostgreSQL, and this Readership knows versions "
            f"up to {VERSION}: install the release that wrote it, or a newer one; nothing was changed"
        )


def _version(connection: PostgresqlConnection) -> int | None:
    if not has_table(connection, "schema_version"):
        return None
    row = connection.execute("SELECT version FROM schema_version").fetchone()
    return int(row[0]) if row else None


def _create(connection: PostgresqlConnection) -> None:
    """Create the tables in one transaction, unless another process has done so meanwhile."""
    with connection.changing_tables():
        if _version(connection) is None:
            create(connection)


def _upgrade(connection: PostgresqlConnection) -> None:
    """Run the migrations that the tables still need, unless another process has done so meanwhile."""
    with connection.changing_tables():
        for migration in migrations.pending(schema_migrations.STORE, _version(connection) or VERSION, MIGRATIONS):
            migration.apply(connection)
        connection.execute("UPDATE schema_version SET version = %s", (VERSION,))


def create(connection: PostgresqlConnection) -> None:
    """Create the schema and the tables, inside the caller's transaction."""
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    schema_migrations.create_tables(connection)
    STATEMENTS.run_script(connection, "CREATE_SEQUENCES")
    connection.execute(_COUNT)
    connection.execute("INSERT INTO sqlite_sequence VALUES (%s, 0)", (COUNTED,))
    connection.execute(f"CREATE TRIGGER next_id BEFORE INSERT ON {COUNTED} FOR EACH ROW EXECUTE FUNCTION next_id()")
    connection.execute("INSERT INTO schema_version VALUES (%s)", (VERSION,))
