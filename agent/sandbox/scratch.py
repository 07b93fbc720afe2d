"""The folder of a turn that its agent may read: prompt, socket, small files. It goes with its turn, or the next one.

A worker that is killed cannot clear away. Each folder is locked for as long as its worker lives, and the kernel lets go
of the lock: whoever makes a folder clears those that nobody holds.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.sandbox.bubblewrap import AGENT_UID

PREFIX = "readership-turn-"


@contextmanager
def folder() -> Iterator[Path]:
    _clear()
    path, lock = _make()
    try:
        yield path
    finally:
        shutil.rmtree(path)
        os.close(lock)


def _make() -> tuple[Path, int]:
    """Another worker may take a folder that is not locked yet for an old one: then once more."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = _lock(path)
        if lock is not None and path.exists():
            return path, lock


def _clear() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _lock(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _lock(path: Path) -> int | None:
    """None if it is gone, another user's, or in use."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(opened).st_uid in (os.geteuid(), AGENT_UID):
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return opened
    except BlockingIOError:
        pass
    os.close(opened)
    return None
