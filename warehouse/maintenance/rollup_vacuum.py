"""Remove rollups and rankings that no reader uses any more."""

import time
from contextlib import suppress

from warehouse.lake import roots
from warehouse.lake.delta_table import GRACE_H, HITS_TABLE
from warehouse.lake.roots import Root
from warehouse.maintenance.rollups import files_by_month, lock
from warehouse.rollups import catalog, ranked


def vacuum(root: Root, wait_s: float) -> None:
    """Remove rollups that no reader uses any more.

    These are rollups that a newer one replaced more than GRACE_H hours ago, folders without `coverage.json` of the same
    age, and rollups whose files have left the disk.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
    """
    months = catalog.list_months(root)
    if not months and not (root / catalog.FOLDER).folders():
        return
    with lock(root, wait_s):
        by_month = files_by_month(root)
        for month in months:
            chosen = catalog.choose(root, by_month.get(month, ()))
            in_use = {part.rollup.folder for part in chosen.parts}
            for folder in _unused(root, month) - in_use:
                folder.remove_folder()
            with suppress(OSError):  # not empty, or in an object store
                catalog.month_folder(root, month).local.rmdir()
        ranked.remove_unused(root, time.time() - GRACE_H * 3600)


def _unused(root: Root, month: str) -> set[Root]:
    """Return the folders of a month that may be removed unless the rollup is in use now."""
    old_s = time.time() - GRACE_H * 3600
    readable = {rollup.folder: rollup for rollup in catalog.list_rollups(root, month)}
    committed_s = {folder: roots.modified_s(folder / catalog.COVERAGE) for folder in readable}
    newest_old_s = max((seconds for seconds in committed_s.values() if seconds <= old_s), default=0)
    unused = set()
    for folder in catalog.list_folders(root, month):
        if folder not in readable:
            is_unused = max([roots.modified_s(folder), *(stat.st_mtime for _, stat in folder.files())]) <= old_s
        else:
            is_unused = committed_s[folder] < newest_old_s or not _has_files(root, readable[folder])
        if is_unused:
            unused.add(folder)
    return unused


def _has_files(root: Root, rollup: catalog.Rollup) -> bool:
    """Return whether the disk has all files of at least one day that the rollup counts."""
    table = root / HITS_TABLE.name
    return any(
        all((table / f"{HITS_TABLE.partition}={day}" / name).exists() for name in names)
        for day, names in rollup.files.items()
    )
