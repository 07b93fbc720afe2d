"""The supervisor of server processes: it starts them, restarts those that die, and ends all of them.

Each process has a thread of the supervisor, which waits for its heartbeats, and for its sentinel, by which the kernel
reports its death. A process in any state delays neither the restart of another one nor the end of the service.
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


class Supervisor:
    """A fixed number of processes that each call `target(number, *arguments)`; numbers count from 0.

    One process at a time has a number. Each start pickles the arguments again, to at most the 64 KiB of a pipe: a write
    to a process that dies meanwhile would never end. `has_started` returns whether any process has completed its start.
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
        self._keepers = [threading.Thread(target=self._keep, args=(each,), daemon=True) for each in range(processes)]
        self._wakeup, self._writer = socket.socketpair()
        self._writer.setblocking(False)  # noqa: FBT003  # takes no keyword
        self._lock = threading.Lock()
        """Lock of the start of a process and of the next two."""
        self._running: dict[int, BaseProcess] = {}
        self._ending = threading.Event()
        self._is_stopped, self._status = False, 0

    def run(self, on_end: Callable[[], None] = lambda: None) -> int:
        """Run until SIGTERM or SIGINT, and return the exit status.

        The method also returns if a process fails at its first start before any process has started. `on_end` is called
        before the processes are ended.
        """
        resource_tracker.ensure_running()  # see `forking`
        with self._wakeup, self._writer, self._signals():
            for keeper in self._keepers:
                keeper.start()
            try:
                while not self._is_stopped:
                    self._wakeup.recv(4096)
                on_end()
            finally:
                self._end()
        return self._status

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT, each of which also wakes `run`."""
        handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _stop(self, *_: object) -> None:
        self._is_stopped = True

    def _keep(self, number: int) -> None:
        """Run the processes with a number, one after the other, until the service ends."""
        try:
            self._restart(number)
        except Exception:
            LOG.exception("server process %d cannot be watched; the service ends", number)
            self._status = 1
        finally:
            self._stop()
            with suppress(OSError):  # `run` is awake
                self._writer.send(b".")

    def _restart(self, number: int) -> None:
        """Start a process, and another whenever it dies.

        If the first start failed and no process has started yet, end the service. If another process has started, the
        cause may be temporary, such as a full disk, and the start is repeated.
        """
        deaths, is_first = 0, True
        while True:
            began_s = time.monotonic()
            try:
                status, fields = self._run_process(number)
                cause = f"was killed by {_name(-status)}" if status < 0 else f"ended with exit status {status}"
                fields |= {"signal": _name(-status)} if status < 0 else {"exitStatus": status}
            except OSError as error:  # no memory, process or file descriptor is free
                status, cause, fields = 0, f"could not be started: {error}", {}
            if self._ending.wait(CTRL_C_S if status == -signal.SIGINT else 0):
                return
            if is_first and status == STARTUP_FAILURE and not self._has_started():
                LOG.error("server process %d could not start; the service ends", number)
                self._status = STARTUP_FAILURE
                return
            deaths = 0 if time.monotonic() - began_s >= self._timeouts.settled_s else deaths
            delay_s = RESTART_DELAYS_S[min(deaths, len(RESTART_DELAYS_S) - 1)]
            fields = {"worker": number, **fields}  # the name of the option `--workers`
            LOG.error("server process %d %s; it is restarted in %g s", number, cause, delay_s, extra={"fields": fields})
            deaths, is_first = deaths + 1, False
            self._ending.wait(delay_s)

    def _run_process(self, number: int) -> tuple[int, dict[str, object]]:
        """Run a process to its end; return its exit status and its id. Start nothing if the service ends."""
        heartbeat, theirs = multiprocessing.Pipe(duplex=False)
        beat_s = self._timeouts.silent_s / HEARTBEATS
        arguments = number, theirs, beat_s, self._target, self._arguments
        process = _SPAWN.Process(target=_run, args=arguments, name=f"server process {number}")
        with heartbeat:
            with theirs, self._lock, forking():
                if self._ending.is_set():
                    return 0, {}
                process.start()
                self._running[number] = process
            while process.sentinel not in (ready := wait([process.sentinel, heartbeat], self._timeouts.silent_s)):
                if ready:
                    with suppress(EOFError, OSError):  # the process is dead, which its sentinel reports
                        heartbeat.recv_bytes()
                else:
                    LOG.error("server process %d is killed: no heartbeat for %g s", number, self._timeouts.silent_s)
                    process.kill()
        with self._lock:
            del self._running[number]
        process.join()
        return process.exitcode or 0, {"pid": process.pid}

    def _end(self) -> None:
        """Send SIGTERM to the processes, wait until all have ended or `end_s` is over, and kill the rest."""
        deadline_s = time.monotonic() + self._timeouts.end_s
        with self._lock:
            self._ending.set()
            for process in self._running.values():
                process.terminate()
        for keeper in self._keepers:
            keeper.join(max(0, deadline_s - time.monotonic()))
        with self._lock:
            for number, process in self._running.items():
                LOG.error("server process %d is killed: it did not end within %g s", number, self._timeouts.end_s)
                process.kill()
                self._status = 1
        for keeper in self._keepers:
            keeper.join()


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
