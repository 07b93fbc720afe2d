"""Schema versions of the lake's Delta tables: a table property, and the migrations that raise it.

A new column does not rewrite files: rows of older files read as null there (see `warehouse.query.engine.rows`).
"""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable, Schema

from warehouse import migrations
from warehouse.columns.hits import COLUMNS
from warehouse.lake import delta_log
from warehouse.lake.delta_log import NO_HOOKS
from warehouse.migrations import Migration
from warehouse.schema import HITS, REQUESTS

PROPERTY = "readership.schemaVersion"
"""Name of the table property that records the version."""

Migrations = Sequence[Migration[DeltaTable]]


def add_columns(*columns: pa.Field) -> Callable[[DeltaTable], None]:
    """Return a migration that adds columns, which must be nullable. The migration skips columns that exist.

    Columns and version are two commits: a process that is killed in between leaves a table that has the columns.
    """
    assert all(column.nullable for column in columns), "older files have no values for a new column"

    def apply(table: DeltaTable) -> None:
        present = {field.name for field in table.schema().fields}
        missing = [column for column in columns if column.name not in present]
        if missing:
            fields = Schema.from_arrow(pa.schema(missing)).fields
            table.alter.add_columns(fields, post_commithook_properties=NO_HOOKS)

    return apply


def remove_daily_views(hits: DeltaTable) -> None:
    """Delete the table `daily_views` of older releases, with its staged files. It had counts of `hits`, and no more."""
    lake = delta_log.folder(hits).parent
    if "daily_views" in lake.folders():
        (lake / "daily_views").remove_folder()
        lake.sync()


def _migrations_of_hits() -> Migrations:
    versions = {each.since for each in COLUMNS} - {migrations.FIRST}
    added = [
        Migration(each, add_columns(*(HITS.field(column.name) for column in COLUMNS if column.since == each)))
        for each in versions
    ]
    return sorted([*added, Migration(3, remove_daily_views)], key=lambda migration: migration.version)


MIGRATIONS: Mapping[str, Migrations] = {
    "hits": _migrations_of_hits(),
    "requests": [Migration(2, add_columns(*map(REQUESTS.field, ("source", "path", "errors"))))],
}
"""Migrations of each table, by its name; none without an entry."""


def pending(table: DeltaTable, name: str, known: Migrations) -> Migrations:
    """Return the migrations that the table still needs. Raises StoreTooNew if a newer release wrote the table."""
    version = int(table.metadata().configuration.get(PROPERTY, migrations.FIRST))
    return migrations.pending(f"the table {name} of the lake", version, known)


def upgrade(table: DeltaTable, name: str, known: Migrations) -> None:
    """Run the pending migrations. The caller has the lake's lock, and syncs the commits."""
    for migration in pending(table, name, known):
        migration.apply(table)
        table.alter.set_table_properties(
            {PROPERTY: str(migration.version)}, raise_if_not_exists=False, post_commithook_properties=NO_HOOKS
        )
