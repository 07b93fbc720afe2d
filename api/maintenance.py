"""The thread that loads the hot log into the lake, compacts and vacuums the lake, and writes its rollups.

Every process of a service has such a thread. Each thread decides from the stored data whether a task is due, and the
lock of the lake lets one thread work at a time. Any number of threads may therefore run, and any of them may die.
"""

import logging
import math
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from api import metrics
from api.settings import Settings
from ingest.hotlog import deduplication
from warehouse import clock
from warehouse.batch import steps
from warehouse.database_errors import outage_of, reason_of
from warehouse.errors import DataIncomplete, LakeBusy, LakeUnreachable, WarehouseError, engine_errors
from warehouse.hotlog import batches, disk_space, retention
from warehouse.hotlog.connection import HOT_LOG_ERRORS
from warehouse.integrity import durability
from warehouse.integrity.lake_lock import rollups_lock
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import Root, local_folder
from warehouse.maintenance import compact, rollups
from warehouse.maintenance.erase import erase_before, first_trusted_s
from warehouse.maintenance.load import is_due, load
from warehouse.query import engine, result_cache

POLL_S = 1.0
VACUUM_EVERY_S = 3600
VACUUM_RETRY_S = 60
"""Delay before the retry of a failed vacuum, in seconds."""
ROLLUPS_EVERY_S = 60
"""Time between two searches for rollups that are due or unused, in seconds."""
RELEASE_EVERY_S = 10
"""Time between two releases of freed memory, in seconds."""
VACUUM_WAIT_S = 60.0
LAST_LOAD_WAIT_S = 60.0
"""Timeouts for the lock of the lake, in seconds: of each step of a vacuum, and of the load when the process ends."""
COMPACTION_MEMORY = "160MB"
"""Memory limit of the database that sorts the rows of a compaction. One thread needs less memory than two: the
compaction of a day of 3 million hits takes 280 MiB with this limit and one thread, and 400 MiB with 256 MB and two."""
LOG = logging.getLogger("readership.maintenance")


class Stopping(BaseException):
    """The thread must end before it has written a rollup. After an Exception, it would begin with the next month."""


