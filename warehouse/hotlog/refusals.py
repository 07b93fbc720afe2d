"""Deleted projects, whose rows the hot log refuses.

Each project has an internal id, which is not reused when a project is created again under the same id. A deletion adds
the internal id to this table before it erases rows, and each writer reads the table in the transaction that stores its
rows. A request that began before a deletion therefore stores nothing after it, however long the request takes.
"""

from warehouse.hotlog.connection import STATEMENTS, HotConnection


def add(connection: HotConnection, internal_id: str) -> None:
    """Refuse the rows of a project in every transaction that begins after this call. Idempotent."""
    STATEMENTS.run_alone(connection, "ADD_REFUSAL", {"internal_id": internal_id})


def last(connection: HotConnection) -> int:
    """Return the id of the newest refusal; 0 without refusals."""
    return int(STATEMENTS.run(connection, "LAST_REFUSAL").fetchone()[0])


def internal_ids(connection: HotConnection) -> frozenset[str]:
    """Return the internal ids of all deleted projects."""
    return frozenset(internal_id for (internal_id,) in STATEMENTS.run(connection, "REFUSED"))


def has(connection: HotConnection, internal_id: str) -> bool:
    """Return whether the rows of a project are refused."""
    return STATEMENTS.run(connection, "IS_REFUSED", {"internal_id": internal_id}).fetchone() is not None
