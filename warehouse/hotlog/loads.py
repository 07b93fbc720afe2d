"""Loads: which batches of the hot log are in all tables of the lake, since when, and how far the tables are synced.

A batch above `loaded_through` waits to be loaded. Loaded batches stay in the hot log for ten minutes, because the
moments of reports name them (`warehouse.hotlog.retention`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from warehouse.hotlog.connection import STATEMENTS, HotConnection


def loaded_through(connection: HotConnection) -> int:
    """Return the id of the last batch that all tables have; 0 before the first load."""
    return int(STATEMENTS.run(connection, "LOADED_THROUGH").fetchone()[0])


def size_bytes(connection: HotConnection, after: int, through: int) -> int:
    """Return the size of the batches above `after` and up to `through`, in bytes."""
    return int(STATEMENTS.run(connection, "SIZE", {"after": after, "through": through}).fetchone()[0])


def add(connection: HotConnection, through: int, loaded_s: float, bytes: int) -> None:
    """Add a load, inside the caller's transaction. A load that is recorded already stays as it is."""
    STATEMENTS.run(connection, "ADD_LOAD", {"through": through, "loaded_s": loaded_s, "bytes": bytes})


def replace_all(connection: HotConnection, through: int) -> None:
    """Make `through` the last loaded batch, inside the caller's transaction: later batches wait to be loaded again."""
    STATEMENTS.run(connection, "DELETE_LOADS")
    if through > 0:
        add(connection, through, 0, max(1, size_bytes(connection, 0, through)))


def generation(connection: HotConnection) -> int:
    """Return the generation of moments, which rises each time that all moments are revoked."""
    return int(STATEMENTS.run(connection, "GENERATION").fetchone()[0])


def first_version(connection: HotConnection) -> int:
    """Return the first version of `hits` that a moment may have."""
    return int(STATEMENTS.run(connection, "FIRST_VERSION").fetchone()[0])


def revoke_moments(connection: HotConnection, first_version: int = 0) -> None:
    """Revoke all moments: their rows are not read any more. New ones have `first_version` or a later one."""
    STATEMENTS.run(connection, "REVOKE_MOMENTS", {"version": first_version})


@dataclass(frozen=True, slots=True)
class Synced:
    """Newest completely synced version of a Delta table, and the id of the last hot batch in it (0 without batches)."""

    version: int
    last_batch: int


def synced(connection: HotConnection) -> dict[str, Synced]:
    """Return how far each Delta table is synced, by its name. Empty before the first load by a release after 0.1.0."""
    return {name: Synced(version, last_batch) for name, version, last_batch in STATEMENTS.run(connection, "SYNCED")}


def record_synced(connection: HotConnection, tables: Mapping[str, Synced]) -> None:
    """Raise the recorded versions and batches to the values of `tables`, if they are lower."""
    values = [{"name": name, "version": each.version, "last_batch": each.last_batch} for name, each in tables.items()]
    STATEMENTS.run_many(connection, "RECORD_SYNCED", values)