class Maintenance:
    """The maintenance thread of one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._hot = batches.connect(settings.hot_log)
        # Requests use a second connection: the first one is blocked while the thread waits for a lock.
        self._read_hot = batches.connect(settings.hot_log)
        self._database = engine.connect(settings.run / "spill")
        self._compaction = engine.connect(settings.run / "spill", COMPACTION_MEMORY, threads=1)
        self._vacuum_tried_s = self._rollups_tried_s = self._released_s = -math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance")
        self.fault: str | None = None
        """Error of the last round; None if the last round succeeded, or if the store that did not answer now does."""
        self._is_outage = False  # whether the fault is that a store does not answer
        self._logged: str | None = None  # fault of the last round that ended

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, and load the hot log, so that no hit waits while the service is down."""
        self._stopping.set()
        try:
            if self._thread.ident is not None:
                self._thread.join()
                self._load_last()
        finally:
            self._compaction.close()
            self._database.close()
            self._read_hot.close()
            self._hot.close()

    def _load_last(self) -> None:
        errors: tuple[type[Exception], ...] = (WarehouseError, *HOT_LOG_ERRORS, OSError, *engine_errors())
        try:
            load(self._hot, self._settings.lake, LAST_LOAD_WAIT_S)
        except LakeBusy as error:
            LOG.warning(
                "another process, or the next start, loads the hits that wait in the hot log, because this one could"
                " not: %s",
                error,
            )
        except errors:
            LOG.exception("the hits that wait in the hot log could not be loaded; the next start tries again")

    def backlog(self) -> batches.Backlog:
        """Return the number and the age of the hits that wait in the hot log."""
        return batches.backlog(self._read_hot)

    def lake_fault(self) -> str | None:
        """Return the error if commits of the lake are missing or unreachable, else None. No table is opened."""
        try:
            durability.require_commits(self._read_hot, self._settings.lake)
        except (DataIncomplete, LakeUnreachable) as error:
            return str(error)
        return None

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            try:
                self._end_outage()
                self._round()
                self.fault = self._logged = None
            except LakeBusy:
                continue
            except Exception as error:  # noqa: BLE001  # the next round retries, and hits are safe in the hot log
                self._set_fault(min(steps.errors_of(error), key=lambda each: isinstance(each, LakeBusy)))
                metrics.LOADS.labels("failed").inc()

    def _set_fault(self, error: Exception) -> None:
        """Record the error of a round, and log the error if it differs from that of the round before."""
        kind = "disk full" if disk_space.is_full(error) else type(error).__name__
        outage = outage_of(error)
        fault = outage or f"{kind}: {error}"
        if fault != self._logged:
            has_cause = outage or isinstance(error, DataIncomplete)  # its message names the cause
            LOG.error("maintenance failed and is retried: %s", reason_of(error), exc_info=None if has_cause else error)
        self._logged = fault
        self.fault = fault if outage else "; ".join([fault, *getattr(error, "__notes__", [])])
        self._is_outage = outage is not None

    def _end_outage(self) -> None:
        """Clear the fault of an outage that is over.

        The next round may last for minutes, or wait for another node that has the lake's lock. Meanwhile, a load
        balancer would send no requests to a node with a fault.
        """
        if self._is_outage and self.lake_fault() is None:
            self.fault, self._is_outage = None, False

    def _round(self) -> None:
        root = self._settings.lake
        retention.delete_due(self._hot, time.time(), retention.bytes_max(disk_space.free_bytes(local_folder(root))))
        is_compaction_due = self._load_due() and not self._is_load_due()  # loads have priority over compaction
        now = datetime.now(UTC)
        tasks: list[steps.Step] = [
            ("the vacuum", partial(self.vacuum, now)),
            ("the rollups", partial(self.write_rollups, now)),
            ("the release of memory", partial(self.release_memory, now)),
        ]
        if is_compaction_due:
            tasks.insert(0, ("the compaction", self._compact_crowded))
        steps.run_all(tasks, steps.is_outage)

    def _load_due(self, wait_s: float = 0) -> bool:
        """Load the hot log if that is due; return whether it was."""
        if not self._is_load_due():
            return False
        loaded = load(self._hot, self._settings.lake, wait_s)
        metrics.LOADS.labels("done").inc()
        metrics.LOADED.inc(loaded.rows)
        return True

    def _is_load_due(self) -> bool:
        return is_due(self._hot, self._settings.load_rows, self._settings.load_every_s, time.time())

    def vacuum(self, now: datetime) -> None:
        """Vacuum the lake if that is due: every VACUUM_EVERY_S, and VACUUM_RETRY_S after a failure in this process.

        Each step runs, also if one before it failed: see `steps.run_all`.

        Raises:
            LakeBusy: another process vacuums the lake, or has its lock.
        """
        if not self._is_vacuum_due(now.timestamp()):
            return
        self._vacuum_tried_s = now.timestamp()
        # The lock of the run folder lets one process of this machine vacuum at a time; each step takes the lake's lock.
        with write_lock(self._settings.run, wait_s=0):
            tasks: list[steps.Step] = [
                ("the compaction of closed days", partial(self._compact_closed, now)),
                ("the deletion of old rows", partial(self._remove_old, now)),
                ("the removal of unused files", partial(self._remove_files, now)),
            ]
            steps.run_all(tasks, steps.is_outage)
            _last_vacuum(self._settings.lake).touch()

    def write_rollups(self, now: datetime) -> None:
        """Write the rollups that are due, and remove unused ones, every ROLLUPS_EVERY_S. Due loads run in between."""
        if abs(now.timestamp() - self._rollups_tried_s) < ROLLUPS_EVERY_S:
            return
        self._rollups_tried_s = now.timestamp()
        root = self._settings.lake
        # Another process or node writes rollups; or the next start continues.
        with suppress(LakeBusy, Stopping), rollups_lock(self._hot, wait_s=0):
            write = partial(
                rollups.write_due, root, self._database, now.date(), wait_s=0, on_step=self._between_queries
            )
            removal = partial(rollups.vacuum, root, wait_s=0)
            steps.run_all([("the new rollups", write), ("the removal of unused rollups", removal)])

    def release_memory(self, now: datetime) -> None:
        """Return memory that loads and reports have freed to the operating system, every RELEASE_EVERY_S."""
        if abs(now.timestamp() - self._released_s) >= RELEASE_EVERY_S:
            self._released_s = now.timestamp()
            result_cache.release_memory()

    def _between_queries(self, _: str) -> None:
        if self._stopping.is_set():
            raise Stopping
        with suppress(LakeBusy):
            self._load_due()

    def _compact_crowded(self) -> None:
        """Compact the partitions that have many small files, also those of today."""
        root, files_max = self._settings.lake, compact.CROWDED_FILES
        compact.compact(self._hot, root, self._compaction, files_max, wait_s=0, between=self._load_due)

    def _compact_closed(self, now: datetime) -> None:
        between = partial(self._load_due, VACUUM_WAIT_S)
        compact.compact(self._hot, self._settings.lake, self._compaction, 1, VACUUM_WAIT_S, now.date(), between)

    def _remove_old(self, now: datetime) -> None:
        """Delete hits past the retention and event ids older than seven days, unless the clock has jumped."""
        root = self._settings.lake
        first_s = partial(first_trusted_s, root, self._database, now.timestamp())
        if not clock.observe(root, now.timestamp(), first_s).is_trusted:
            LOG.warning(clock.warning(root))
            return
        tasks: list[steps.Step] = [
            ("the deletion of event ids", partial(deduplication.delete_expired, self._hot, now.timestamp()))
        ]
        if days := self._settings.retention_days:
            erase = partial(erase_before, self._hot, root, now.date(), days, VACUUM_WAIT_S)
            tasks += [("the deletion of hits", erase), ("the rollups of deleted hits", self._write_stale_rollups)]
        steps.run_all(tasks, steps.is_outage)

    def _write_stale_rollups(self) -> None:
        with rollups_lock(self._hot, VACUUM_WAIT_S):
            rollups.write_stale(self._settings.lake, self._database, VACUUM_WAIT_S)

    def _remove_files(self, now: datetime) -> None:
        compact.vacuum(self._hot, self._settings.lake, VACUUM_WAIT_S)

    def _is_vacuum_due(self, now_s: float) -> bool:
        mark = _last_vacuum(self._settings.lake)
        is_old = not mark.exists() or abs(now_s - mark.stat().st_mtime) >= VACUUM_EVERY_S
        return is_old and abs(now_s - self._vacuum_tried_s) >= VACUUM_RETRY_S


def _last_vacuum(root: Root) -> Path:
    """Return the file whose modification time is that of the last complete vacuum by any process of this machine."""
    return local_folder(root) / delta_table.LAST_VACUUM
