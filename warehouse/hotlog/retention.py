"""Retention of loaded batches: for AS_OF_S after the load that added them to the lake.

A moment of a report consists of a version of `hits` and the batches that this version lacked. Both can be read until
the batches are deleted, however often the lake is loaded and compacted meanwhile.
"""

from collections.abc import Mapping

from warehouse.database.transaction import transaction
from warehouse.hotlog import batches, loads
from warehouse.hotlog.connection import STATEMENTS, HotConnection
from warehouse.hotlog.loads import Synced

AS_OF_S = 600
"""Time for which a moment can be read, and for which a batch stays in the hot log after its load, in seconds."""
RETAINED_BYTES_MAX = 1024 * 1024 * 1024
"""Maximum size of the loaded batches in the hot log, in bytes. The oldest are deleted first."""
FREE_SHARE = 10
"""Divisor of the free disk space: loaded batches take at most the quotient."""


def bytes_max(free_bytes: int) -> int:
    """Return the maximum size of the loaded batches on a disk with so much free space, both in bytes."""
    return min(RETAINED_BYTES_MAX, free_bytes // FREE_SHARE)


def mark_loaded(connection: HotConnection, through: int, tables: Mapping[str, Synced], now_s: float) -> None:
    """Mark the batches up to `through` loaded: all tables have them. Record how far the tables are synced."""
    before = loads.loaded_through(connection)
    size = loads.size_bytes(connection, before, through)  # before the transaction, because posts wait for it
    with transaction(connection):
        loads.record_synced(connection, tables)
        if through > before:
            loads.add(connection, through, now_s, size)


def delete_due(connection: HotConnection, now_s: float, bytes_max: int) -> None:
    """Delete the batches whose load was AS_OF_S ago, and the oldest loaded ones beyond `bytes_max`.

    If the clock was set back, a load may be in the future; its age is then the time until it.
    """
    values = {"now_s": now_s, "age_s": AS_OF_S, "bytes_max": bytes_max}
    _delete_through(connection, int(STATEMENTS.run(connection, "LAST_DUE", values).fetchone()[0] or 0))


def delete_loaded(connection: HotConnection, version: int) -> None:
    """Delete all loaded batches, and revoke all moments, because some of their rows are erased.

    `version` is a version of `hits` without the rows. A client can change the text of a moment, and name an older one.
    """
    loads.revoke_moments(connection, version)
    _delete_through(connection, loads.loaded_through(connection))


def _delete_through(connection: HotConnection, id: int) -> None:
    if id > 0:
        batches.delete_through(connection, id)
        with transaction(connection):
            STATEMENTS.run(connection, "EMPTY_LOADS", {"through": id})
            STATEMENTS.run(connection, "DELETE_EMPTY_LOADS")
