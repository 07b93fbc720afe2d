"""All of `daily_views` made anew from `hits`, a month at a time, while the service runs."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.hotlog import dirty_days
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.lake.lock import pause_for_waiters
from warehouse.maintenance import rollup
from warehouse.maintenance.load import bring_up

OnStep = rollup.OnStep
STEPS = ("before commit of daily_views", "before clear", "after clear")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Months made anew, and the page views that they count."""

    months: int
    views: int


def rebuild(
    hot: sqlite3.Connection,
    root: Path,
    database: duckdb.DuckDBPyConnection,
    wait_s: float,
    on_month: Callable[[int, int], None] = lambda done, of: None,
    on_step: OnStep = lambda step: None,
) -> Rebuilt:
    """Count every month from the hits, in one commit each. Files of `daily_views` are not read: they may be broken.

    The lake is held for a month at a time. Readers see a month as it was or as it is. `on_month` is told how many
    months are done, of how many.

    Raises:
        LakeBusy: see `durability.durable_writes` and `rollup.retried`.
        HotLogBehind: see `load.load`.
    """
    months = sorted({partition[:7] for spec in delta_table.TABLES for partition in _rows(root, spec)})
    for done, month in enumerate(months, start=1):
        with durable_writes(hot, root, wait_s):
            bring_up(hot, root)
            rollup.count_month(root, database, month, on_step)
            on_step("before clear")
            dirty_days.clear_dirty(hot, [day for day in dirty_days.list_dirty(hot) if day[:7] == month])
            on_step("after clear")
        on_month(done, len(months))
        pause_for_waiters()
    hits = _rows(root, HITS_TABLE)
    return Rebuilt(len(months), sum(rows for partition, rows in hits.items() if partition[:7] in months))


def _rows(root: Path, spec: delta_table.Spec) -> dict[str, int]:
    """Rows of each partition."""
    rows: dict[str, int] = {}
    for file in delta_table.list_files(delta_table.open_table(root, spec), spec):
        rows[file.partition] = rows.get(file.partition, 0) + file.rows
    return rows
