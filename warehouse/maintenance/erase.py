"""Rows removed for good: a project's, and those of days past the retention.

They leave both tables a month at a time, so that loads go on in between. Their files go with `compact.tidy`,
`delta_table.GRACE_H` hours later; of the hot log they are gone at once.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path

import duckdb

from warehouse.hotlog import dirty_days, wal
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table
from warehouse.lake.delta_table import DAILY_VIEWS_TABLE, HITS_TABLE, File
from warehouse.lake.lock import pause_for_waiters
from warehouse.maintenance import rollup
from warehouse.maintenance.catch_up import OnStep, catch_up
from warehouse.maintenance.load import load
from warehouse.query import engine

STEPS = ("before delete from hits", "before delete from daily_views", "before clear", "after clear")


def erase_project(
    hot: sqlite3.Connection,
    root: Path,
    database: duckdb.DuckDBPyConnection,
    project: str,
    wait_s: float,
    on_step: OnStep = lambda step: None,
) -> int:
    """Remove a project's rows, also those that wait in the hot log; returns how many hits they were.

    Nothing of the project may be posted meanwhile. If it is cut short it may be repeated.

    Raises:
        LakeBusy: see `durability.durable_writes` and `rollup.retry_commit`.
    """
    load(hot, root, wait_s)
    days = {
        day
        for spec in delta_table.TABLES
        for day in _days(database, delta_table.list_files(delta_table.open_table(root, spec), spec), project)
    }
    return _erase(hot, root, days, f"project_id = '{project}'", wait_s, on_step)


def erase_before(
    hot: sqlite3.Connection,
    root: Path,
    today: date,
    days: int,
    wait_s: float,
    on_step: OnStep = lambda step: None,
) -> int:
    """Remove the days that ended more than `days` days before `today`; returns how many hits they held.

    Raises:
        LakeBusy: see `durability.durable_writes` and `rollup.retry_commit`.
    """
    first_kept = (today - timedelta(days=days)).isoformat()
    load(hot, root, wait_s)
    old = {
        file.partition
        for file in delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
        if file.partition < first_kept
    }
    return _erase(hot, root, old, f"date < '{first_kept}'", wait_s, on_step)


def first_trusted_s(root: Path, database: duckdb.DuckDBPyConnection, now_s: float) -> float:
    """Return the newest time that a folder without a `clock` record shows, in seconds since 1970.

    That is the time of its last upkeep, else when its newest hit was received, else `now_s`.
    """
    tidied = root / delta_table.LAST_VACUUM
    if tidied.exists():
        return tidied.stat().st_mtime
    files = delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
    if not files:
        return now_s
    with database.cursor() as cursor:
        ((newest_s,),) = cursor.execute(f"SELECT epoch(max(received_at)) FROM {engine.parquet(files)}").fetchall()
    return float(newest_s)


def _days(database: duckdb.DuckDBPyConnection, files: Sequence[File], project: str) -> list[str]:
    if not files:
        return []
    sql = f"SELECT DISTINCT date::VARCHAR FROM {engine.parquet(files)} WHERE project_id = $project"
    with database.cursor() as cursor:
        return [day for (day,) in cursor.execute(sql, {"project": project}).fetchall()]


def _erase(hot: sqlite3.Connection, root: Path, days: Iterable[str], where: str, wait_s: float, on_step: OnStep) -> int:
    removed = 0
    for _, of_month in groupby(sorted(days), key=lambda day: day[:7]):
        with durable_writes(hot, root, wait_s):
            catch_up(hot, root)
            rollup.recount_dirty(hot, root)
            removed += _erase_of_month(hot, root, list(of_month), where, on_step)
        pause_for_waiters()
    wal.empty(hot)
    return removed


def _erase_of_month(hot: sqlite3.Connection, root: Path, days: Sequence[str], where: str, on_step: OnStep) -> int:
    dirty_days.mark_dirty(hot, days)
    within = f"{where} AND date >= '{days[0]}' AND date <= '{days[-1]}'"
    on_step("before delete from hits")
    removed = rollup.retry_commit(partial(_delete, root, HITS_TABLE, within))
    on_step("before delete from daily_views")
    rollup.retry_commit(partial(_delete, root, DAILY_VIEWS_TABLE, f"{within} AND month = '{days[0][:7]}'"))
    on_step("before clear")
    dirty_days.clear_dirty(hot, days)
    on_step("after clear")
    return removed


def _delete(root: Path, spec: delta_table.Spec, where: str) -> int:
    return delta_table.delete(delta_table.open_table(root, spec), where)
