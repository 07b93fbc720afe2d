"""Folders of jobs on this machine: their locks, and the limit on the files of idle jobs."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent.errors import TurnStopped
from agent.git import workspace
from agent.git.workspace import Workspace
from agent.sandbox.bubblewrap import Limits
from agent.sandbox.watchdog import sizes
from warehouse.lake.lock import try_lock

IDLE_BYTES_MAX = Limits().disk_bytes
"""Maximum size of the files of all idle jobs together. With n turns at once, the work trees and homes of all jobs use
at most n + 1 times the disk limit of a turn."""
LOCK_POLL_S = 0.1
LOG = logging.getLogger("readership.agent")


@contextmanager
def locked(folder: Path, is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Lock a job's folder. Wait for a worker on this machine that has not noticed yet that it has lost the turn.

    Raises TurnStopped if `is_stopped` returned true during the wait.
    """
    with (folder / ".lock").open("w") as file:
        while not try_lock(file.fileno()):
            if is_stopped():
                raise TurnStopped("the turn was stopped")
            time.sleep(LOCK_POLL_S)
        yield


def limit_idle(jobs: Path, bytes_max: int) -> None:
    """Remove the files of jobs that are idle longest, until the files of all idle jobs have at most `bytes_max`.

    Files that cannot be measured are removed, too. A job is not idle while its folder is locked.
    """
    left: float = bytes_max
    for folder in sorted(jobs.iterdir(), key=_ended_s, reverse=True):
        with suppress(FileNotFoundError), (folder / ".lock").open("a") as file:  # another worker removes archived jobs
            if not try_lock(file.fileno()):
                continue
            size = _size(folder)
            if size <= left:
                left -= size
            else:
                LOG.info("the files of the idle job %s are removed to make room", folder.name)
                workspace.remove_all(Workspace(folder))


def _ended_s(folder: Path) -> float:
    """Return when the last turn in the folder ended: the time of the last change of its entries."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return 0


def _size(folder: Path) -> float:
    """Return the size of a folder in bytes; infinity if a part of it cannot be read."""
    try:
        return sum(sizes(folder))
    except OSError:
        return math.inf
