"""Disk space that the loader needs to move the hot log into the lake.

Posts are refused while less space is free. A hot log that has filled its disk cannot be emptied any more: the loader
writes Parquet files, and SQLite needs space in its WAL to delete rows.
"""

import errno
import os
from pathlib import Path

from warehouse.database_errors import Cause, cause_of
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HOT_LOG_ERRORS, HotConnection

MARGIN_BYTES = 8 * 1024 * 1024
"""Space for the hot log's WAL (about 5 MB while batches are deleted), the tables' logs and small files, in bytes."""
MIB = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)


def free_bytes(folder: Path) -> int:
    """Return the free space for a process without privileges, in bytes."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def is_full(error: BaseException) -> bool:
    """Return whether a full disk or quota caused an error of the operating system, SQLite, DuckDB or Delta.

    Errors of DuckDB and Delta have the operating system's message, and no code.
    """
    if isinstance(error, OSError):
        return error.errno in _FULL
    if isinstance(error, HOT_LOG_ERRORS):
        return cause_of(error) is Cause.DISK_FULL
    return any(os.strerror(number) in str(error) for number in _FULL)


def shortage(connection: HotConnection, free: int, more: int = 0) -> str | None:
    """Return why a batch of `more` bytes must be refused with `free` bytes of space; None if that is enough."""
    needed = MARGIN_BYTES + batches.backlog(connection).bytes + 2 * more  # in the hot log and in the lake
    if free >= needed:
        return None
    return (
        f"disk full: {free / MIB:.1f} MiB are free, and {needed / MIB:.1f} MiB are needed to load the waiting hits "
        "into the lake"
    )
