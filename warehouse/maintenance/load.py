"""Load the hot log into the lake, and when a load is due."""

import time
from collections.abc import Callable

from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake.roots import Root
from warehouse.maintenance.catch_up import Loaded, OnPoint, catch_up

DUE_BYTES = 64 * 1024 * 1024
"""Size of the waiting hits at which a load is due, in bytes. 100,000 common hits take half of it."""


def is_due(hot: HotConnection, rows: int, age_s: float, now_s: float) -> bool:
    """Return whether a load is due.

    It is due when `rows` hits or DUE_BYTES wait in the hot log, or when the oldest has waited for `age_s` seconds.
    `now_s` is seconds since 1970.
    """
    backlog = batches.backlog(hot)
    return backlog.rows >= rows or backlog.bytes >= DUE_BYTES or backlog.age_s(now_s) >= age_s


def load(
    hot: HotConnection,
    root: Root,
    wait_s: float,
    on_point: OnPoint = lambda point: None,
    now: Callable[[], float] = time.time,
) -> Loaded:
    """Append the hits that wait in the hot log to the tables.

    The hits stay in the hot log for `retention.AS_OF_S`, but do not wait any more. Hits posted during the load are left
    for the next one. `now` returns the time in seconds since 1970.

    Raises:
        LakeBusy: see `durability.durable_writes`.
        HotLogBehind: the hot log is older than the lake.
        DataIncomplete: the lake lacks what was stored in it: see `durability.require_commits`.
    """
    with durable_writes(hot, root, wait_s):
        return catch_up(hot, root, on_point, now)
