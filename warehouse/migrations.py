"""Schema versions: numbered migrations that bring a store of an older release to the newest version.

Each store records one version. Stores of Readership 0.1.0, which recorded none, have version 1. A new store is created
at the newest version. An older store takes the migrations above its version in order; a newer store is refused
unchanged. Each room that owns a store lists its migrations: `warehouse.control.schema_migrations`,
`warehouse.hotlog.schema_migrations`, `warehouse.lake.table_schema`.

To change a schema: change the definition that new stores are created from, and append a migration to the store's list.
A released migration never changes, so it must not use definitions that change with the code, such as a script CREATE.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from warehouse.database.statements import Connection, has_table
from warehouse.errors import StoreTooNew

FIRST = 1
"""Version of a store without a recorded version, which Readership 0.1.0 wrote."""

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Migration(Generic[Target]):
    """A change of a store's schema that brings the store to `version`."""

    version: int
    apply: Callable[[Target], None]


def newest(migrations: Sequence[Migration[Target]]) -> int:
    """Return the version after all migrations."""
    assert [migration.version for migration in migrations] == list(range(FIRST + 1, FIRST + 1 + len(migrations))), (
        "migrations are numbered without a gap"
    )
    return FIRST + len(migrations)


def pending(store: str, version: int, migrations: Sequence[Migration[Target]]) -> Sequence[Migration[Target]]:
    """Return the migrations that the store needs; `store` is its name in the error. Raises StoreTooNew."""
    newest_version = newest(migrations)
    if version > newest_version:
        raise StoreTooNew(
            f"{store} has schema version {version}, and this Readership knows versions up to {newest_version}: "
            "install the release that wrote it, or a newer one; nothing was changed"
        )
    return migrations[version - FIRST :]


def add_column(table: str, definition: str) -> Callable[[Connection], None]:
    """Return a migration of a database that adds a column, such as `preset TEXT`.

    The migration skips a table that does not exist yet: it is created at the newest version when it is first needed.
    """

    def apply(connection: Connection) -> None:
        if has_table(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}")

    return apply
