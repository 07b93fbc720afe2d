"""Lock of the lake, or of another folder: one process at a time writes into it.

The process that has the lock writes its id into the file of the lock, for the message of a process that waits in vain.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warehouse.errors import LakeBusy

FILE = ".lock"
LOCK_POLL_S = 0.01
"""Time between two attempts to lock, in seconds."""
_TEXT_BYTES = 320
"""Size of the owner's id and of the name of its machine or container, which may have 255 bytes."""


@contextmanager
def write_lock(folder: Path, wait_s: float) -> Iterator[None]:
    """Lock a folder of this machine, such as the local folder of a lake, for one writer across all processes.

    The kernel releases the lock when its process ends, however it ends.

    Raises:
        LakeBusy: the lock was not free within `wait_s` seconds. The message names the process that has the lock.
    """
    deadline = time.monotonic() + wait_s
    descriptor = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        while not try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise LakeBusy(_busy(descriptor, folder, wait_s))
            time.sleep(LOCK_POLL_S)
        with suppress(OSError):  # a full disk must not prevent the work, and the text is only for messages
            os.pwrite(descriptor, f"{os.getpid()} {os.uname().nodename}".ljust(_TEXT_BYTES).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def pause_for_waiters() -> None:
    """Wait without the lock until each waiting process has polled the lock. Call this between many short locks."""
    time.sleep(2 * LOCK_POLL_S)


def try_lock(descriptor: int) -> bool:
    """Take the lock of an open file if it is free; return whether this process has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine, of any user, runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _busy(descriptor: int, folder: Path, wait_s: float) -> str:
    """Return the message of LakeBusy. The owner may be a process of the same service, or a thread of this process."""
    pid, _, machine = os.pread(descriptor, _TEXT_BYTES, 0).decode("utf-8", "replace").strip().partition(" ")
    if machine not in {"", os.uname().nodename}:
        owner = f"process {pid} on {machine}"
    elif pid == str(os.getpid()):
        owner = "another task of this process"
    else:
        owner = f"process {pid}" if pid else "a process"
    return f"the lock of {folder} was not free within {wait_s:g} s, because {owner} has it; try again later"
