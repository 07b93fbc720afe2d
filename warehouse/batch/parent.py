"""End of a child process with its parent."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def forking() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM while a child process starts in the block.

    In the child process, which this thread forks or spawns, the signals stay blocked until it calls `unblock`. The
    start of multiprocessing's resource tracker, which the first spawned process needs, would unblock the signals: call
    `resource_tracker.ensure_running` before.

    In the parent process, a signal of that time takes effect at the end of the block, if the process has one thread.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def unblock() -> None:
    """End the block of `forking` in a child process: a signal of that time takes effect now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def follow_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when it does. Call this function first in a child process.

    A handler of the parent for SIGTERM would run here, too, and the parent could not end this process by the signal.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    unblock()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
