"""The deletion of a project from the control database, the hot log and the lake, and of hits of a project.

Two processes may delete a project at once, and another project may be created under its id when the first process is
done. Rows outside of the control database have the id of the project, but not its internal id. Each step therefore
deletes rows by the internal id, or it first chooses rows by the id, then checks that the same project still exists, and
then deletes these rows.
"""

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from agent.git import workspace
from agent.jobs import store
from api import cache
from api.accounts import keys
from api.cli.output import LOCK_WAIT_S
from api.settings import Settings
from ingest.hotlog import deduplication, ledger_store
from ingest.visitors.salts import open_salts
from warehouse.control import projects
from warehouse.database.pool import Pool
from warehouse.hotlog import batches, refusals, wal
from warehouse.integrity.lake_lock import DELETIONS, lake_lock
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import rollups
from warehouse.maintenance.erase import Chosen, DayCounts, count, erase_hits
from warehouse.query.engine import Share

FOLDER = "deletions"
"""Name of the folder, in the run folder, whose lock the last step takes."""
POINTS = ("before revoke", "before erase", "before forget", "before delete")


def delete_project(
    settings: Settings,
    control: Pool,
    id: str,
    internal_id: str,
    on_point: Callable[[str], object] = lambda point: None,
    wait_s: float = LOCK_WAIT_S,
    cached_s: float = cache.TTL_S,
) -> int:
    """Delete a project with its keys, agent jobs and rows, and return the number of its hits that this call deleted.

    An interrupted call can be repeated. `cached_s` is the time for which server processes have the project in their
    caches.

    Raises:
        ProjectGone: another process has deleted the project.
        LakeBusy: see `erase.erase_hits`.
    """
    projects.begin_deletion(control, id, internal_id)
    on_point("before revoke")
    keys.revoke_all(control, id, internal_id, int(time.time()))
    jobs = store.remove(control, id, internal_id)  # a worker ends the turn of a removed job at its next heartbeat
    time.sleep(cached_s)
    for job in jobs:
        workspace.discard(settings.jobs / job)
    require_same = partial(projects.require_same, control, id, internal_id)
    share = Share(settings.run / "spill")
    with closing(batches.connect(settings.hot_log)) as hot:
        # From now on no hit of the project is stored, not even of a request that is in progress.
        refusals.add(hot, internal_id)
        on_point("before erase")
        removed = erase_hits(hot, settings.lake, share, Chosen(id), wait_s, require_same=require_same)
        rollups.write_stale(hot, settings.lake, share, datetime.now(UTC).date(), wait_s)
        on_point("before forget")
        deletions = LocalPath(settings.run / FOLDER)
        with lake_lock(hot, deletions, wait_s, DELETIONS):  # no other process deletes the project until the end
            require_same()
            on_point("before delete")
            deduplication.delete_project(hot, id)
            ledger_store.delete_project(hot, id)
            with closing(open_salts(settings.database_url, settings.data)) as salts:
                salts.delete_project(id)
            wal.empty(hot)
            projects.delete(control, id, internal_id)
    return removed


def count_hits(settings: Settings, chosen: Chosen) -> list[DayCounts]:
    """Return the numbers of hits and errors that `delete_hits` would delete, by day and traffic."""
    share = Share(settings.run / "spill")
    with closing(batches.connect(settings.hot_log)) as hot:
        return count(hot, settings.lake, share, chosen, LOCK_WAIT_S)


def delete_hits(settings: Settings, control: Pool, chosen: Chosen) -> None:
    """Delete hits and errors of a project.

    Raises:
        ProjectGone: another process has deleted the project.
        LakeBusy: see `erase.erase_hits`.
    """
    internal_id = projects.internal_id_of(control, chosen.project)
    require_same = partial(projects.require_same, control, chosen.project, internal_id)
    share = Share(settings.run / "spill")
    with closing(batches.connect(settings.hot_log)) as hot:
        erase_hits(hot, settings.lake, share, chosen, LOCK_WAIT_S, require_same=require_same)
        rollups.write_stale(hot, settings.lake, share, datetime.now(UTC).date(), LOCK_WAIT_S)
