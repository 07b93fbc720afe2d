"""Locks of the lake for one writer, on this machine and over all machines with one hot log in PostgreSQL."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from warehouse.database.advisory_lock import advisory_lock
from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.errors import LakeBusy
from warehouse.hotlog.connection import HotConnection
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import Root


class Lock(NamedTuple):
    """What is locked: the key of the advisory lock, its name in messages, and its folder in the lake if it has one."""

    key: int
    name: str
    folder: str | None = None


LAKE = Lock(int.from_bytes(b"lake"), "the lake")
ROLLUPS = Lock(int.from_bytes(b"roll"), "the rollups", "rollups")
COMPACTION = Lock(int.from_bytes(b"comp"), "compactions", "compaction")
DELETIONS = Lock(int.from_bytes(b"dele"), "the deletions of projects")
POLL_S = 0.1
"""Time between two attempts to lock, in seconds."""


@contextmanager
def lake_lock(hot: HotConnection, root: Root, wait_s: float, lock: Lock = LAKE) -> Iterator[None]:
    """Lock the lake, or another `lock`, for one writer across all processes of this machine and nodes with one hot log.

    Without a folder, the lock of this machine is that of `root`. A node that is paused loses the lock over nodes. Its
    next statement on the hot log then fails, and Delta refuses its next commit if another node has raised the offset of
    the table, or replaced the same files.

    Raises:
        LakeBusy: another process or node had the lock for `wait_s` seconds, or the lock was lost before a statement on
            the hot log.
    """
    folder = root if lock.folder is None else root / lock.folder
    folder.make_folder()
    with write_lock(folder.local, wait_s), _nodes_lock(hot, lock, wait_s):
        yield


@contextmanager
def _nodes_lock(hot: HotConnection, lock: Lock, wait_s: float) -> Iterator[None]:
    if isinstance(hot, sqlite3.Connection):
        yield
        return
    deadline = time.monotonic() + wait_s
    while True:
        with advisory_lock(hot, lock.key) as is_locked, _lost_lock(hot, lock):
            if is_locked:
                yield
                return
        if time.monotonic() >= deadline:
            raise LakeBusy(f"another node has had the lock of {lock.name} for {wait_s:g} s; try again later")
        time.sleep(POLL_S)


@contextmanager
def _lost_lock(hot: PostgresqlConnection, lock: Lock) -> Iterator[None]:
    """Raise LakeBusy for the error of a statement that found that the connection is lost, and the lock with it."""
    try:
        yield
    except ServerError as error:
        if not hot.is_lost:
            raise
        raise LakeBusy(
            f"the connection with the lock of {lock.name} was lost: the rest of the work is left for the next run"
        ) from error
