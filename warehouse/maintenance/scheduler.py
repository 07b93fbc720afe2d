"""The thread that loads the hot log into the lake, and runs the tasks that are due.

Every process of a service has such a thread. Each thread decides from the stored data whether a task is due. Commits
of the lake, compactions and the writing of rollups have a lock each, across all processes and nodes, and the vacuum has
one on each machine: a thread skips work that another one does. Any number of threads may therefore run, and any of them
may die.
"""

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

from warehouse import clock
from warehouse.batch import actions
from warehouse.batch.task_faults import TaskFaults, fault_of
from warehouse.database_errors import reason_of
from warehouse.errors import DataIncomplete, LakeBusy, LakeUnreachable, WarehouseError, engine_errors
from warehouse.hotlog import batches, disk_space, retention
from warehouse.hotlog.connection import HOT_LOG_ERRORS, HotConnection, HotLogPlace
from warehouse.integrity import durability
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import Root
from warehouse.maintenance import compact, rollups, upkeep
from warehouse.maintenance.erase import erase_before, first_trusted_s
from warehouse.maintenance.load import is_due, load
from warehouse.query import engine, result_cache

POLL_S = 1.0
VACUUM_EVERY_S, ROLLUPS_EVERY_S, RELEASE_EVERY_S, RETRY_S = 3600, 60, 10, 60
"""Times between two runs of tasks, and before the retry of one that failed, in seconds."""
VACUUM_WAIT_S = 60.0
LAST_LOAD_WAIT_S = 60.0
"""Timeouts for the lock of the lake, in seconds: of each step of a vacuum, and of the load when the process ends."""
COMPACTION_MEMORY = "160MB"
"""Memory limit of the database that sorts the rows of a compaction. One thread needs less memory than two: the
compaction of a day of 3 million hits takes 280 MiB with this limit and one thread, and 400 MiB with 256 MB and two."""
COMPACTION, VACUUM, ROLLUPS = "the compaction", "the vacuum", "the rollups"
RELEASE, SALTS = "the release of memory", "the deletion of salts"
"""Names of the tasks, in their order in a round."""
LOG = logging.getLogger("readership.maintenance")


class Stopping(BaseException):
    """The thread must end before it has written a rollup. After an Exception, it would begin with the next month."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the thread maintains, and when. `run` is the folder of spilled sorts; `retention_days` is 0 for never.

    `delete_ids` deletes event ids that are expired at a time in seconds, `delete_logs` logs of the ledger before a day,
    `delete_salts` salts. `on_load` gets the number of loaded hits, None for a failed round; `on_failure` a task's name.
    """

    hot_log: HotLogPlace
    lake: Root
    run: Path
    load_rows: int
    load_every_s: int
    retention_days: int
    delete_ids: Callable[[HotConnection, float], object]
    delete_logs: Callable[[HotConnection, date], object]
    delete_salts: Callable[[datetime], bool]
    on_load: Callable[[int | None], None] = lambda rows: None
    on_failure: Callable[[str], None] = lambda task: None


@dataclass(slots=True)
class Task:
    """A task of the thread. `run` returns whether all of its work is done.

    `every_s` is the time between two runs, and `retry_s` the time after a run that failed, in seconds. While `is_done`
    is true, no run is due.
    """

    name: str
    every_s: float
    retry_s: float
    run: Callable[[datetime], bool]
    is_done: Callable[[datetime], bool] = lambda now: False
    tried_s: float = -math.inf


