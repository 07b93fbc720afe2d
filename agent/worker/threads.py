"""Threads of a worker, a process that takes turns from the queue, sends webhooks, and cleans up after idle jobs.

Any number of workers may run: the queue leases each turn to one of them. A worker that ends puts its unfinished turns
back into the queue.
"""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread

from agent import retry
from agent.errors import AgentError, LeaseLost, ProgramTerminated, TurnStopped
from agent.git import workspace
from agent.jobs import queue, store, webhook
from agent.jobs.queue import Lease, Outcome
from agent.worker import turn
from agent.worker.heartbeat import LeaseHeartbeat
from warehouse import clock
from warehouse.database.pool import Pool
from warehouse.database_errors import is_temporary

POLL_S = 0.1
"""Seconds between two polls of the queue."""
WEBHOOK_POLL_S = 1.0
CLEAN_UP_INTERVAL_S = 3600.0
DAY_US = 24 * 3_600_000_000
RETRY_S = 5.0
"""Seconds between two attempts after an unexpected error."""
STOP_S = 15.0
"""Seconds to wait, after a program of a turn received a SIGTERM from outside, for this process to receive one too. A
service manager may signal all processes of a service at once, and a server process first answers its requests."""
INTERNAL_ERROR = "internal error of Readership; the log of the service has the details"
LOG = logging.getLogger("readership.agent")


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Settings of a worker. References to secrets of the form `env:NAME` are resolved in `environ`."""

    control: Pool
    folder: Path
    """Parent of the jobs' folders."""
    environ: Mapping[str, str] = field(repr=False)
    slots: int
    """Maximum number of turns that run at once."""
    lease_s: float
    retention_days: int = 0
    """Days after which an archived job is removed; 0 for never."""
    lake: Path | None = None
    """Folder with the record of the trusted time (see `warehouse.clock`); None trusts the system clock."""
    on_turn: Callable[[float, bool], None] = lambda seconds, succeeded: None
    on_delivery: Callable[[webhook.Outcome], None] = lambda outcome: None


class WorkerThreads:
    """Threads of this process: one per slot, which takes turns; one for webhooks; and one for cleaning up."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._stopping = Event()
        self._queued = Event()
        self._is_claiming = True
        self._name = f"{socket.gethostname()[:20]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        slots = [Thread(target=self._take_turns, args=(slot,), name=f"turns-{slot}") for slot in range(config.slots)]
        others = [Thread(target=each, name="jobs") for each in (self._send_webhooks, self._clean_up)]
        self._threads = [*slots, *others] if slots else []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Look for a turn now instead of at the next poll."""
        self._queued.set()

    def stop_claiming(self) -> None:
        """Claim no more turns; running turns continue until `close`. Takes no lock, for use in a signal handler."""
        self._is_claiming = False

    def close(self) -> None:
        """Stop the running turns, put them back into the queue, and wait for the threads to end."""
        self._stopping.set()
        self._queued.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _take_turns(self, slot: int) -> None:
        """Run one turn after the other, until `stop_claiming` or `close`."""
        while self._is_claiming and not self._stopping.is_set():
            requested_s, lease_us = time.monotonic(), int(self._config.lease_s * 1_000_000)
            try:
                lease = queue.claim(self._config.control, f"{self._name}-{slot}", _now_us(), lease_us)
                if lease is not None:
                    self._run(lease, requested_s)
                    continue
            except Exception:  # the lease of a running turn expires, and another worker claims the turn
                LOG.exception("cannot work on the queue of agent jobs; retrying")
                self._stopping.wait(RETRY_S)
            if self._queued.wait(POLL_S):
                self._queued.clear()

    def _run(self, lease: Lease, requested_s: float) -> None:
        """Run a turn and record its end, or put it back if it was stopped."""
        started_s = time.monotonic()
        heartbeat = LeaseHeartbeat(
            self._config.control, lease, self._config.lease_s, requested_s, self._stopping, _now_us
        )
        outcome = None
        try:
            outcome = self._outcome(lease, heartbeat)
        except LeaseLost:
            return
        except TurnStopped:
            pass  # without an outcome, the turn is put back
        finally:
            heartbeat.close()
        with suppress(LeaseLost, TurnStopped):  # another worker has the turn, or claims it once the lease has expired
            if outcome is None:
                queue.release(self._config.control, lease)
                return
            finish = partial(queue.finish, self._config.control, lease, outcome, _now_us())
            retry.database_write(finish, heartbeat.is_stopped)
            self._config.on_turn(time.monotonic() - started_s, outcome.reason is None)

    def _outcome(self, lease: Lease, heartbeat: LeaseHeartbeat) -> Outcome:
        """Run the turn and return how it ended. Raises TurnStopped, or LeaseLost if the lease was lost meanwhile."""
        context = turn.TurnContext(
            self._config.control,
            self._config.folder,
            self._config.environ,
            _now_us,
            heartbeat.is_stopped,
            heartbeat.tail.add,
        )
        try:
            return Outcome(None, turn.perform(lease, context))
        except (TurnStopped, LeaseLost):
            if heartbeat.is_lost:
                raise LeaseLost("the turn was cancelled, or another worker has claimed it") from None
            raise
        except ProgramTerminated as error:
            if self._stopping.wait(STOP_S):
                raise TurnStopped("the turn was stopped") from None
            return Outcome(str(error))
        except AgentError as error:
            return Outcome(str(error))
        except Exception as error:  # the job must end with a reason, and other jobs must continue
            if is_temporary(error):
                raise  # the outcome cannot be written: the turn continues once its lease has expired
            LOG.exception("turn %s of job %s", lease.turn, lease.job.id)
            return Outcome(INTERNAL_ERROR)

    def _send_webhooks(self) -> None:
        sender = Sender(self._config.control, self._config.environ, _now_us, self._config.on_delivery)
        while not self._stopping.wait(WEBHOOK_POLL_S):
            try:
                sender.send_due()
            except Exception:  # each unsent message stays due
                LOG.exception("cannot send webhooks of agent jobs; retrying")
                self._stopping.wait(RETRY_S)
        sender.close()

    def _clean_up(self) -> None:
        """Archive idle jobs, remove old archived jobs, and remove the folders of both, once per hour."""
        pause_s = WEBHOOK_POLL_S
        while not self._stopping.wait(pause_s):
            pause_s = CLEAN_UP_INTERVAL_S
            try:
                if self._config.lake is None or clock.is_trusted(self._config.lake, time.time()):
                    store.archive_idle(self._config.control, _now_us())
                    self._remove_archived()
                _remove_folders(self._config, self._stopping)
            except Exception:  # the next round finds the same jobs and folders
                LOG.exception("cannot clean up agent jobs; retrying")
                pause_s = RETRY_S

    def _remove_archived(self) -> None:
        days = self._config.retention_days
        before_us = _now_us() - days * DAY_US
        while days and not self._stopping.is_set() and store.remove_archived(self._config.control, before_us):
            pass


