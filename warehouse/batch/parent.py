"""End of a child process with its parent."""

import multiprocessing
import os
import signal
from threading import Thread


def follow_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when it does. Call this function first in a child process.

    A handler of the parent for SIGTERM would run here, too, and the parent could not end this process by the signal.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