class Scheduler:
    """The maintenance thread of one process."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._lake = plan, plan.lake
        self._hot = batches.connect(plan.hot_log)
        # Requests use a second connection: the first one is blocked while the thread waits for a lock.
        self._read_hot = batches.connect(plan.hot_log)
        self._share = engine.Share(plan.run / "spill")
        self._compaction = engine.Share(plan.run / "spill", len(os.sched_getaffinity(0)), COMPACTION_MEMORY)
        tasks = (  # a load makes the compaction due
            Task(COMPACTION, math.inf, RETRY_S, self._compact_crowded, tried_s=0),
            Task(VACUUM, RETRY_S, RETRY_S, self._vacuum, self._is_vacuumed),
            Task(ROLLUPS, ROLLUPS_EVERY_S, RETRY_S, self._write_rollups),
            Task(RELEASE, RELEASE_EVERY_S, RETRY_S, _release_memory),
            Task(SALTS, VACUUM_EVERY_S, RETRY_S, plan.delete_salts),
        )
        self._tasks = {task.name: task for task in tasks}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance")
        # Error of the load in the last round, or of a store; None if the round had none, or if the store answers again.
        self._fault: str | None = None
        self._is_outage = False  # whether the error means that a store does not answer
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
            self._read_hot.close()
            self._hot.close()

    def _load_last(self) -> None:
        errors: tuple[type[Exception], ...] = (WarehouseError, *HOT_LOG_ERRORS, OSError, *engine_errors())
        try:
            load(self._hot, self._lake, LAST_LOAD_WAIT_S)
        except LakeBusy as error:
            LOG.warning("another process, or the next start, loads the hits that wait in the hot log: %s", error)
        except errors:
            LOG.exception("the hits that wait in the hot log could not be loaded; the next start tries again")

    def backlog(self) -> batches.Backlog:
        """Return the number and the age of the hits that wait in the hot log."""
        return batches.backlog(self._read_hot)

    def lake_fault(self) -> str | None:
        """Return the error if commits of the lake are missing, else None. No table is opened.

        Raises: LakeUnreachable
        """
        try:
            durability.require_commits(self._read_hot, self._lake)
        except DataIncomplete as error:
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
                self._set_fault(min(actions.errors_of(error), key=lambda each: isinstance(each, LakeBusy)))
                self._plan.on_load(None)

    def _set_fault(self, error: Exception) -> None:
        self._log(error)
        self._fault, self._is_outage = str(fault_of(error)), actions.is_outage(error)

    def _log(self, error: Exception) -> None:
        """Log an error, unless the one before it or a task's fault has its text, in whichever step."""
        text = fault_of(error).text
        if text != self._logged and not self._task_faults.has(text):
            has_cause = actions.is_outage(error) or isinstance(error, DataIncomplete)  # its message names the cause
            LOG.error("maintenance failed and is retried: %s", reason_of(error), exc_info=None if has_cause else error)
        self._logged = text

    def _end_outage(self) -> None:
        """Clear the fault of an outage that is over: a round may last for minutes, or wait for another node."""
        with suppress(LakeUnreachable):
            if self._is_outage and self.lake_fault() is None:
                self._fault, self._is_outage = None, False

    def run_due(self, now: datetime) -> None:
        """Run the load and the tasks that are due: one round of the thread."""
        retention.delete_due(self._hot, time.time(), retention.bytes_max(disk_space.free_bytes(self._lake.local)))
        if self._load_due() and not self._is_load_due():  # loads have priority over compaction
            self._tasks[COMPACTION].tried_s = -math.inf
        actions.run_all(((name, partial(self._attempt, name, now)) for name in self._tasks), actions.is_outage)

    def run(self, name: str, now: datetime) -> bool:
        """Run a task if it is due. Return whether all of its work is done. Raises LakeBusy."""
        task, now_s = self._tasks[name], now.timestamp()
        if task.is_done(now):
            return True
        if abs(now_s - task.tried_s) < (task.retry_s if name in self._task_faults else task.every_s):
            return False
        task.tried_s = now_s
        return task.run(now)

    def _attempt(self, name: str, now: datetime) -> None:

        def on_error(error: Exception) -> None:
            self._log(error)
            self._plan.on_failure(name)

        self._task_faults.attempt(name, partial(self.run, name, now), on_error)

    def _load_due(self, wait_s: float = 0) -> bool:
        """Load the hot log if that is due; return whether it was."""
        if not self._is_load_due():
            return False
        self._plan.on_load(load(self._hot, self._lake, wait_s).rows)
        return True

    def _is_load_due(self) -> bool:
        return is_due(self._hot, self._plan.load_rows, self._plan.load_every_s, time.time())

    def _is_vacuumed(self, now: datetime) -> bool:
        """Return whether a process of this machine has completed the last vacuum that was due."""
        mark = self._lake.local / delta_table.LAST_VACUUM
        return mark.exists() and abs(now.timestamp() - mark.stat().st_mtime) < VACUUM_EVERY_S

    def _vacuum(self, now: datetime) -> bool:
        """Vacuum the lake. Each step runs, also if one before it failed: see `actions.run_all`."""
        # The lock of the run folder lets one process of this machine vacuum at a time; each step takes the lake's lock.
        with write_lock(self._plan.run, wait_s=0):
            tasks: list[actions.Action] = [
                ("the compaction of closed days", partial(self._compact_closed, now)),
                ("the deletion of old rows", partial(self._remove_old, now)),
                ("the removal of unused files", partial(compact.vacuum, self._hot, self._lake, VACUUM_WAIT_S)),
            ]
            actions.run_all(tasks, actions.is_outage)
            (self._lake.local / delta_table.LAST_VACUUM).touch()
        return True

    def _write_rollups(self, now: datetime) -> bool:
        """Write the rollups that are due, and remove unused ones. Loads run in between."""
        with suppress(LakeBusy, Stopping):  # or another process writes them
            today, between = now.date(), self._between_queries
            write = partial(rollups.write_due, self._hot, self._lake, self._share, today, 0, on_point=between)
            removal = partial(upkeep.vacuum_rollups, self._hot, self._lake, 0)
            actions.run_all([("the new rollups", write), ("the removal of unused rollups", removal)])
            return True
        return False

    def _between_queries(self, _: str) -> None:
        if self._stopping.is_set():
            raise Stopping
        with suppress(LakeBusy):
            self._load_due()

    def _compact_crowded(self, now: datetime) -> bool:
        compact.compact(self._hot, self._lake, self._compaction, 0, compact.tier, between=self._load_due)
        return True

    def _compact_closed(self, now: datetime) -> None:
        between, ended = partial(self._load_due, VACUUM_WAIT_S), partial(compact.ended, now.date())
        with suppress(LakeBusy):  # another process compacts
            compact.compact(self._hot, self._lake, self._compaction, VACUUM_WAIT_S, ended, between=between)

    def _remove_old(self, now: datetime) -> None:
        """Delete hits past the retention and event ids older than seven days, unless the clock has jumped."""
        root, now_s, plan = self._lake, now.timestamp(), self._plan
        if not clock.observe(root.local, now_s, partial(first_trusted_s, root, self._share, now_s)).is_trusted:
            LOG.warning(clock.warning(root.local))
            return
        tasks: list[actions.Action] = [("the deletion of event ids", partial(plan.delete_ids, self._hot, now_s))]
        if days := plan.retention_days:
            erase = partial(erase_before, self._hot, root, now.date(), days, VACUUM_WAIT_S)
            logs = partial(plan.delete_logs, self._hot, now.date() - timedelta(days=days))
            tasks += [("the deletion of hits", erase), ("the deletion of old logs from the ledger", logs)]
            stale = partial(rollups.write_stale, self._hot, root, self._share, now.date(), VACUUM_WAIT_S)
            tasks.append(("the rollups of deleted hits", stale))
        actions.run_all(tasks, actions.is_outage)


def _release_memory(_: datetime) -> bool:
    """Return memory that loads and reports have freed to the operating system."""
    result_cache.release_memory()
    return True
