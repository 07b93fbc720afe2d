"""Temporary folder of a turn: prompt, socket and small files that the agent may read.

Each folder is locked while its worker lives. The kernel releases the lock of a worker that is killed, and the next turn
removes every folder that is not locked.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.sandbox.bubblewrap import AGENT_UID
from warehouse.lake.lock import try_lock

PREFIX = "readership-turn-"


@contextmanager
def folder() -> Iterator[Path]:
    """Create a folder and remove it at the end of the `with` block. Remove folders that killed workers have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if (unlocked := _lock(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(unlocked)
    path, lock = _create()
    try:
        yield path
    finally:
        shutil.rmtree(path)
        os.close(lock)


def _create() -> tuple[Path, int]:
    """Create and lock a folder. Repeat if another worker removed the folder before it was locked."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = _lock(path)
        if lock is not None and path.exists():
            return path, lock


def _lock(path: Path) -> int | None:
    """Lock a folder. Return None if the folder was removed, belongs to another user or is locked."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    if os.fstat(opened).st_uid in (os.geteuid(), AGENT_UID) and try_lock(opened):
        return opened
    os.close(opened)
    return None
