"""End of a child process with its parent."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread


@contextmanager
def forking() -> Iterator[None]:
    """Hold Ctrl-C back while a child process is forked in the block, until `follow_parent` has run in it.

    In the parent process, a Ctrl-C of that time takes effect at the end of the block.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def follow_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when it does. Call this function first in a child process.

    A handler of the parent for SIGTERM would run here, too, and the parent could not end this process by the signal.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # see `forking`
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
