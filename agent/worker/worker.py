"""The threads of one process that work on turns, send webhooks and put idle jobs away.

Any number of processes may have them: the queue gives each turn to one. What is running when this process is told to
end is put back, for another to begin again.
"""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from agent import retry
from agent.errors import AgentError, LeaseLost, Stopped, Terminated
from agent.git import workspace
from agent.jobs import queue, store, webhook
from agent.jobs.journal import Tail
from agent.jobs.queue import Lease, Outcome
from agent.jobs.sender import Sender
from agent.worker import turn
from warehouse import clock
from warehouse.database_errors import is_temporary, reason_of

POLL_S = 0.1
HEARTBEATS = 5
"""In a lease; at least one a second, by which a cancelled turn learns of it."""
HEARTBEAT_S_MAX = 1.0
KEPT = 0.8
"""Of a lease that cannot be renewed, until the turn is given up. The rest is for its programs to end in before another
worker may begin: 3 of 15 seconds, and they are killed after `process.TERMINATE_S`."""
WEBHOOK_POLL_S = 1.0
SWEEP_EVERY_S = 3600.0
DAY_US = 24 * 3_600_000_000
FAULT_S = 5.0
"""Between two looks at a control database that does not answer."""
STOP_S = 15.0
"""When a program of a turn was ended from outside, so long for this process to be told to end, too: who stops a service
may signal all of its processes at once, and those that serve answer first what is in flight."""
FAULT_OF_OURS = "an error of ours; the service's log has it"
LOG = logging.getLogger("readership.agent")


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Settings of a worker. `environ` is where references to secrets of the form `env:NAME` are resolved."""

    engine: sa.Engine
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    slots: int
    lease_s: float
    retention_days: int = 0
    """Days until an archived job is removed; 0 for never."""
    lake: Path | None = None
    """Folder with the record of the trusted time (see `warehouse.clock`); None trusts the clock."""
    on_turn: Callable[[float, bool], None] = lambda seconds, succeeded: None
    on_delivery: Callable[[webhook.Outcome], None] = lambda outcome: None


class Worker:
    """One process's share of the work. `wake` says that a turn was queued here."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._stopping = threading.Event()
        self._queued = threading.Event()
        self._is_taking = True
        self._name = f"{socket.gethostname()[:20]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        slots = [
            threading.Thread(target=self._work, args=(slot,), name=f"turns-{slot}") for slot in range(config.slots)
        ]
        others = [threading.Thread(target=each, name="jobs") for each in (self._tell, self._put_away)]
        self._threads = [*slots, *others] if slots else []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        self._queued.set()

    def take_no_more(self) -> None:
        """Leave the turns that wait to other processes; one that runs goes on until `close`. For a signal's handler,
        which may take no lock."""
        self._is_taking = False

    def close(self) -> None:
        """Stop the turns that run and put them back."""
        self._stopping.set()
        self._queued.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _work(self, slot: int) -> None:
        """One turn after the other, until `take_no_more` or `close`."""
        while self._is_taking and not self._stopping.is_set():
            asked_s = time.monotonic()
            try:
                lease = queue.claim(self._config.engine, f"{self._name}-{slot}", _now_us(), self._lease_us)
                if lease is not None:
                    self._hold(lease, asked_s)
                    continue
            except Exception:  # the database comes back, and a turn that was held is taken by another worker
                LOG.exception("the queue of agent jobs cannot be worked on; it is tried again")
                self._stopping.wait(FAULT_S)
            if self._queued.wait(POLL_S):
                self._queued.clear()

    @property
    def _lease_us(self) -> int:
        return int(self._config.lease_s * 1_000_000)

    def _hold(self, lease: Lease, asked_s: float) -> None:
        """Work on a turn, its lease kept by a thread that no slow step can hold up."""
        began = time.monotonic()
        held = _Held(self._config, lease, self._stopping, asked_s)
        outcome = None
        try:
            outcome = self._outcome(lease, held)
        except LeaseLost:
            return
        except Stopped:
            pass  # outcome None: it is put back
        finally:
            held.close()
        with suppress(LeaseLost, Stopped):  # the turn is another's, or its end cannot be noted: another worker ends it
            if outcome is None:
                queue.release(self._config.engine, lease)
                return
            ended = partial(queue.finish, self._config.engine, lease, outcome, _now_us())
            retry.noted(ended, held.is_stopped)
            self._config.on_turn(time.monotonic() - began, outcome.reason is None)

    def _outcome(self, lease: Lease, held: "_Held") -> Outcome:
        """Raises Stopped, where this process ends or the lease is given up, and LeaseLost."""
        context = turn.TurnContext(
            self._config.engine, self._config.folder, self._config.environ, _now_us, held.is_stopped, held.tail.add
        )
        try:
            return Outcome(None, turn.perform(lease, context))
        except (Stopped, LeaseLost):
            if held.is_lost:
                raise LeaseLost("the turn was cancelled, or another worker has taken it over") from None
            raise
        except Terminated as error:
            if self._stopping.wait(STOP_S):
                raise Stopped("the turn was stopped") from None
            return Outcome(str(error))
        except AgentError as error:
            return Outcome(str(error))
        except Exception as error:  # the job must end, with a reason, and the other jobs go on
            if is_temporary(error):
                raise  # nothing can be noted: the lease runs out, and the turn goes on where its last note says
            LOG.exception("turn %s of job %s", lease.turn, lease.job.id)
            return Outcome(FAULT_OF_OURS)

    def _tell(self) -> None:
        """Webhooks as they are due."""
        sender = Sender(self._config.engine, self._config.environ, _now_us, self._config.on_delivery)
        while not self._stopping.wait(WEBHOOK_POLL_S):
            try:
                sender.send_due()
            except Exception:  # nothing is lost: all of it is due again, and other projects' with it
                LOG.exception("webhooks of agent jobs cannot be sent; they are tried again")
                self._stopping.wait(FAULT_S)
        sender.close()

    def _put_away(self) -> None:
        """Once an hour archive the idle jobs, remove old archived ones, and the folders of both, which may be large."""
        pause_s = WEBHOOK_POLL_S
        while not self._stopping.wait(pause_s):
            pause_s = SWEEP_EVERY_S
            try:
                if self._is_clock_trusted():
                    store.archive_idle(self._config.engine, _now_us())
                    self._remove_archived()
                _sweep(self._config, self._stopping)
            except Exception:  # nothing is lost: the next time finds the same
                LOG.exception("the upkeep of agent jobs failed; it is tried again")
                pause_s = FAULT_S

    def _is_clock_trusted(self) -> bool:
        return self._config.lake is None or clock.is_trusted(self._config.lake, time.time())

    def _remove_archived(self) -> None:
        days = self._config.retention_days
        before_us = _now_us() - days * DAY_US
        while days and not self._stopping.is_set() and store.remove_archived(self._config.engine, before_us):
            pass


