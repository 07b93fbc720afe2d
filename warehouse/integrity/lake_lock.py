"""Locks of the lake for one writer, on this machine and over all machines with one hot log in PostgreSQL."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.database.advisory_lock import advisory_lock
from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.errors import LakeBusy
from warehouse.hotlog.connection import HotConnection
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import Root

LAKE_KEY = 0x6C616B65
"""Key of the advisory lock of the tables: `lake` in ASCII."""
ROLLUPS_KEY = 0x726F6C6C
"""Key of the advisory lock of the rollups: `roll` in ASCII."""
DELETIONS_KEY = 0x64656C65
"""Key of the advisory lock of the deletions of projects: `dele` in ASCII."""
COMPACTION_KEY = 0x636F6D70
"""Key of the advisory lock of compactions: `comp` in ASCII."""
_NAMES = {
    LAKE_KEY: "the lake",
    ROLLUPS_KEY: "the rollups",
    DELETIONS_KEY: "the deletions of projects",
    COMPACTION_KEY: "compactions",
}
"""Name of what each key locks, in messages."""
COMPACTION = "compaction"
"""Name of the folder in the lake whose lock compactions take."""
POLL_S = 0.1
"""Time between two attempts to lock, in seconds."""


@contextmanager
def lake_lock(hot: HotConnection, root: Root, wait_s: float) -> Iterator[None]:
    """Lock the lake for one writer across all processes of this machine, and across all nodes with one hot log.

    A node that is paused loses the lock over nodes. Its next statement on the hot log then fails, and Delta refuses its
    next commit if another node has raised the offset of the table, or replaced the same files.

    Raises:
        LakeBusy: another process or node had the lock for `wait_s` seconds, or the lock was lost before a statement on
            the hot log.
    """
    with write_lock(root.local, wait_s), _nodes_lock(hot, LAKE_KEY, wait_s):
        yield


@contextmanager
def rollups_lock(hot: HotConnection, wait_s: float) -> Iterator[None]:
    """Lock the rollups for one of the nodes with one hot log, which would otherwise write the same rollups.

    `warehouse.maintenance.rollups` locks out the other processes of the node.

    Raises:
        LakeBusy: see `lake_lock`.
    """
    with _nodes_lock(hot, ROLLUPS_KEY, wait_s):
        yield


@contextmanager
def deletions_lock(hot: HotConnection, folder: Path, wait_s: float) -> Iterator[None]:
    """Lock the last step of deletions of projects, across all processes that use `folder` and nodes with one hot log.

    Raises:
        LakeBusy: see `lake_lock`.
    """
    with write_lock(folder, wait_s), _nodes_lock(hot, DELETIONS_KEY, wait_s):
        yield


@contextmanager
def compaction_lock(hot: HotConnection, root: Root, wait_s: float) -> Iterator[None]:
    """Lock compactions, which would otherwise sort the same files, across all processes and nodes as `lake_lock` does.

    Raises:
        LakeBusy: see `lake_lock`.
    """
    folder = root / COMPACTION
    folder.make_folder()
    with write_lock(folder.local, wait_s), _nodes_lock(hot, COMPACTION_KEY, wait_s):
        yield


@contextmanager
def _nodes_lock(hot: HotConnection, key: int, wait_s: float) -> Iterator[None]:
    if isinstance(hot, sqlite3.Connection):
        yield
        return
    deadline = time.monotonic() + wait_s
    while True:
        with advisory_lock(hot, key) as is_locked, _lost_lock(hot, key):
            if is_locked:
                yield
                return
        if time.monotonic() >= deadline:
            raise LakeBusy(f"another node has had the lock of {_NAMES[key]} for {wait_s:g} s; try again later")
        time.sleep(POLL_S)


@contextmanager
def _lost_lock(hot: PostgresqlConnection, key: int) -> Iterator[None]:
    """Raise LakeBusy for the error of a statement that found that the connection is lost, and the lock with it."""
    try:
        yield
    except ServerError as error:
        if not hot.is_lost:
            raise
        raise LakeBusy(
            f"the connection with the lock of {_NAMES[key]} was lost: the rest of the work is left for the next run"
        ) from error
