"""Files and folders on the disk: what is synced survives a power loss."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, content: bytes) -> None:
    """Write a file in one step: a reader, and a restart after a power loss, finds the old content or the new."""
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    sync(new)
    new.replace(path)
    sync(path.parent)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder and its parents where they are missing, and sync the names that were added."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode, exist_ok=True)
        sync(path.parent)