class _Held:
    """A turn whose lease is renewed, with what its coding agent has printed, until it is closed, lost or given up.

    By this process's own clock, from when it asked for the lease: a database that is away, or does not answer at all,
    cannot say that the lease is over. `asked_s` is that moment.
    """

    def __init__(self, config: WorkerConfig, lease: Lease, stopping: threading.Event, asked_s: float) -> None:
        self._config, self._lease, self._stopping = config, lease, stopping
        self._closed = threading.Event()
        self._kept_until_s = asked_s + KEPT * config.lease_s
        self._is_given_up = False
        self.is_lost = False
        self.tail = Tail()
        self._thread = threading.Thread(target=self._beat, name="heartbeat")
        self._thread.start()

    def is_stopped(self) -> bool:
        """Once it says so it stays so: the turn's programs are ended then."""
        if not self._is_given_up and time.monotonic() >= self._kept_until_s:
            self._is_given_up = True
            LOG.warning("the lease of turn %s could not be renewed: the turn is given up", self._lease.turn)
        return self.is_lost or self._is_given_up or self._stopping.is_set()

    def close(self) -> None:
        """The last of the output is noted."""
        self._closed.set()
        self._thread.join()

    def _beat(self) -> None:
        every_s = min(HEARTBEAT_S_MAX, self._config.lease_s / HEARTBEATS)
        is_last = False
        while not (is_last or self._is_given_up):
            is_last = self._closed.wait(every_s)
            asked_s = time.monotonic()
            output = self.tail.unwritten(asked_s, is_last=is_last)
            try:
                lease_us = int(self._config.lease_s * 1_000_000)
                queue.renew(self._config.engine, self._lease, _now_us(), lease_us, output)
            except LeaseLost:
                self.is_lost = True
                return
            except sa.exc.SQLAlchemyError as error:
                traceback = None if is_temporary(error) else error
                text = "the lease of turn %s cannot be renewed (%s); it is tried again"
                LOG.warning(text, self._lease.turn, reason_of(error), exc_info=traceback)
            else:
                self._kept_until_s = asked_s + KEPT * self._config.lease_s
                if output is not None:
                    self.tail.set_written(output, asked_s)


def _sweep(config: WorkerConfig, stopping: threading.Event) -> None:
    """Remove the folders of jobs that are archived or gone; what is left at the end the next process removes."""
    found = list(config.folder.iterdir()) if config.folder.is_dir() else []
    kept = store.unarchived(config.engine)  # after the folders, so that a job made meanwhile keeps its own
    for each in found:
        if each.name not in kept and not stopping.is_set():
            workspace.discard(each)


def _now_us() -> int:
    return time.time_ns() // 1_000
