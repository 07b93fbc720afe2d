"""Cache of the lake's immutable files on the local disk, limited by their size.

All processes of a machine share the cache. A file has the name of a hash of its URI, and its modification time is the
time of its last use. The least recently used files are evicted. An open file can be read after its eviction.
"""

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from warehouse import disk
from warehouse.lake.remote.object_path import ObjectLake, ObjectPath

FOLDER, NEW = "cache", ".new"
"""Name of the cache in the local folder of a lake, and suffix of the files that are being downloaded or written."""
ABANDONED_S = 3600
"""Age at which a file that is being downloaded or written may be evicted, in seconds: its process was killed."""


def open_file(path: ObjectPath) -> pa.OSFile:
    """Return an open local file with the content of an object, which is downloaded if needed.

    Raises:
        FileNotFoundError: there is no such object.
        LakeUnreachable: the store does not answer.
    """
    cached = _place(path)
    with suppress(FileNotFoundError):
        file = pa.OSFile(str(cached))
        with suppress(FileNotFoundError):
            os.utime(cached)
        return file
    with _cached(path) as new:
        path.download(new)
        return pa.OSFile(str(new))


@contextmanager
def new_file(path: ObjectPath) -> Iterator[Path]:
    """Yield the local path of a new file, which is uploaded to an object at the end of the block, and cached."""
    with _cached(path) as new:
        yield new
        path.write(new)


def evict_deleted(root: ObjectPath) -> None:
    """Delete the cached files of a lake whose objects do not exist any more, such as those with erased rows.

    A file that is cached while the objects are listed may be deleted, and is then downloaded again.
    """
    existing = {_place(root / path).name for path, _ in root.files()}
    for cached in (root.lake.local / FOLDER).glob("*"):
        if cached.name not in existing and cached.suffix != NEW:
            cached.unlink(missing_ok=True)


def _place(path: ObjectPath) -> Path:
    return path.lake.local / FOLDER / hashlib.blake2b(str(path).encode(), digest_size=20).hexdigest()


@contextmanager
def _cached(path: ObjectPath) -> Iterator[Path]:
    """Yield the path of a new file with the content of an object, and cache it unless it is larger than the cache."""
    folder = path.lake.local / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{uuid.uuid4()}{NEW}"
    try:
        yield new
        if new.stat().st_size <= path.lake.cache_bytes:
            disk.sync(new)  # or the name could remain without the content after a power loss
            new.replace(_place(path))
        _evict(path.lake)
    finally:
        new.unlink(missing_ok=True)


def _evict(lake: ObjectLake) -> None:
    """Delete the least recently used files until the others have at most `cache_bytes`."""
    files: list[tuple[float, int, str]] = []
    with os.scandir(lake.local / FOLDER) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process has just evicted the file
                stat = entry.stat()
                if not entry.name.endswith(NEW) or stat.st_mtime < time.time() - ABANDONED_S:
                    files.append((stat.st_mtime, stat.st_size, entry.path))
    excess = sum(size for _, size, _ in files) - lake.cache_bytes
    for _, size, name in sorted(files):
        if excess <= 0:
            return
        Path(name).unlink(missing_ok=True)
        excess -= size
