"""Executor on this machine: child processes.

They are spawned, because delta-rs panics in a forked child process.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from warehouse.batch.driver import THIS_PROCESS, Executor, call
from warehouse.batch.parent import follow_parent, forking

Item = TypeVar("Item")
Result = TypeVar("Result")
_SPAWN = multiprocessing.get_context("spawn")


class ChildProcesses:
    """The executor of `size` child processes, each of which starts when no other one is idle.

    Each process is a pool of its own: the death of a process breaks its whole pool.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._calls: dict[ProcessPoolExecutor, Future[Any]] = {}

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        process = self._idle()
        # The first call starts the process, which inherits the blocked signals. The start of multiprocessing's resource
        # tracker would unblock them, but it has run since the pool was created.
        with forking():
            started = process.submit(call, function, item)
        self._calls[process] = started
        return started

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenProcessPool)

    def close(self) -> None:
        """End the processes, also in the middle of a call."""
        for process in self._calls:
            for pid in list(getattr(process, "_processes", None) or ()):  # a public name comes with Python 3.14
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.shutdown()

    def _idle(self) -> ProcessPoolExecutor:
        """Return a process whose last call has ended, or a new one."""
        for process, last in list(self._calls.items()):
            if last.done() and isinstance(last.exception(), BrokenProcessPool):
                del self._calls[process]
            elif last.done():
                return process
        return ProcessPoolExecutor(1, _SPAWN, follow_parent)


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Yield an executor of `count` processes, and end them at the end of the block. One process is this one."""
    if count == 1:
        yield THIS_PROCESS
        return
    children = ChildProcesses(count)
    try:
        yield children
    finally:
        children.close()
