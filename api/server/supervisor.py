"""The supervisor of server processes: it starts them, restarts those that die, and ends all of them.

One loop waits for the heartbeats of all processes, and for their sentinels, by which the kernel reports a death. A
process in any state delays neither the restart of another one nor the end of the service.
"""

import logging
import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from uvicorn.config import STARTUP_FAILURE

from warehouse.batch.parent import forking, unblock

LOG = logging.getLogger("readership.supervisor")
_SPAWN = multiprocessing.get_context("spawn")
HEARTBEATS = 12
"""Number of heartbeats of a server process in `Timeouts.silent_s`."""
RESTART_DELAYS_S = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Delays before a restart, in seconds, by the number of deaths in a row; the last delay repeats."""
CTRL_C_S = 1.0
"""Time in which the supervisor gets the Ctrl-C that ended a server process, which a terminal sends to both."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of the supervisor, in seconds."""

    silent_s: float = 60
    """Time without a heartbeat after which a server process is killed and replaced: it is stopped or deadlocked."""
    end_s: float = 25
    """Time from the signal that ends the service to SIGKILL for each server process that still runs: longer than the
    10 s for requests in flight, and shorter than the 30 s after which systemd or Docker should be set to kill."""
    settled_s: float = 10
    """Running time of a server process after which its next restart has no delay."""


@dataclass(slots=True)
class _Worker:
    """The number of a server process, its process with the pipe of its heartbeats, and the deaths in a row."""

    number: int
    running: tuple[BaseProcess, Connection] | None = None
    due_s: float = 0
    """Time of the next start, or at which a process that has sent no other heartbeat is killed."""
    began_s: float = 0
    deaths: int = 0
    is_first: bool = True


