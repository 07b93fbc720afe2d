"""All work of a compaction by hand: compact the lake, write its rollups, and delete unused files."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from warehouse.batch import steps
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.lake_lock import rollups_lock
from warehouse.lake.roots import Root
from warehouse.maintenance import compact, rollup_vacuum
from warehouse.maintenance.compact import Compacted
from warehouse.maintenance.rollups import OnMonth, Written


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Result of the work: what was compacted, and the number of rollups written."""

    compacted: Compacted
    rollups: int


def run(
    hot: HotConnection,
    root: Root,
    wait_s: float,
    compact_all: Callable[[], Compacted],
    write_due: Callable[..., Written],
    progress: Callable[[], AbstractContextManager[OnMonth]],
) -> Upkeep:
    """Compact the lake by `compact_all`, write rollups by `write_due`, and delete unused files and rollups.

    Each step runs, also if one before it failed, unless it would fail for the same reason: see `steps.run_all`.
    `write_due` is called with `on_month`, which `progress` yields.

    Raises:
        ExceptionGroup: several partitions or steps failed.
    """
    done: list[Compacted] = []
    written: list[Written] = []

    def write_rollups() -> None:
        with progress() as on_month, rollups_lock(hot, wait_s):
            written.append(write_due(on_month=on_month))

    def remove_rollups() -> None:
        with rollups_lock(hot, wait_s):
            rollup_vacuum.vacuum(root, wait_s)

    tasks: list[steps.Step] = [
        ("the compaction", lambda: done.append(compact_all())),
        ("the new rollups", write_rollups),
        ("the removal of unused files", lambda: compact.vacuum(hot, root, wait_s)),
        ("the removal of unused rollups", remove_rollups),
    ]
    steps.run_all(tasks, steps.is_of_lake)
    return Upkeep(done[0], written[0].rollups)
