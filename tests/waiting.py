"""Other processes: waiting for what one is about to do, and letting one of several workers answer alone."""

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
    """The first true answer of `condition`, which is asked again and again. Raises AssertionError after `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        if found := condition():
            return found
        assert time.monotonic() < deadline, f"not so within {within_s:g} s; the last answer was {found!r}"
        time.sleep(POLL_S)


def each_alone(service: Running) -> Iterator[None]:
    """A turn for each worker, in which it takes every new connection: chance may give all of them to one.

    The others stand still meanwhile. A turn must be short: a worker that is silent for a minute is replaced.
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
    """The process ids of the workers, also of those that have only begun to start."""
    assert service.process is not None
    return worker_processes(service.process.pid)


def worker_processes(parent: int) -> list[int]:
    """The process ids of a supervisor's workers."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in _command_line(child)]


def _command_line(pid: str) -> bytes:
    """Empty for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _all_workers_of(service: Running) -> list[int]:
    """The workers, once each is a process of its own; none until then."""
    workers = workers_of(service)
    return workers if len(workers) == service.workers else []


def _answers_alone(worker: int, workers: list[int], url: str) -> bool:
    """Whether the worker has started."""
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