def _remove_folders(config: WorkerConfig, stopping: Event) -> None:
    """Remove the folders of archived and deleted jobs. Once `stopping` is set, the rest is left to the next process."""
    folders = list(config.folder.iterdir()) if config.folder.is_dir() else []
    unarchived = store.unarchived_ids(config.control)  # after the folders: a job created in between keeps its folder
    for folder in folders:
        if folder.name not in unarchived and not stopping.is_set():
            workspace.discard(folder)


def _now_us() -> int:
    return time.time_ns() // 1_000


THREADS = 8
"""Maximum number of projects that messages are sent for at once."""


@dataclass(slots=True)
class Sender:
    """Thread pool with at most one thread per project. Its methods are called from one thread.

    `on_outcome` is called after each attempt, in the thread of the pool.
    """

    control: Pool
    environ: Mapping[str, str] = field(repr=False)
    now_us: Callable[[], int]
    on_outcome: Callable[[webhook.Outcome], None]
    _stopping: Event = field(default_factory=Event)
    _running: dict[str, Future[None]] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "webhooks"))

    def send_due(self) -> None:
        """Start to send the due messages of each project, in as many threads as are free.

        Raises:
            Exception: the error that ended a thread since the last call. Its message becomes due again.
        """
        ended = [project for project, future in self._running.items() if future.done()]
        futures = [self._running.pop(project) for project in ended]
        for project in webhook.due(self.control, self.now_us()):
            if project not in self._running and len(self._running) < THREADS:
                self._running[project] = self._pool.submit(self._send, project)
        for future in futures:
            future.result()

    def close(self) -> None:
        """Wait for the messages that are being sent, and send no others."""
        self._stopping.set()
        self._pool.shutdown()

    def _send(self, project: str) -> None:
        """Send due messages until a delivery fails, so that a slow or missing receiver does not occupy a thread."""
        outcome: webhook.Outcome | None = "delivered"
        while outcome == "delivered" and not self._stopping.is_set():
            outcome = webhook.deliver(self.control, project, self.environ, self.now_us)
            if outcome is not None:
                self.on_outcome(outcome)
