"""Writes of files and folders that survive a power loss."""

import os
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from glob import escape
from pathlib import Path
from uuid import uuid4

SYNC_THREADS = 8
"""Number of threads of `sync_all`."""
LEFT_S = 3_600
"""Age in seconds at which a temporary file is considered to be left by a process that has died."""


def sync(path: Path) -> None:
    """Sync the content of a file, or the list of names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(paths: Collection[Path]) -> None:
    """Sync files or folders, several at a time and in no order: a file system writes many of them in one step."""
    with ThreadPoolExecutor(SYNC_THREADS, "sync") as pool:
        list(pool.map(sync, paths))


def write(path: Path, content: bytes) -> None:
    """Write and sync a file atomically: readers, also after a power loss, find the old content or the new one.

    Several processes may write one file at once: the content of one of them remains. What a process that was killed in
    a write has left is removed by a later write.
    """
    for left in path.parent.glob(f"{escape(path.name)}.*.new"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < time.time() - LEFT_S:
                left.unlink()
    new = path.with_name(f"{path.name}.{uuid4().hex}.new")
    try:
        new.write_bytes(content)
        sync(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    sync(path.parent)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder and its missing parents, and sync the folders that they were added to."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode, exist_ok=True)
        sync(path.parent)