class Supervisor:
    """A fixed number of processes that each call `target(number, *arguments)`; numbers count from 0.

    Each start pickles the arguments again, to at most the 64 KiB of a pipe: a write to a process that dies meanwhile
    would never end. `has_started` returns whether any process has completed its start.
    """

    def __init__(
        self,
        target: Callable[..., None],
        arguments: tuple[Any, ...],
        processes: int,
        timeouts: Timeouts | None = None,
        has_started: Callable[[], bool] = lambda: False,
    ) -> None:
        self._target, self._arguments = target, arguments
        self._timeouts, self._has_started = timeouts or Timeouts(), has_started
        self._workers = [_Worker(number) for number in range(processes)]
        self._stop, self._stopper = multiprocessing.Pipe(duplex=False)
        """A pipe whose end for writing is closed to end the service."""
        self._status = 0

    def run(self, on_end: Callable[[], None] = lambda: None) -> int:
        """Run until SIGTERM or SIGINT, and return the exit status.

        The method also returns if a process fails at its first start before any process has started. `on_end` is called
        before the processes are ended.
        """
        resource_tracker.ensure_running()  # see `forking`
        signals = signal.SIGTERM, signal.SIGINT
        handlers = [signal.signal(number, lambda *_: self._stopper.close()) for number in signals]
        try:
            while not self._stopper.closed:
                self._step()
            on_end()
        finally:
            self._end()
            for number, handler in zip(signals, handlers, strict=True):
                signal.signal(number, handler)
        return self._status

    def _step(self) -> None:
        """Start processes and kill silent ones, wait until another is due, sends a heartbeat or dies, and record it."""
        for worker in self._workers:
            if worker.due_s > time.monotonic():
                continue
            if not worker.running:
                self._start(worker)
            elif not worker.running[1].poll():  # heartbeats wait if this process was stopped
                LOG.error("server process %d is killed: no heartbeat for %g s", worker.number, self._timeouts.silent_s)
                worker.running[0].kill()
                worker.due_s += self._timeouts.silent_s
        running = [(each, *each.running) for each in self._workers if each.running]
        sources = [source for _, process, heartbeat in running for source in (process.sentinel, heartbeat)]
        due_s = min(each.due_s for each in self._workers)
        ready = wait([self._stop, *sources], max(0, due_s - time.monotonic()))
        for worker, process, heartbeat in running:
            if process.sentinel in ready:
                heartbeat.close()
                process.join()
                status = process.exitcode or 0
                cause = f"was killed by {_name(-status)}" if status < 0 else f"ended with exit status {status}"
                ended = {"signal": _name(-status)} if status < 0 else {"exitStatus": status}
                self._restart(worker, status, cause, {"pid": process.pid, **ended})
            elif heartbeat in ready:
                with suppress(EOFError, OSError):  # the process is dead, which its sentinel reports
                    heartbeat.recv_bytes()
                worker.due_s = time.monotonic() + self._timeouts.silent_s

    def _start(self, worker: _Worker) -> None:
        worker.began_s = time.monotonic()
        worker.due_s = worker.began_s + self._timeouts.silent_s
        beat_s = self._timeouts.silent_s / HEARTBEATS
        try:
            heartbeat, theirs = multiprocessing.Pipe(duplex=False)
            arguments = worker.number, theirs, beat_s, self._target, self._arguments
            process = _SPAWN.Process(target=_run, args=arguments, name=f"server process {worker.number}")
            with theirs, forking():
                process.start()
                worker.running = process, heartbeat
        except OSError as error:  # no memory, process or file descriptor is free
            self._restart(worker, 0, f"could not be started: {error}", {})

    def _restart(self, worker: _Worker, status: int, cause: str, fields: dict[str, object]) -> None:
        """Set the time of the next start of a process that ended.

        If the first start failed and no process has started yet, end the service. If another process has started, the
        cause may be temporary, such as a full disk, and the start is repeated.
        """
        worker.running = None
        if wait([self._stop], CTRL_C_S if status == -signal.SIGINT else 0):
            return
        if worker.is_first and status == STARTUP_FAILURE and not self._has_started():
            LOG.error("server process %d could not start; the service ends", worker.number)
            self._status = STARTUP_FAILURE
            self._stopper.close()
            return
        now_s = time.monotonic()
        worker.deaths = 0 if now_s - worker.began_s >= self._timeouts.settled_s else worker.deaths
        delay_s = RESTART_DELAYS_S[min(worker.deaths, len(RESTART_DELAYS_S) - 1)]
        fields = {"worker": worker.number, **fields}  # the name of the option `--workers`
        text = "server process %d %s; it is restarted in %g s"
        LOG.error(text, worker.number, cause, delay_s, extra={"fields": fields})
        worker.due_s, worker.deaths, worker.is_first = now_s + delay_s, worker.deaths + 1, False

    def _end(self) -> None:
        """Send SIGTERM to the processes, wait until all have ended or `end_s` is over, and kill the rest."""
        deadline_s = time.monotonic() + self._timeouts.end_s
        running = [(each.number, *each.running) for each in self._workers if each.running]
        for _, process, _ in running:
            process.terminate()
        for number, process, _ in running:
            process.join(max(0, deadline_s - time.monotonic()))
            if process.is_alive():
                LOG.error("server process %d is killed: it did not end within %g s", number, self._timeouts.end_s)
                process.kill()
                self._status = 1
        for _, process, heartbeat in running:
            process.join()
            heartbeat.close()
        self._stop.close()


def _name(number: int) -> str:
    """Return the name of a signal; Python has no names for most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _run(
    number: int, heartbeat: Connection, beat_s: float, target: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    """Run `target` in a server process, with a thread that sends heartbeats.

    Until `target` sets a handler, SIGINT ends the process without a traceback, also if it arrived while Python started.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    unblock()
    threading.Thread(target=_beat, args=(heartbeat, beat_s), daemon=True, name="heartbeat").start()
    try:
        target(number, *arguments)
    except Exception:
        LOG.exception("server process %d ends with an error", number)
        sys.exit(1)


def _beat(heartbeat: Connection, every_s: float) -> None:
    with suppress(OSError):  # the parent is dead, and this process ends by itself
        while True:
            heartbeat.send_bytes(b".")
            time.sleep(every_s)
