"""Workers on this machine: child processes.

They are spawned, because delta-rs panics in a forked child process.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import TypeVar

from warehouse.batch.call import call
from warehouse.batch.items import Worker
from warehouse.batch.parent import follow_parent, forking

Item = TypeVar("Item")
Result = TypeVar("Result")
_SPAWN = multiprocessing.get_context("spawn")


class ThisProcess:
    """A worker that runs each item in this process, before `submit` returns."""

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        future = Future[Result]()
        try:
            future.set_result(function(item))
        except Exception as error:  # noqa: BLE001  # `items.run` raises it
            future.set_exception(error)
        return future

    def has_died(self, error: BaseException) -> bool:
        return False

    def restart(self) -> None:
        raise NotImplementedError


class ChildProcess:
    """A worker that is a child process. It starts with its first item."""

    def __init__(self) -> None:
        self.restart()

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        # The first call starts the process, which inherits the blocked signals. The start of multiprocessing's resource
        # tracker would unblock them, but it has run since the pool was created.
        with forking():
            return self._pool.submit(call, function, item)

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenProcessPool)

    def restart(self) -> None:
        self._pool = ProcessPoolExecutor(1, _SPAWN, follow_parent)

    def close(self) -> None:
        """End the process, also in the middle of an item."""
        for pid in _children_of(self._pool):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._pool.shutdown()


@contextmanager
def processes(count: int, items: int) -> Iterator[Sequence[Worker]]:
    """Yield up to `count` workers for a number of items, and end their processes at the end of the block.

    A single worker runs in this process.
    """
    if min(count, items) <= 1:
        yield [ThisProcess()]
        return
    workers = [ChildProcess() for _ in range(min(count, items))]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.close()


@contextmanager
def this_process(items: int) -> Iterator[Sequence[Worker]]:
    """Yield one worker that runs the items in this process."""
    yield [ThisProcess()]


def _children_of(pool: ProcessPoolExecutor) -> list[int]:
    """Return the ids of the processes of a pool: the library has no public name for them before Python 3.14."""
    return list(getattr(pool, "_processes", None) or ())
