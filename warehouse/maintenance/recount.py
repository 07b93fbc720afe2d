"""Recount `daily_views` from `hits`: dirty days, single months, or the whole table.

The caller of a `recount_` function has locked the lake, and the tables have the same offset (see `catch_up`).
Otherwise a batch that only one of these two tables has would be counted twice or never.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from warehouse import daily_count
from warehouse.errors import LakeBusy
from warehouse.hotlog import batches, dirty_days
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, rewriting, row_groups
from warehouse.lake.delta_table import DAILY_VIEWS_TABLE, HITS_TABLE
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance.catch_up import OnStep, catch_up
from warehouse.schema import DAILY_VIEWS

if TYPE_CHECKING:
    import duckdb

ATTEMPTS = 5
"""Attempts at a commit that conflicts with appends of other nodes."""
SPILL = ".spill"
"""Name of the folder in the local folder of the lake into which a recount spills; used under the lake's lock."""
OTHER_BYTES = 100
"""Approximate size of a row of `daily_views` without its path, in bytes."""
STEPS = ("before commit of daily_views", "before clear", "after clear")

Result = TypeVar("Result")

_OTHER_DAYS = f"SELECT {', '.join(DAILY_VIEWS.names)} FROM {{files}} WHERE date NOT IN (SELECT unnest($days::DATE[]))"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Result of a rebuild: months recounted, and the page views in them."""

    months: int
    views: int


def rebuild(
    hot: HotConnection,
    root: Root,
    database: "duckdb.DuckDBPyConnection",
    wait_s: float,
    on_month: Callable[[int, int], None] = lambda done, total: None,
    on_step: OnStep = lambda step: None,
) -> Rebuilt:
    """Recount all of `daily_views`, one commit a month. The files of `daily_views` are not read: they may be damaged.

    The lake is locked for one month at a time, and readers see each month either before or after its commit.
    `on_month` is called after each month with the number of months done and the total.

    Raises:
        LakeBusy: see `durability.durable_writes` and `retry_commit`.
        HotLogBehind: see `load.load`.
    """
    specs = (HITS_TABLE, DAILY_VIEWS_TABLE)
    months = sorted({partition[:7] for spec in specs for partition in _rows_by_partition(root, spec)})
    for done, month in enumerate(months, start=1):
        with durable_writes(hot, root, wait_s):
            catch_up(hot, root)
            retry_commit(partial(_replace_month, hot, root, database, month, None, on_step))
            on_step("before clear")
            dirty_days.clear_dirty(hot, [day for day in dirty_days.list_dirty(hot) if day[:7] == month])
            on_step("after clear")
        on_month(done, len(months))
        pause_for_waiters()
    hits = _rows_by_partition(root, HITS_TABLE)
    return Rebuilt(len(months), sum(rows for partition, rows in hits.items() if partition[:7] in months))


def recount_dirty(hot: HotConnection, root: Root) -> None:
    """Recount the dirty days and clear them. Without a dirty day there is no commit.

    Raises:
        LakeBusy: see `retry_commit`.
    """
    days = dirty_days.list_dirty(hot)
    if days:
        from warehouse.query import engine  # noqa: PLC0415  # DuckDB takes 0.1 s to import, and few loads have a dirty day

        spill = root.local / SPILL
        shutil.rmtree(spill, ignore_errors=True)  # left by a process that was killed
        with closing(engine.connect(spill)) as database:
            recount_days(hot, root, database, days)
        dirty_days.clear_dirty(hot, days)


def recount_days(
    hot: HotConnection,
    root: Root,
    database: "duckdb.DuckDBPyConnection",
    days: Sequence[str],
    on_step: OnStep = lambda step: None,
) -> None:
    """Recount days (YYYY-MM-DD), one commit a month. The counts of the other days are copied unchanged.

    Raises:
        LakeBusy: see `retry_commit`; or another node loads, because this one has lost the lake's lock.
    """
    for month, days_of_month in groupby(sorted(days), key=lambda day: day[:7]):
        retry_commit(partial(_replace_month, hot, root, database, month, frozenset(days_of_month), on_step))


def retry_commit(commit: Callable[[], Result]) -> Result:
    """Call `commit` and return its result. If an append of another node makes the commit fail, repeat the call.

    Raises:
        LakeBusy: all ATTEMPTS calls failed for this reason.
    """
    for _ in range(ATTEMPTS):
        try:
            return commit()
        except CommitFailedError:
            continue
    raise LakeBusy(f"other nodes wrote into the same days {ATTEMPTS} times over; try again later")


def _replace_month(
    hot: HotConnection,
    root: Root,
    database: "duckdb.DuckDBPyConnection",
    month: str,
    days: frozenset[str] | None,
    on_step: OnStep,
) -> None:
    """Replace a month of `daily_views`: recount `days`, all of them if None, and copy the counts of the other days."""
    from warehouse.query import engine  # noqa: PLC0415  # DuckDB takes 0.1 s to import, and few loads have a dirty day

    daily_views = delta_table.open_table(root, DAILY_VIEWS_TABLE)
    hits = delta_table.open_table(root, HITS_TABLE)
    _require_same_offset(batches.node_id(hot), hits, daily_views)
    copied = () if days is None else delta_table.list_files(daily_views, DAILY_VIEWS_TABLE, month)
    recounted = [
        file
        for file in delta_table.list_files(hits, HITS_TABLE)
        if (file.partition[:7] == month if days is None else file.partition in days)
    ]
    selects = []
    if copied:
        selects.append(_OTHER_DAYS.format(files=engine.parquet(copied)))
    if recounted:
        selects.append(daily_count.count_sql(engine.parquet(recounted)))
    union = " UNION ALL ".join(selects) or f"FROM {engine.no_rows(DAILY_VIEWS_TABLE)}"
    values = {"days": sorted(days or ())} if copied else {}
    with database.cursor() as cursor:
        ((row_bytes,),) = cursor.execute(f"SELECT max(strlen(path)) + {OTHER_BYTES} FROM ({union})", values).fetchall()
        rows = cursor.sql(
            f"FROM ({union}) ORDER BY {', '.join(DAILY_VIEWS_TABLE.order)}",
            params=values,
        ).to_arrow_reader(engine.STREAM_ROWS)
        on_step("before commit of daily_views")
        rows_max = row_groups.rows_of(row_bytes or 0)
        rewriting.replace_partition(daily_views, DAILY_VIEWS_TABLE, month, rows.cast(DAILY_VIEWS), rows_max)


def _require_same_offset(node: str, hits: DeltaTable, daily_views: DeltaTable) -> None:
    """Require that `hits` has no batch that `daily_views` lacks: it would be counted here, and again by its load.

    Both are open. After a later load, the commit of this recount is refused, because the load changed the same month.

    Raises:
        LakeBusy: another node loads, because this one was paused and has lost the lake's lock.
    """
    if delta_table.offset(hits, node) != delta_table.offset(daily_views, node):
        raise LakeBusy("another node loads hits: the rest of the work is left for the next run")


def _rows_by_partition(root: Root, spec: delta_table.Spec) -> dict[str, int]:
    rows: dict[str, int] = {}
    for file in delta_table.list_files(delta_table.open_table(root, spec), spec):
        rows[file.partition] = rows.get(file.partition, 0) + file.rows
    return rows
