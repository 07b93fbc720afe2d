"""The lock that lets one service at a time use a data folder.

It is a kernel lock (flock) on a file in the run folder. The supervisor and its processes share the lock, so the lock is
free once the last of them has ended, also after SIGKILL. The text of the file is only for messages.

Another file of the run folder has the URL at which the service listens, which commands print as a part of links. The
file of a service that was killed remains until the next service starts.
"""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import reduction
from pathlib import Path
from shlex import quote
from typing import Any

from api.errors import FolderInUse
from warehouse.lake.lock import is_alive, try_lock

FILE, URL_FILE = "service.lock", "service.url"
ENDING_WAIT_S = 30.0
"""Time that a new service waits for one that is ending, in seconds. A supervisor kills its processes after 25 s."""
POLL_S = 0.05
_TEXT_BYTES = 32


class ServiceLock:
    """A share of the lock. A child process that gets a share as an argument has a share of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Callable[..., "ServiceLock"], tuple[object]]:
        return _received, (reduction.DupFd(self._descriptor),)

    def mark_ending(self) -> None:
        """Record that this service is ending, so that a new service waits for its end. Safe in a signal handler."""
        with suppress(OSError):  # a full disk must not prevent the end, and the text is only for messages
            _write(self._descriptor, "ending")

    def release(self) -> None:
        os.close(self._descriptor)


def acquire(data: Path, run: Path, on_wait: Callable[[str], None], ending_wait_s: float = ENDING_WAIT_S) -> ServiceLock:
    """Return the lock of a data folder, whose run folder exists.

    The function waits for a service that is ending, or whose processes still run after their supervisor was killed. It
    calls `on_wait` once before the wait, with a message.

    Raises:
        FolderInUse: another service runs on the folder.
    """
    descriptor = os.open(run / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline_s = 0.0
    while not try_lock(descriptor):
        pid, state = _read(descriptor)
        if state == "serving" and is_alive(pid):
            os.close(descriptor)
            raise FolderInUse(
                f"another service (process {pid}) runs on the data folder {data}: stop it first, or choose another"
                " folder with --data"
            )
        if not deadline_s:
            deadline_s = time.monotonic() + ending_wait_s
            on_wait(f"waiting up to {ending_wait_s:g} s for the service of process {pid} on {data} to end")
        if time.monotonic() >= deadline_s:
            os.close(descriptor)
            raise FolderInUse(
                f"a process of the last service still runs on the data folder {data} after {ending_wait_s:g} s: stop"
                f" it, then try again (the service began as process {pid}; fuser {quote(str(run / FILE))} lists its"
                " processes)"
            )
        time.sleep(POLL_S)
    _write(descriptor, "serving")
    return ServiceLock(descriptor)


def _received(descriptor: Any) -> ServiceLock:
    """Build the share of a child process."""
    number: int = descriptor.detach()
    fcntl.fcntl(number, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    return ServiceLock(number)


def _write(descriptor: int, state: str) -> None:
    os.pwrite(descriptor, f"{os.getpid()} {state}".ljust(_TEXT_BYTES).encode(), 0)


def _read(descriptor: int) -> tuple[int, str]:
    """Return the process id and the state that the lock's owner wrote; 0 and an empty string from an empty file."""
    pid, _, state = os.pread(descriptor, _TEXT_BYTES, 0).decode("ascii", "replace").strip().partition(" ")
    return (int(pid), state) if pid.isdigit() else (0, "")


def write_url(run: Path, url: str) -> None:
    with suppress(OSError):  # a full disk must not prevent the start, and the URL is only for messages
        (run / URL_FILE).write_text(url, encoding="utf-8")


def delete_url(run: Path) -> None:
    with suppress(OSError):
        (run / URL_FILE).unlink(missing_ok=True)


def read_url(run: Path) -> str | None:
    """Return the URL of the running service, or None."""
    try:
        return (run / URL_FILE).read_text(encoding="utf-8") or None
    except FileNotFoundError:
        return None
