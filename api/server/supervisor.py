"""The supervisor of worker processes: it starts them, restarts those that die, and ends all of them.

It waits for signals and for the sentinels of processes, by which the kernel reports a death. It never waits for a
response of a worker, so a worker in any state delays neither the restart of another one nor the end of the service.
"""

import logging
import multiprocessing
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from uvicorn.config import STARTUP_FAILURE

LOG = logging.getLogger("readership.supervisor")
HEARTBEATS = 12
"""Number of heartbeats of a worker in `Timeouts.silent_s`."""
RESTART_DELAYS_S = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Delays before a restart, in seconds, by the number of deaths in a row; the last delay repeats."""
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of the supervisor, in seconds."""

    silent_s: float = 60
    """Time without a heartbeat after which a worker is killed and replaced: it is stopped or deadlocked."""
    end_s: float = 25
    """Time from the signal that ends the service to SIGKILL for each worker that still runs: longer than the 10 s for
    requests in flight, and shorter than the 30 s after which systemd or Docker should be set to kill."""
    settled_s: float = 10
    """Running time of a worker after which its next restart has no delay."""


@dataclass(slots=True)
class _Worker:
    """State of one worker number, and the process that has the number now. Times are of the monotonic clock."""

    number: int
    process: SpawnProcess | None = None
    heartbeat: Connection | None = None
    started_s: float = 0
    heard_s: float = 0
    due_s: float = 0
    deaths: int = 0
    is_first: bool = True


