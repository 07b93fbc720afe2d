"""The supervisor of server processes: it starts them, restarts those that die, and ends all of them.

The supervisor waits for signals, for heartbeats, and for the sentinels of processes, by which the kernel reports a
death. It never waits for a response of a server process, so a process in any state delays neither the restart of
another one nor the end of the service.
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
class _Child:
    """State of one process number, and the process that has the number now. Times are of the monotonic clock."""

    number: int
    process: BaseProcess | None = None
    heartbeat: Connection | None = None
    started_s: float = 0
    heard_s: float = 0
    due_s: float = 0
    deaths: int = 0
    is_first: bool = True


class Supervisor:
    """A fixed number of processes that each call `target(number, *arguments)`; numbers count from 0.

    One process at a time has a number. Each start pickles the arguments again. `has_started` returns whether any
    process has completed its start.
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
        self._timeouts = timeouts or Timeouts()
        self._has_started = has_started
        self._children = [_Child(number) for number in range(processes)]
        self._status: int | None = None

    def run(self, on_end: Callable[[], None] = lambda: None) -> int:
        """Run until SIGTERM or SIGINT, and return the exit status.

        The method also returns if a process fails at its first start before any process has started. `on_end` is called
        before the processes are ended.
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
            for child in self._children:  # after an error some may run, and Python would wait for them
                if child.process:
                    child.process.kill()

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
        for child in self._children:
            if child.process is None and child.due_s <= now_s and self._status is None:
                self._start(child)

    def _start(self, child: _Child) -> None:
        heartbeat, theirs = multiprocessing.Pipe(duplex=False)
        with theirs:
            beat_s = self._timeouts.silent_s / HEARTBEATS
            arguments = child.number, theirs, beat_s, self._target, self._arguments
            process = _SPAWN.Process(target=_run, args=arguments, name=f"server process {child.number}")
            try:
                resource_tracker.ensure_running()  # see `forking`
                with forking():
                    process.start()
            except OSError as error:  # no memory, process or file descriptor is free
                heartbeat.close()
                _plan_restart(child, f"could not be started: {error}", {})
                return
        child.process, child.heartbeat = process, heartbeat
        child.started_s = child.heard_s = time.monotonic()

    def _next_s(self) -> float:
        """Return the time until a restart is due or a process without heartbeats must be killed, in seconds."""
        times = (child.heard_s + self._timeouts.silent_s if child.process else child.due_s for child in self._children)
        return max(0.0, min(times) - time.monotonic())

    def _wait(self, wakeup: socket.socket, timeout_s: float) -> None:
        """Wait for a signal, a death or a heartbeat, and record heartbeats."""
        sentinels = [child.process.sentinel for child in self._children if child.process]
        by_connection = {child.heartbeat: child for child in self._children if child.heartbeat}
        for each in wait([wakeup, *sentinels, *by_connection], timeout_s):
            if each is wakeup:
                wakeup.recv(4096)
            elif isinstance(each, Connection):
                with suppress(EOFError, OSError):  # the process is dead, which its sentinel reports
                    each.recv_bytes()
                    by_connection[each].heard_s = time.monotonic()

    def _kill_silent(self) -> None:
        for child in self._children:
            if child.process and time.monotonic() - child.heard_s >= self._timeouts.silent_s:
                LOG.error("server process %d is killed: no heartbeat for %g s", child.number, self._timeouts.silent_s)
                child.process.kill()
                child.process.join()

    def _reap(self) -> None:
        """Plan the restart of each process that has died.

        If a first start failed and no process has started yet, end the service. If another process has started, the
        cause may be temporary, such as a full disk, and the start is repeated.
        """
        for child in self._children:
            if child.process is None or child.process.is_alive() or self._status is not None:
                continue
            status, lived_s = child.process.exitcode or 0, time.monotonic() - child.started_s
            if child.is_first and status == STARTUP_FAILURE and not self._has_started():
                LOG.error("server process %d could not start; the service ends", child.number)
                self._status = STARTUP_FAILURE
                return
            child.deaths = 0 if lived_s >= self._timeouts.settled_s else child.deaths
            cause = f"ended with exit status {status}"
            fields: dict[str, object] = {"exitStatus": status}
            if status < 0:
                cause, fields = f"was killed by {_name(-status)}", {"signal": _name(-status)}
            _plan_restart(child, cause, {"pid": child.process.pid, **fields})
            _clear(child)

    def _end(self, wakeup: socket.socket) -> int:
        """Send SIGTERM to the processes, wait until all have ended or `end_s` is over, and kill the rest."""
        deadline_s = time.monotonic() + self._timeouts.end_s
        for child in self._children:
            if child.process:
                child.process.terminate()
        while any(child.process and child.process.is_alive() for child in self._children):
            if (left_s := deadline_s - time.monotonic()) <= 0:
                break
            self._wait(wakeup, left_s)
            for child in self._children:
                if child.process and not child.process.is_alive():
                    _clear(child)
        killed = [child for child in self._children if child.process and child.process.is_alive()]
        for child in killed:
            LOG.error("server process %d is killed: it did not end within %g s", child.number, self._timeouts.end_s)
            assert child.process
            child.process.kill()
            child.process.join()
        return 1 if killed else self._status or 0


def _clear(child: _Child) -> None:
    assert child.process
    assert child.heartbeat
    child.process.join()
    child.process.close()
    child.heartbeat.close()
    child.process = child.heartbeat = None


def _plan_restart(child: _Child, cause: str, fields: dict[str, object]) -> None:
    delay_s = RESTART_DELAYS_S[min(child.deaths, len(RESTART_DELAYS_S) - 1)]
    child.deaths, child.due_s, child.is_first = child.deaths + 1, time.monotonic() + delay_s, False
    fields = {"worker": child.number, **fields}  # the name of the option `--workers`
    LOG.error("server process %d %s; it is restarted in %g s", child.number, cause, delay_s, extra={"fields": fields})


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
