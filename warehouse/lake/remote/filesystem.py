"""Files of the lake for DuckDB, through the cache. DuckDB's own extension for object stores is not in its wheel."""

import os
from datetime import UTC, datetime
from threading import get_ident
from typing import Any

import duckdb
import pyarrow as pa
from cachetools import LRUCache
from fsspec import AbstractFileSystem  # type: ignore[import-untyped]  # has no type information

from warehouse.lake.remote import object_path
from warehouse.lake.remote.object_path import ObjectPath

SIZES_MAX = 65_536
WRITTEN = datetime(1970, 1, 1, tzinfo=UTC)
"""Time of the last write of each file for DuckDB, which uses it to find changed files: a file never changes."""


class _SharedFile:
    """An open file in which each thread has a position of its own.

    DuckDB gives one open file to the threads of several queries. Each of them first calls `seek` and then `read`, and
    other threads run in between: with a common position, one thread would read the bytes that another one has chosen.
    """

    def __init__(self, file: pa.OSFile) -> None:
        self._file = file
        self._positions: dict[int, int] = {}  # not `threading.local`: a thread of DuckDB has no state between two calls

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        assert whence == os.SEEK_SET, "DuckDB seeks from the start only"
        self._positions[get_ident()] = position
        return position

    def tell(self) -> int:
        return self._positions.get(get_ident(), 0)

    def read(self, size: int) -> bytes:
        position = self.tell()
        content: bytes = self._file.read_at(size, position)
        self._positions[get_ident()] = position + len(content)
        return content

    def close(self) -> None:
        self._file.close()


class LakeFilesystem(AbstractFileSystem):  # type: ignore[misc]  # its base class has no type information
    """The immutable files of lakes of one scheme, by URI. They can only be read."""

    cachable = False  # or fsspec would return the instance of an earlier lake

    def __init__(self, scheme: str) -> None:
        super().__init__()
        self.protocol = scheme
        self._sizes: LRUCache[str, int] = LRUCache(SIZES_MAX)

    def open(self, path: str, mode: str = "rb", **_: Any) -> _SharedFile:
        """Return an open file. Its size is cached, because DuckDB asks for the size of each file that it opens."""
        assert mode == "rb", "the lake is written by delta-rs and obstore"
        file = _at(path).open_parquet()
        self._sizes[path] = file.size()
        return _SharedFile(file)

    def size(self, path: str) -> int:
        size = self._sizes.get(path)
        return _at(path).stat().st_size if size is None else size

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the path itself: each file is named in full. No request is sent."""
        return [path]

    def exists(self, path: str, **_: Any) -> bool:
        return path in self._sizes or _at(path).exists()

    def isfile(self, path: str) -> bool:
        return self.exists(path)

    def modified(self, path: str) -> datetime:
        return WRITTEN


def register(database: duckdb.DuckDBPyConnection) -> None:
    """Let a database read the files of the lakes that this process uses."""
    for scheme in {uri.partition("://")[0] for uri in object_path.LAKES}:
        database.register_filesystem(LakeFilesystem(scheme))


def _at(path: str) -> ObjectPath:
    location = object_path.find(path)
    if location is None:
        raise FileNotFoundError(f"{path} is not in a lake of this process")
    return location
