"""Record, in the hot log, of how far each Delta table is synced: see `warehouse.integrity.durability`."""

from collections.abc import Mapping
from dataclasses import dataclass

from warehouse.hotlog.connection import STATEMENTS, HotConnection

NAME = "synced_tables"


@dataclass(frozen=True, slots=True)
class Synced:
    """Newest completely synced version of a Delta table, and the id of the last hot batch in it (0 without batches)."""

    version: int
    last_batch: int


def recorded(connection: HotConnection) -> dict[str, Synced]:
    """Return how far each Delta table is synced, by its name. Empty before the first load by a release after 0.1.0."""
    rows = STATEMENTS.run(connection, "SYNCED")
    return {name: Synced(version, last_batch) for name, version, last_batch in rows}


def record(connection: HotConnection, tables: Mapping[str, Synced]) -> None:
    """Raise the recorded versions and batches to those of `tables`; a record that is as high already is not written."""
    values = [
        {"name": name, "version": table.version, "last_batch": table.last_batch} for name, table in tables.items()
    ]
    STATEMENTS.run_many(connection, "RECORD_SYNCED", values)


def forget(connection: HotConnection) -> None:
    """Delete all records."""
    STATEMENTS.run(connection, "FORGET_SYNCED")
