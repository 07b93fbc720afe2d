"""Delete the rows of a project, or those of the days before the retention.

All tables lose the rows one month at a time, and loads run in between. `compact.vacuum` removes the files
`delta_table.GRACE_H` hours later. The hot log loses the rows at once, and the moments of reports that were computed
before can no longer be read.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import groupby

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.hotlog import dirty_days, retention, wal
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, roots, row_groups
from warehouse.lake.delta_table import DAILY_ERRORS_TABLE, DAILY_VIEWS_TABLE, HITS_TABLE, File
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance import recount
from warehouse.maintenance.catch_up import OnStep, catch_up
from warehouse.maintenance.load import load
from warehouse.query import engine

STEPS = (
    "before delete from hits",
    "before delete from daily_views",
    "before delete from daily_errors",
    "before clear",
    "after clear",
)


def erase_project(
    hot: HotConnection,
    root: Root,
    database: duckdb.DuckDBPyConnection,
    project: str,
    wait_s: float,
    on_step: OnStep = lambda step: None,
    require_same: Callable[[], object] = lambda: None,
) -> int:
    """Delete a project's rows, those in the hot log included, and return the number of its hits.

    The caller makes sure that nothing is posted to the project meanwhile. An interrupted call can be repeated.
    `require_same` raises an error if a new project may have the id. It is called before each commit, after the rows to
    delete have been chosen, so that rows of the new project stay.

    Raises:
        LakeBusy: see `durability.durable_writes` and `recount.retry_commit`.
    """
    load(hot, root, wait_s)
    days = {
        day
        for spec in delta_table.TABLES
        for day in _days(database, delta_table.list_files(delta_table.open_table(root, spec), spec), project)
    }
    return _erase(hot, root, days, f"project_id = '{project}'", wait_s, on_step, require_same)


def erase_before(
    hot: HotConnection,
    root: Root,
    today: date,
    days: int,
    wait_s: float,
    on_step: OnStep = lambda step: None,
) -> int:
    """Delete the days that ended more than `days` days before `today`, and return the number of their hits.

    Raises:
        LakeBusy: see `durability.durable_writes` and `recount.retry_commit`.
    """
    first_retained = (today - timedelta(days=days)).isoformat()
    load(hot, root, wait_s)
    old = {
        file.partition
        for file in delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
        if file.partition < first_retained
    }
    old |= {day for day in _days_of_errors(root, first_retained[:7]) if day < first_retained}
    if not old:
        return 0
    return _erase(hot, root, old, f"date < '{first_retained}'", wait_s, on_step)


def first_trusted_s(root: Root, database: duckdb.DuckDBPyConnection, now_s: float) -> float:
    """Return the newest trusted time of a folder that has no `clock` record yet, in seconds since 1970.

    It is the time of the last vacuum; without one, the time of the newest hit; without a hit, `now_s`.
    """
    last_vacuum = roots.local_folder(root) / delta_table.LAST_VACUUM
    if last_vacuum.exists():
        return last_vacuum.stat().st_mtime
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


def _days_of_errors(root: Root, last_month: str) -> set[str]:
    """Return the days of `daily_errors` up to a month. A day may have errors and no page view."""
    files = delta_table.list_files(delta_table.open_table(root, DAILY_ERRORS_TABLE), DAILY_ERRORS_TABLE)
    return {
        day.isoformat()
        for file in files
        if file.partition <= last_month
        for day in pc.unique(pq.ParquetFile(roots.open_parquet(file.path)).read(["date"])["date"]).to_pylist()
    }


def _erase(
    hot: HotConnection,
    root: Root,
    days: Iterable[str],
    where: str,
    wait_s: float,
    on_step: OnStep,
    require_same: Callable[[], object] = lambda: None,
) -> int:
    removed = 0
    for _, days_of_month in groupby(sorted(days), key=lambda day: day[:7]):
        with durable_writes(hot, root, wait_s):
            catch_up(hot, root)
            recount.recount_dirty(hot, root)
            removed += _erase_month(hot, root, list(days_of_month), where, on_step, require_same)
        pause_for_waiters()
    retention.delete_loaded(hot, delta_table.open_table(root, HITS_TABLE).version())
    wal.empty(hot)
    return removed


def _erase_month(
    hot: HotConnection,
    root: Root,
    days: Sequence[str],
    where: str,
    on_step: OnStep,
    require_same: Callable[[], object],
) -> int:
    dirty_days.mark_dirty(hot, days)
    month = days[0][:7]
    within = f"{where} AND date >= '{days[0]}' AND date <= '{days[-1]}'"
    on_step("before delete from hits")
    removed = recount.retry_commit(partial(_delete, root, HITS_TABLE, within, month, require_same))
    for spec in (DAILY_VIEWS_TABLE, DAILY_ERRORS_TABLE):
        on_step(f"before delete from {spec.name}")
        in_month = f"{within} AND month = '{month}'"
        recount.retry_commit(partial(_delete, root, spec, in_month, month, require_same))
    on_step("before clear")
    dirty_days.clear_dirty(hot, days)
    on_step("after clear")
    return removed


def _delete(root: Root, spec: delta_table.Spec, where: str, month: str, require_same: Callable[[], object]) -> int:
    """Delete rows of a month, of the newest version of a table.

    Rows of a later version stay, or end the commit with an error.
    """
    table = delta_table.open_table(root, spec)
    files = (file.path for file in delta_table.list_files(table, spec) if file.partition[:7] == month)
    rows_max = row_groups.rows_for(files)
    require_same()
    return delta_table.delete(table, where, rows_max)
