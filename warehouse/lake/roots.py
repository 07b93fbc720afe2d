"""Storage of the lake: a local folder, whose methods are the interface, or a prefix in an object store.

A local file is synced, and replaced by a rename: see `warehouse.disk`. An object is complete and durable once it is
written. With a local lake, the only code of `warehouse.lake.remote` that runs is a look-up in an empty dictionary.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, ClassVar

from warehouse import disk
from warehouse.errors import InvalidRoot
from warehouse.lake.remote import object_path
from warehouse.lake.remote.object_path import ObjectLake, ObjectPath

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

CACHE_BYTES = 4 << 30
"""Default maximum size of the cached files of a lake in an object store, in bytes."""
PACKAGES = ("obstore", "fsspec")
"""Packages that a lake in an object store needs, and a local one does not."""


class LocalPath(PosixPath):
    """File or folder of a lake in a local folder. A folder that is missing, or has a file in its path, has no files."""

    __slots__ = ()
    checkpoint_commits: ClassVar[int] = 50
    """Number of commits of a table after which a checkpoint is written: opening the table reads a file for each."""
    delta_options: ClassVar[None] = None
    """Options with which delta-rs opens a table."""
    uri: ClassVar[None] = None
    """URI in an object store; None for a local path."""

    @property
    def local(self) -> Path:
        """Return the local folder for the locks and temporary files of a folder."""
        return self

    def read_immutable(self) -> bytes:
        """Return the content of a file that never changes, from the cache if it is an object."""
        return self.read_bytes()

    def open_parquet(self) -> "Path | pa.OSFile":
        """Return what pyarrow opens to read a file that never changes: a local path, or the open file of an object."""
        return self

    def write(self, content: bytes) -> None:
        """Write or replace a file atomically and durably: readers find the old content or the new one."""
        disk.write(self, content)

    @contextmanager
    def new_file(self) -> Iterator[Path]:
        """Yield the local path at which a new file is written. Call `sync` before a commit names the file."""
        self.parent.mkdir(exist_ok=True)
        yield self

    def renew(self) -> "LocalPath":
        """Give a file that never changes the present as the time of its last write, and return its path.

        An object gets the time by a copy, whose path differs in the name before its suffix.
        """
        os.utime(self)
        return self

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the path in the folder, the size and the time of each file in it and in its folders, in any order."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process has just removed the file
                    if entry.is_dir():
                        yield from ((f"{entry.name}/{path}", stat) for path, stat in (self / entry.name).files())
                    else:
                        yield entry.name, entry.stat()

    def folders(self) -> list[str]:
        """Return the names of the folders in the folder, in any order."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
        return []

    def make_folder(self) -> None:
        """Create and sync a folder and its parents. For a folder in an object store, `local` is created."""
        disk.make_folder(self)

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """Create a folder, and yield the local folder whose files are durable in it after the block."""
        disk.make_folder(self)
        yield self
        self.sync(self.iterdir())

    def remove_folder(self) -> None:
        """Delete a folder with all that is in it."""
        import shutil  # noqa: PLC0415  # takes 5 ms to import, and is not needed by commands that only read

        shutil.rmtree(self)

    def sync(self, files: Iterable["Root | str"] = ()) -> None:
        """Wait until a folder and `files` in it survive a power loss. For an object store, `files` is not read.

        Raises:
            FileNotFoundError: a file is missing.
        """
        paths = [Path(str(file)) for file in files]
        disk.sync_all({self, *(place for path in paths for place in (path, *path.parents[:2]))})

    def reaching(self) -> AbstractContextManager[None]:
        """Raise LakeUnreachable if delta-rs raises in the block that the object store does not answer."""
        return nullcontext()

    def require_safe(self) -> None:
        """Raise UnsafeStore if the object store lets two writers create the same object."""

    def evict_deleted(self) -> None:
        """Delete the cached files of objects that were deleted."""


Root = LocalPath | ObjectPath
"""Root of a lake, or a file or folder below it. Methods with a name of `Path` do the same as there."""


def open_remote(uri: str, local: Path, cache_bytes: int = CACHE_BYTES) -> Root:
    """Return the root of a lake in an object store. No request is sent. `local` and `cache_bytes`: see `ObjectLake`.

    Raises:
        InvalidRoot: the URI is malformed, or a package of PACKAGES is missing.
    """
    if not object_path.URI.fullmatch(uri.rstrip("/")):  # the message does not quote the URI, which may contain a secret
        raise InvalidRoot(
            "must be a URI such as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix; "
            "credentials are taken from the environment"
        )
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise InvalidRoot(f"needs the packages of readership[object-store]: {', '.join(missing)} is not installed")
    return ObjectPath(ObjectLake(uri.rstrip("/"), local, cache_bytes))


def at(path: Root | str) -> Root:
    """Return the path of a file that a table or a query names."""
    return object_path.find(str(path)) or LocalPath(str(path))


def write_changed(path: Root, content: bytes) -> None:
    """Write a file if its content differs."""
    if not path.exists() or path.read_bytes() != content:
        path.write(content)


def modified_s(path: Root | str) -> float:
    """Return the time of the last write of a file, in seconds since 1970; 0 if it is missing."""
    try:
        return at(path).stat().st_mtime
    except FileNotFoundError:
        return 0


def register(database: "duckdb.DuckDBPyConnection") -> None:
    """Let a database read the files of the lakes in object stores that this process uses."""
    if object_path.LAKES:
        from warehouse.lake.remote import filesystem  # noqa: PLC0415  # not needed with a local lake

        filesystem.register(database)
