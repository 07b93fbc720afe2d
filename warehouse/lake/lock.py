"""Lock of the lake: one process at a time writes into it."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager

from warehouse.errors import LakeBusy
from warehouse.lake.roots import Root, local_folder

LOCK_POLL_S = 0.01
"""Time between two attempts to lock, in seconds."""
_BUSY = "another process has held the lake's lock for {:g} s; try again later"


@contextmanager
def write_lock(folder: Root, wait_s: float) -> Iterator[None]:
    """Lock the lake, or another folder, for one writer across all processes of this machine.

    The kernel releases the lock when its process ends, however it ends. The lock of a lake in an object store is in its
    local folder: it does not lock out other machines.

    Raises:
        LakeBusy: another process held the lock for `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    with (local_folder(folder) / ".lock").open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LakeBusy(_BUSY.format(wait_s)) from None
                time.sleep(LOCK_POLL_S)
            else:
                break
        yield


def pause_for_waiters() -> None:
    """Wait without the lock until each waiting process has polled the lock. Call this between many short locks."""
    time.sleep(2 * LOCK_POLL_S)
