"""The thread that loads the hot log into the lake, compacts and vacuums the lake, and writes its rollups.

Every process of a service has such a thread. Each thread decides from the stored data whether a task is due, and the
lock of the lake lets one thread work at a time. Any number of threads may therefore run, and any of them may die.
"""

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from api import metrics
from api.settings import Settings
from ingest.hotlog import deduplication, ledger_store
from warehouse import clock
from warehouse.batch import steps
from warehouse.batch.task_faults import TaskFaults, fault_of
from warehouse.database_errors import reason_of
from warehouse.errors import DataIncomplete, LakeBusy, LakeUnreachable, WarehouseError, engine_errors
from warehouse.hotlog import batches, disk_space, retention
from warehouse.hotlog.connection import HOT_LOG_ERRORS
from warehouse.integrity import durability
from warehouse.integrity.lake_lock import rollups_lock
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import Root
from warehouse.maintenance import compact, rollup_vacuum, rollups
from warehouse.maintenance.erase import erase_before, first_trusted_s
from warehouse.maintenance.load import is_due, load
from warehouse.query import engine, result_cache

POLL_S = 1.0
VACUUM_EVERY_S = 3600
VACUUM_RETRY_S = 60
"""Delay before the retry of a failed vacuum or compaction, in seconds."""
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
COMPACTION, VACUUM, ROLLUPS, RELEASE = "the compaction", "the vacuum", "the rollups", "the release of memory"
"""Tasks of a round, after its load."""
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
        self._compaction = engine.Share(settings.run / "spill", len(os.sched_getaffinity(0)), COMPACTION_MEMORY)
        self._compaction_tried_s = self._vacuum_tried_s = self._rollups_tried_s = self._released_s = -math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance")
        # Error of the load in the last round, or of a store; None if the round had none, or if the store answers again.
        self._fault: str | None = None
        self._is_outage = False  # whether this error is that a store does not answer
        self._logged: str | None = None  # text of the last error since a round without one
        self._task_faults = TaskFaults()

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

    @property
    def fault(self) -> str | None:
        """Return the error that prevents the service from loading hits or from reading the lake; None without one."""
        return self._fault or self._task_faults.text(is_data_incomplete=True)

    @property
    def warning(self) -> str | None:
        """Return the errors of tasks without which the service works, one a line; None without any.

        An error is returned until the step has succeeded, or has nothing to do any more, such as for a deleted day.
        """
        return self._task_faults.text(is_data_incomplete=False)

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            try:
                self._end_outage()
                self.run_due(datetime.now(UTC))
                self._fault = self._logged = None
            except LakeBusy:
                continue
            except Exception as error:  # noqa: BLE001  # the next round retries, and hits are safe in the hot log
                self._set_fault(min(steps.errors_of(error), key=lambda each: isinstance(each, LakeBusy)))
                metrics.LOADS.labels("failed").inc()

    def _set_fault(self, error: Exception) -> None:
        """Record the error of a round."""
        self._log(error)
        self._fault, self._is_outage = str(fault_of(error)), steps.is_outage(error)

    def _log(self, error: Exception) -> None:
        """Log an error, unless the one before it or a task's fault has its text, in whichever step."""
        text = fault_of(error).text
        if text != self._logged and not self._task_faults.has(text):
            has_cause = steps.is_outage(error) or isinstance(error, DataIncomplete)  # its message names the cause
            LOG.error("maintenance failed and is retried: %s", reason_of(error), exc_info=None if has_cause else error)
        self._logged = text

    def _end_outage(self) -> None:
        """Clear the fault of an outage that is over.

        The next round may last for minutes, or wait for another node that has the lake's lock. Meanwhile, a load
        balancer would send no requests to a node with a fault.
        """
        if self._is_outage and self.lake_fault() is None:
            self._fault, self._is_outage = None, False

    def run_due(self, now: datetime) -> None:
        """Run the load and the tasks that are due: one round of the thread."""
        root = self._settings.lake
        retention.delete_due(self._hot, time.time(), retention.bytes_max(disk_space.free_bytes(root.local)))
        is_compaction_due = self._load_due() and not self._is_load_due()  # loads have priority over compaction
        tasks = {
            COMPACTION: partial(self._compact_crowded, now, is_due=is_compaction_due),
            VACUUM: partial(self.vacuum, now),
            ROLLUPS: partial(self.write_rollups, now),
            RELEASE: partial(self.release_memory, now),
        }
        steps.run_all(((name, partial(self._attempt, name, task)) for name, task in tasks.items()), steps.is_outage)

    def _attempt(self, name: str, task: Callable[[], bool]) -> None:
        """Run a task, and log and count its errors."""

        def on_error(error: Exception) -> None:
            self._log(error)
            metrics.count_failure(name)

        self._task_faults.attempt(name, task, on_error)

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

    def vacuum(self, now: datetime) -> bool:
        """Vacuum the lake if that is due: every VACUUM_EVERY_S, and VACUUM_RETRY_S after a failure in this process.

        Each step runs, also if one before it failed: see `steps.run_all`. Return whether a process of this machine has
        completed the last vacuum that was due.

        Raises:
            LakeBusy: another process vacuums the lake, or has its lock.
        """
        mark, now_s = _last_vacuum(self._settings.lake), now.timestamp()
        if mark.exists() and abs(now_s - mark.stat().st_mtime) < VACUUM_EVERY_S:
            return True
        if abs(now_s - self._vacuum_tried_s) < VACUUM_RETRY_S:
            return False
        self._vacuum_tried_s = now_s
        # The lock of the run folder lets one process of this machine vacuum at a time; each step takes the lake's lock.
        with write_lock(self._settings.run, wait_s=0):
            tasks: list[steps.Step] = [
                ("the compaction of closed days", partial(self._compact_closed, now)),
                ("the deletion of old rows", partial(self._remove_old, now)),
                ("the removal of unused files", partial(compact.vacuum, self._hot, self._settings.lake, VACUUM_WAIT_S)),
            ]
            steps.run_all(tasks, steps.is_outage)
            mark.touch()
        return True

    def write_rollups(self, now: datetime) -> bool:
        """Write the rollups that are due, and remove unused ones, every ROLLUPS_EVERY_S. Loads run in between.

        Return whether this process has looked for them now, and has written all that were due.
        """
        if abs(now.timestamp() - self._rollups_tried_s) < ROLLUPS_EVERY_S:
            return False
        self._rollups_tried_s = now.timestamp()
        root = self._settings.lake
        # Another process or node writes rollups; or the next start continues.
        with suppress(LakeBusy, Stopping), rollups_lock(self._hot, wait_s=0):
            write = partial(
                rollups.write_due, root, self._database, now.date(), wait_s=0, on_point=self._between_queries
            )
            removal = partial(rollup_vacuum.vacuum, root, wait_s=0)
            steps.run_all([("the new rollups", write), ("the removal of unused rollups", removal)])
            return True
        return False

    def release_memory(self, now: datetime) -> bool:
        """Return memory that loads and reports have freed to the operating system, every RELEASE_EVERY_S."""
        if abs(now.timestamp() - self._released_s) >= RELEASE_EVERY_S:
            self._released_s = now.timestamp()
            result_cache.release_memory()
        return True

    def _between_queries(self, _: str) -> None:
        if self._stopping.is_set():
            raise Stopping
        with suppress(LakeBusy):
            self._load_due()

    def _compact_crowded(self, now: datetime, *, is_due: bool) -> bool:
        """Compact the partitions that have many small files, also those of today; return whether that was done.

        One that failed is retried after VACUUM_RETRY_S, also without a load: another process may have repaired the day.
        """
        is_retry_due = abs(now.timestamp() - self._compaction_tried_s) >= VACUUM_RETRY_S
        if not (is_due or (COMPACTION in self._task_faults and is_retry_due)):
            return False
        self._compaction_tried_s, root = now.timestamp(), self._settings.lake
        compact.compact(self._hot, root, self._compaction, 0, compact.tier, between=self._load_due)
        return True

    def _compact_closed(self, now: datetime) -> None:
        between = partial(self._load_due, VACUUM_WAIT_S)
        root, ended = self._settings.lake, partial(compact.ended, now.date())
        compact.compact(self._hot, root, self._compaction, VACUUM_WAIT_S, ended, between=between)

    def _remove_old(self, now: datetime) -> None:
        """Delete hits past the retention and event ids older than seven days, unless the clock has jumped."""
        root, now_s = self._settings.lake, now.timestamp()
        if not clock.observe(root.local, now_s, partial(first_trusted_s, root, self._database, now_s)).is_trusted:
            LOG.warning(clock.warning(root.local))
            return
        forget = partial(deduplication.delete_expired, self._hot, now_s)
        tasks: list[steps.Step] = [("the deletion of event ids", forget)]
        if days := self._settings.retention_days:
            erase = partial(erase_before, self._hot, root, now.date(), days, VACUUM_WAIT_S)
            logs = partial(ledger_store.delete_before, self._hot, now.date() - timedelta(days=days))
            tasks += [("the deletion of hits", erase), ("the deletion of old logs from the ledger", logs)]
            tasks.append(("the rollups of deleted hits", self._write_stale_rollups))
        steps.run_all(tasks, steps.is_outage)

    def _write_stale_rollups(self) -> None:
        with rollups_lock(self._hot, VACUUM_WAIT_S):
            rollups.write_stale(self._settings.lake, self._database, VACUUM_WAIT_S)


def _last_vacuum(root: Root) -> Path:
    """Return the file whose modification time is that of the last complete vacuum by any process of this machine."""
    return root.local / delta_table.LAST_VACUUM
