"""Waiting for other processes, and stopping all server processes of a service except one."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import httpx

from tests.processes.running import Running
from tests.processes.state import children, command_line

POLL_S, POLL_S_MAX = 0.02, 0.1
"""Pause between two calls of a condition, in seconds: a twentieth of the time that the test has waited for it, within
these bounds. Many conditions send a request, whose processor time the process that the test waits for lacks."""

Result = TypeVar("Result")


def until(condition: Callable[[], Result], within_s: float = 90) -> Result:
    """Call `condition` until its result is true, and return that result. Raise AssertionError after `within_s`."""
    began_s = time.monotonic()
    while True:
        if result := condition():
            return result
        waited_s = time.monotonic() - began_s
        assert waited_s < within_s, f"not true within {within_s:g} s; the last result was {result!r}"
        time.sleep(min(max(POLL_S, waited_s / 20), POLL_S_MAX))


@contextmanager
def killed_on_failure(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill a process if the block fails: the end of `with Popen(...)` waits for it, also after a failed assertion."""
    try:
        yield
    except BaseException:
        process.kill()
        raise


def within_window(attempt: Callable[[str], Result], window_s: float = 60) -> Result:
    """Call `attempt` with the address of a new client until it ends within the window of a limit; return its result."""
    for number in range(1, 10):
        began_s = time.monotonic()
        result = attempt(f"203.0.113.{number}")
        if time.monotonic() - began_s < window_s:
            return result
    raise AssertionError(f"each of {number} attempts took longer than {window_s:g} s")


def each_alone(service: Running) -> Iterator[None]:
    """Yield once for each server process, while that process accepts every new connection and the others are stopped.

    Otherwise one process may get all connections by chance. Each step must be short: a process without a heartbeat for
    a minute is replaced.
    """
    processes = started_processes(service)
    for process in processes:
        with _alone(process, processes):
            yield


def started_processes(service: Running) -> list[int]:
    """Wait until every server process has started; return their ids."""
    return until(partial(_started, service))


def processes_of(service: Running) -> list[int]:
    """Return the ids of the server processes, including those that have only begun to start."""
    assert service.process is not None
    return server_processes(service.process.pid)


def server_processes(parent: int) -> list[int]:
    """Return the ids of the server processes of a supervisor."""
    return [child for child in children(parent) if b"spawn_main" in command_line(child)]


def _started(service: Running) -> list[int]:
    """Return the ids of all server processes, or an empty list until each of them answers while the others are stopped.

    The others run as long as they were stopped. Otherwise one that is still starting might send no heartbeat, and be
    replaced.
    """
    processes = processes_of(service)
    if len(processes) != service.processes:
        return []
    for process in processes:
        try:
            with _alone(process, processes):
                httpx.get(f"{service.url}/healthz", timeout=2).raise_for_status()
        except (httpx.TransportError, ProcessLookupError):
            time.sleep(2)
            return []
    return processes


@contextmanager
def _alone(process: int, processes: list[int]) -> Iterator[None]:
    others = [each for each in processes if each != process]
    for each in others:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in others:
            os.kill(each, signal.SIGCONT)
