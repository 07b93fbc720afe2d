"""All work of a compaction by hand: compact the lake, write its rollups, and delete unused files."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial

from warehouse.batch import actions
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.lake_lock import ROLLUPS, lake_lock
from warehouse.lake.delta_table import GRACE_H
from warehouse.lake.roots import Root
from warehouse.maintenance import compact, rollups
from warehouse.maintenance.compact import Compacted
from warehouse.maintenance.rollups import OnMonth, Written, files_by_month
from warehouse.query.engine import Share
from warehouse.rollups import catalog, ranked


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Result of the work: what was compacted, and the number of rollups written."""

    compacted: Compacted
    rollups: int


def run(  # noqa: PLR0913  # where, what, and how
    hot: HotConnection,
    root: Root,
    share: Share,
    today: date,
    wait_s: float,
    progress: Callable[[], AbstractContextManager[OnMonth]],
    *,
    executor: Executor = THIS_PROCESS,
    between: Callable[[], object] = lambda: None,
) -> Upkeep:
    """Compact the lake, write the rollups that are due, and delete unused files and rollups.

    Each step runs, also if one before it failed, unless it would fail for the same reason: see `actions.run_all`.
    `progress` yields the function that is called after each month of rollups. Other parameters: see `compact.compact`.

    Raises:
        ExceptionGroup: several partitions or steps failed.
    """
    done: list[Compacted] = []
    written: list[Written] = []

    def merge() -> None:
        compacted = compact.compact(hot, root, share, wait_s, executor=executor, between=between, turn_wait_s=wait_s)
        done.append(compacted)

    def write_rollups() -> None:
        with progress() as on_month:
            due = rollups.write_due(hot, root, share, today, wait_s, settle_s=0, on_month=on_month, executor=executor)
        written.append(due)

    tasks: list[actions.Action] = [
        ("the compaction", merge),
        ("the new rollups", write_rollups),
        ("the removal of unused files", partial(compact.vacuum, hot, root, wait_s)),
        ("the removal of unused rollups", partial(vacuum_rollups, hot, root, wait_s)),
    ]
    actions.run_all(tasks, actions.is_of_lake)
    return Upkeep(done[0], written[0].rollups)


def vacuum_rollups(hot: HotConnection, root: Root, wait_s: float) -> None:
    """Remove rollups that have not been in use for GRACE_H hours, and what killed writers have left.

    A reader of an older snapshot may use a rollup until then, whether a newer rollup or a compaction replaced it.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
    """
    if not (root / catalog.FOLDER).folders():
        return
    with lake_lock(hot, root, wait_s, ROLLUPS):
        old_s, by_month = time.time() - GRACE_H * 3600, files_by_month(root)
        for month in catalog.list_months(root):
            in_use = {part.rollup.folder for part in catalog.choose(root, by_month.get(month, ())).parts}
            for folder in catalog.list_folders(root, month):
                catalog.vacuum_folder(folder, old_s, is_used=folder in in_use)
            with suppress(OSError):  # not empty, or in an object store
                catalog.month_folder(root, month).local.rmdir()
        ranked.remove_unused(root, old_s)
