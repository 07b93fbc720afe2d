"""Remove rollups and rankings that no reader uses any more."""

import time
from contextlib import suppress

from warehouse.hotlog.connection import HotConnection
from warehouse.lake.delta_table import GRACE_H
from warehouse.lake.roots import Root
from warehouse.maintenance.rollups import files_by_month, lock
from warehouse.rollups import catalog, ranked


def vacuum(hot: HotConnection, root: Root, wait_s: float) -> None:
    """Remove rollups that have not been in use for GRACE_H hours, and what killed writers have left.

    A reader of an older snapshot may use a rollup until then, whether a newer rollup or a compaction replaced it.

    Raises:
        LakeBusy: another process wrote rollups for `wait_s` seconds.
    """
    if not (root / catalog.FOLDER).folders():
        return
    with lock(hot, root, wait_s):
        old_s, by_month = time.time() - GRACE_H * 3600, files_by_month(root)
        for month in catalog.list_months(root):
            in_use = {part.rollup.folder for part in catalog.choose(root, by_month.get(month, ())).parts}
            for folder in catalog.list_folders(root, month):
                catalog.vacuum_folder(folder, old_s, is_used=folder in in_use)
            with suppress(OSError):  # not empty, or in an object store
                catalog.month_folder(root, month).local.rmdir()
        ranked.remove_unused(root, old_s)