class Supervisor:
    """A fixed number of processes that each call `target(number, *arguments)`; numbers count from 0.

    One process at a time has a number. Each start pickles the arguments again. `has_started` returns whether any worker
    has completed its start.
    """

    def __init__(
        self,
        target: Callable[..., None],
        arguments: tuple[Any, ...],
        workers: int,
        timeouts: Timeouts | None = None,
        has_started: Callable[[], bool] = lambda: False,
    ) -> None:
        self._target, self._arguments = target, arguments
        self._timeouts = timeouts or Timeouts()
        self._has_started = has_started
        self._workers = [_Worker(number) for number in range(workers)]
        self._status: int | None = None

    def run(self, on_end: Callable[[], None] = lambda: None) -> int:
        """Run until SIGTERM or SIGINT, or until a worker fails to start before any has started; return the exit status.

        `on_end` is called when the end begins.
        """
        try:
            with self._signals() as wakeup:
                while self._status is None:
                    self._start_due()
                    self._wait(wakeup, self._next_s())
                    self._kill_silent()
                    self._reap()
                on_end()
                return self._end(wakeup)
        finally:
            for worker in self._workers:  # after an error some may run, and Python would wait for them
                if worker.process:
                    worker.process.kill()

    @contextmanager
    def _signals(self) -> Iterator[socket.socket]:
        """Handle SIGTERM and SIGINT; yield a socket that becomes readable with each signal."""
        wakeup, writer = socket.socketpair()
        with wakeup, writer:
            for end in (wakeup, writer):
                end.setblocking(False)  # noqa: FBT003  # takes no keyword
            handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
            signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
            try:
                yield wakeup
            finally:
                signal.set_wakeup_fd(-1)
                for number, handler in handlers.items():
                    signal.signal(number, handler)

    def _stop(self, *_: object) -> None:
        self._status = self._status or 0

    def _start_due(self) -> None:
        now_s = time.monotonic()
        for worker in self._workers:
            if worker.process is None and worker.due_s <= now_s and self._status is None:
                self._start(worker)

    def _start(self, worker: _Worker) -> None:
        heartbeat, theirs = _SPAWN.Pipe(duplex=False)
        with theirs:
            beat_s = self._timeouts.silent_s / HEARTBEATS
            arguments = (worker.number, theirs, beat_s, self._target, self._arguments)
            process = _SPAWN.Process(target=_work, args=arguments, name=f"worker {worker.number}")
            try:
                process.start()
            except OSError as error:  # no memory, process or file descriptor is free
                heartbeat.close()
                _plan_restart(worker, f"could not be started: {error}", {})
                return
        worker.process, worker.heartbeat = process, heartbeat
        worker.started_s = worker.heard_s = time.monotonic()

    def _next_s(self) -> float:
        """Return the time until a restart is due or a worker without heartbeats must be killed, in seconds."""
        times = (
            worker.heard_s + self._timeouts.silent_s if worker.process else worker.due_s for worker in self._workers
        )
        return max(0.0, min(times) - time.monotonic())

    def _wait(self, wakeup: socket.socket, timeout_s: float) -> None:
        """Wait for a signal, a death or a heartbeat, and record heartbeats."""
        sentinels = [worker.process.sentinel for worker in self._workers if worker.process]
        by_connection = {worker.heartbeat: worker for worker in self._workers if worker.heartbeat}
        for each in wait([wakeup, *sentinels, *by_connection], timeout_s):
            if each is wakeup:
                wakeup.recv(4096)
            elif isinstance(each, Connection):
                with suppress(EOFError, OSError):  # the process is dead, which its sentinel reports
                    each.recv_bytes()
                    by_connection[each].heard_s = time.monotonic()

    def _kill_silent(self) -> None:
        for worker in self._workers:
            if worker.process and time.monotonic() - worker.heard_s >= self._timeouts.silent_s:
                LOG.error("worker %d is killed: no heartbeat for %g s", worker.number, self._timeouts.silent_s)
                worker.process.kill()
                worker.process.join()

    def _reap(self) -> None:
        """Plan the restart of each worker that has died, or end the service if no worker can start.

        If another worker has started, the cause of a failed first start may be temporary, such as a full disk.
        """
        for worker in self._workers:
            if worker.process is None or worker.process.is_alive() or self._status is not None:
                continue
            status, lived_s = worker.process.exitcode or 0, time.monotonic() - worker.started_s
            if worker.is_first and status == STARTUP_FAILURE and not self._has_started():
                LOG.error("worker %d could not start; the service ends", worker.number)
                self._status = STARTUP_FAILURE
                return
            worker.deaths = 0 if lived_s >= self._timeouts.settled_s else worker.deaths
            cause = f"ended with exit status {status}"
            fields: dict[str, object] = {"exitStatus": status}
            if status < 0:
                cause, fields = f"was killed by {_name(-status)}", {"signal": _name(-status)}
            _plan_restart(worker, cause, {"pid": worker.process.pid, **fields})
            _clear(worker)

    def _end(self, wakeup: socket.socket) -> int:
        """Send SIGTERM to the workers, wait until all have ended or `end_s` is over, and kill the rest."""
        deadline_s = time.monotonic() + self._timeouts.end_s
        for worker in self._workers:
            if worker.process:
                worker.process.terminate()
        while any(worker.process and worker.process.is_alive() for worker in self._workers):
            if (left_s := deadline_s - time.monotonic()) <= 0:
                break
            self._wait(wakeup, left_s)
            for worker in self._workers:
                if worker.process and not worker.process.is_alive():
                    _clear(worker)
        killed = [worker for worker in self._workers if worker.process and worker.process.is_alive()]
        for worker in killed:
            LOG.error("worker %d is killed: it did not end within %g s", worker.number, self._timeouts.end_s)
            assert worker.process
            worker.process.kill()
            worker.process.join()
        return 1 if killed else self._status or 0


def _clear(worker: _Worker) -> None:
    assert worker.process
    assert worker.heartbeat
    worker.process.join()
    worker.process.close()
    worker.heartbeat.close()
    worker.process = worker.heartbeat = None


def _plan_restart(worker: _Worker, cause: str, fields: dict[str, object]) -> None:
    delay_s = RESTART_DELAYS_S[min(worker.deaths, len(RESTART_DELAYS_S) - 1)]
    worker.deaths, worker.due_s, worker.is_first = worker.deaths + 1, time.monotonic() + delay_s, False
    fields = {"worker": worker.number, **fields}
    LOG.error("worker %d %s; it is restarted in %g s", worker.number, cause, delay_s, extra={"fields": fields})


def _name(number: int) -> str:
    """Return the name of a signal; Python has no names for most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _work(
    number: int, heartbeat: Connection, beat_s: float, target: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    """Run `target` in a worker process, with a thread that sends heartbeats.

    Until `target` sets a handler, SIGINT ends the process without a traceback.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_beat, args=(heartbeat, beat_s), daemon=True, name="heartbeat").start()
    try:
        target(number, *arguments)
    except Exception:
        LOG.exception("worker %d ends with an error", number)
        sys.exit(1)


def _beat(heartbeat: Connection, every_s: float) -> None:
    with suppress(OSError):  # the parent is dead, and this worker ends by itself
        while True:
            heartbeat.send_bytes(b".")
            time.sleep(every_s)
