"""Cache of the lake's immutable files on the local disk, limited by their size.

All processes of a machine share the cache. A file has the name of a hash of its URI, and its modification time is the
time of its last use. The least recently used files are evicted. An open file can be read after its eviction.
"""

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse import disk

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER, NEW = "cache", ".new"
"""Name of the cache in the local folder of a lake, and suffix of the files that are being downloaded or written."""
ABANDONED_S = 3600
"""Age at which a file that is being downloaded or written may be evicted, in seconds: its process was killed."""


@dataclass(frozen=True, slots=True)
class FileCache:
    """Files in a folder with at most `bytes_max` bytes."""

    folder: Path
    bytes_max: int

    def open(self, uri: str, download: Callable[[Path], None]) -> "pa.OSFile":
        """Return an open file with the content of an object, which is downloaded if needed."""
        import pyarrow as pa  # noqa: PLC0415  # takes 0.1 s to import, and this module is imported with a local lake

        cached = self._place(uri)
        with suppress(FileNotFoundError):
            file = pa.OSFile(str(cached))
            with suppress(FileNotFoundError):
                os.utime(cached)
            return file
        with self.new_file(uri) as new:
            download(new)
            return pa.OSFile(str(new))

    @contextmanager
    def new_file(self, uri: str) -> Iterator[Path]:
        """Yield the path of a new file with the content of an object. A file larger than the cache is deleted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f"{uuid.uuid4()}{NEW}"
        try:
            yield new
            if new.stat().st_size <= self.bytes_max:
                disk.sync(new)  # or the name could remain without the content after a power loss
                new.replace(self._place(uri))
            self._evict()
        finally:
            new.unlink(missing_ok=True)

    def retain(self, uris: Iterable[str]) -> None:
        """Delete the files of other objects than `uris`.

        A file that is cached while `uris` are listed may be deleted, and is then downloaded again.
        """
        names = {self._place(uri).name for uri in uris}
        for cached in self.folder.glob("*"):
            if cached.name not in names and cached.suffix != NEW:
                cached.unlink(missing_ok=True)

    def _place(self, uri: str) -> Path:
        return self.folder / hashlib.blake2b(uri.encode(), digest_size=20).hexdigest()

    def _evict(self) -> None:
        """Delete the least recently used files until the others have at most `bytes_max`."""
        files: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process has just evicted the file
                    stat = entry.stat()
                    if not entry.name.endswith(NEW) or stat.st_mtime < time.time() - ABANDONED_S:
                        files.append((stat.st_mtime, stat.st_size, entry.path))
        excess = sum(size for _, size, _ in files) - self.bytes_max
        for _, size, name in sorted(files):
            if excess <= 0:
                return
            Path(name).unlink(missing_ok=True)
            excess -= size
