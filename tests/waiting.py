"""Waiting for other processes, and stopping all workers of a service except one."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import httpx

from tests.running import Running

POLL_S = 0.02

Found = TypeVar("Found")


def until(condition: Callable[[], Found], within_s: float = 30) -> Found:
    """Call `condition` until its result is true, and return that result. Raise AssertionError after `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        if found := condition():
            return found
        assert time.monotonic() < deadline, f"not true within {within_s:g} s; the last result was {found!r}"
        time.sleep(POLL_S)


def each_alone(service: Running) -> Iterator[None]:
    """Yield once for each worker, while that worker accepts every new connection and the others are stopped.

    Otherwise one worker may get all connections by chance. Each step must be short: a worker without a heartbeat for
    a minute is replaced.
    """
    workers = started_workers(service)
    for worker in workers:
        with _alone(worker, workers):
            yield


def started_workers(service: Running) -> list[int]:
    """Wait until every worker has started; return their process ids."""
    workers = until(partial(_all_workers_of, service), within_s=30)
    for worker in workers:
        until(partial(_answers_alone, worker, workers, service.url), within_s=30)
    return workers


def workers_of(service: Running) -> list[int]:
    """Return the process ids of the workers, including those that have only begun to start."""
    assert service.process is not None
    return worker_processes(service.process.pid)


def worker_processes(parent: int) -> list[int]:
    """Return the process ids of a supervisor's workers."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in _command_line(child)]


def _command_line(pid: str) -> bytes:
    """Return the command line of a process, empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _all_workers_of(service: Running) -> list[int]:
    """Return the process ids of all workers, or an empty list until each worker has its process."""
    workers = workers_of(service)
    return workers if len(workers) == service.workers else []


def _answers_alone(worker: int, workers: list[int], url: str) -> bool:
    """Return whether the worker answers while the others are stopped."""
    with _alone(worker, workers):
        try:
            return httpx.get(f"{url}/healthz", timeout=0.5).status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def _alone(worker: int, workers: list[int]) -> Iterator[None]:
    others = [each for each in workers if each != worker]
    for each in others:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in others:
            os.kill(each, signal.SIGCONT)
