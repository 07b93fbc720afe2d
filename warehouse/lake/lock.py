"""The lake's lock: one process writes at a time."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.errors import LakeBusy

LOCK_POLL_S = 0.05


@contextmanager
def locked(lake: Path, wait_s: float) -> Iterator[None]:
    """Hold the lake of this node for writing: one loader or one maintenance task at a time, across processes.

    The lock is the kernel's, so that a killed holder leaves none behind.

    Raises:
        LakeBusy: another process held it for `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    with (lake / ".lock").open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LakeBusy(f"another process has held the lake for {wait_s:g} s; try again later") from None
                time.sleep(LOCK_POLL_S)
            else:
                break
        yield


def let_others_in() -> None:
    """Wait, the lake free, until all who wait for it have looked again. For one who takes it many times over."""
    time.sleep(2 * LOCK_POLL_S)
