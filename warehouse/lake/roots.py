"""The root of a lake, a local folder or a prefix in an object store, and what is done differently in the two.

A local file is synced, and replaced by a rename: see `warehouse.disk`. An object is complete and durable once it is
written. For a local root, the only code of `warehouse.lake.remote` that runs is a look-up in an empty dictionary.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse import disk
from warehouse.errors import InvalidRoot
from warehouse.lake.remote import object_path
from warehouse.lake.remote.object_path import ObjectPath

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Root = Path | ObjectPath
"""Root of a lake, or a path below it."""
CACHE_BYTES = 4 << 30
"""Default maximum size of the cached files of a lake in an object store, in bytes."""
PACKAGES = ("obstore", "fsspec")
"""Packages that a lake in an object store needs, and a local one does not."""


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
    return object_path.open_lake(uri.rstrip("/"), local, cache_bytes)


def at(path: str) -> Root:
    """Return the path of a file that a table or a query names."""
    return object_path.find(path) or Path(path)


def local_folder(folder: Root) -> Path:
    """Return the folder of the locks and temporary files of a folder: for a local one the folder itself."""
    return folder if isinstance(folder, Path) else folder.local


def storage_options(path: Root) -> dict[str, str] | None:
    """Return the options with which delta-rs opens a table."""
    return None if isinstance(path, Path) else object_path.DELTA_OPTIONS


def require_safe(root: Root) -> None:
    """Raise UnsafeStore if the root is in an object store in which two writers can create the same object."""
    if not isinstance(root, Path):
        from warehouse.lake.remote import probe  # noqa: PLC0415  # not needed with a local lake

        probe.require_conditional_put(root)


def make_folder(folder: Root) -> None:
    """Create a folder, or the local folder of a folder in an object store, which itself exists with its objects."""
    disk.make_folder(local_folder(folder))


def new_folder(folder: Root) -> Path:
    """Create a new folder, and return the local folder in which its files are written before `publish`."""
    if not isinstance(folder, Path):
        remove_local(folder.parent)  # left by a process that was killed
    make_folder(folder)
    return local_folder(folder)


def remove_local(folder: Root) -> None:
    """Delete the local folder of a folder in an object store. A local folder is not changed."""
    if not isinstance(folder, Path):
        import shutil  # noqa: PLC0415  # see `remove_folder`

        shutil.rmtree(folder.local, ignore_errors=True)


def write(path: Root, content: bytes) -> None:
    """Write a file atomically and durably: readers find the old content or the new one."""
    if isinstance(path, Path):
        disk.write(path, content)
    else:
        path.write_bytes(content)


def sync(path: Root) -> None:
    """Sync a local file or folder. An object is durable once it is written."""
    if isinstance(path, Path):
        disk.sync(path)


def open_parquet(path: Root | str) -> "Path | pa.OSFile":
    """Return what pyarrow opens to read an immutable file: a local path, or the open file of a downloaded object.

    Raises:
        FileNotFoundError: there is no such object.
        LakeUnreachable: the object store does not answer.
    """
    location = at(path) if isinstance(path, str) else path
    if isinstance(location, Path):
        return location
    from warehouse.lake.remote import file_cache  # noqa: PLC0415  # not needed with a local lake

    return file_cache.open_file(location)


@contextmanager
def new_file(path: Root) -> Iterator[Path]:
    """Yield the local path at which a new file is written. At the end of the block it is uploaded to an object."""
    if isinstance(path, Path):
        path.parent.mkdir(exist_ok=True)
        yield path
        return
    from warehouse.lake.remote import file_cache  # noqa: PLC0415  # not needed with a local lake

    with file_cache.new_file(path) as file:
        yield file


def publish(file: Path, path: Root) -> None:
    """Sync a new file of `new_folder` at its path, or move it to the path of an object."""
    if isinstance(path, Path):
        disk.sync(path)
        return
    from warehouse.lake.remote import file_cache  # noqa: PLC0415  # not needed with a local lake

    path.upload(file)
    file_cache.add(path, file)


def read_immutable(path: Root) -> bytes:
    """Return the content of a file that never changes, from the cache if it is an object."""
    if isinstance(path, Path):
        return path.read_bytes()
    from warehouse.lake.remote import file_cache  # noqa: PLC0415  # not needed with a local lake

    with file_cache.open_file(path) as file:
        return bytes(file.read())


def evict_deleted(root: Root) -> None:
    """Delete the cached files of objects that were deleted. Nothing is cached for a local root."""
    if not isinstance(root, Path):
        from warehouse.lake.remote import file_cache  # noqa: PLC0415  # not needed with a local lake

        file_cache.evict_deleted(root)


def modified_s(path: Root | str) -> float:
    """Return the time of the last write of a file, in seconds since 1970; 0 if it is missing."""
    try:
        return (at(path) if isinstance(path, str) else path).stat().st_mtime
    except FileNotFoundError:
        return 0


def renew(path: str) -> str:
    """Give an immutable file the current time as the time of its last write, and return its path.

    An object gets the time by a copy, whose path differs in the name before its suffix.

    Raises:
        FileNotFoundError: the file is missing.
    """
    location = at(path)
    if isinstance(location, Path):
        os.utime(location)
        return path
    stem, dot, suffix = location.name.rpartition(".")
    copy = location.with_name(f"{stem}-{uuid.uuid4()}{dot}{suffix}")
    location.copy_to(copy)
    return str(copy)


def folder_modified_s(folder: Root) -> float:
    """Return the time of the last change of the names in a folder, in seconds since 1970; 0 if it is missing."""
    if isinstance(folder, Path):
        return modified_s(folder)
    return max((stat.st_mtime for stat in folder.list_files().values()), default=0)


def exists(path: str) -> bool:
    """Return whether a file that a table names exists."""
    location = object_path.find(path)
    return os.path.exists(path) if location is None else location.exists()  # noqa: PTH110  # five times as fast as Path.exists


def link(path: Root, target: Root) -> None:
    """Give a file a second name, or copy an object."""
    if isinstance(path, Path):
        assert isinstance(target, Path)
        target.hardlink_to(path)
    else:
        assert not isinstance(target, Path)
        path.copy_to(target)


def rename(path: Root, target: Root) -> None:
    """Rename a file, or copy an object and delete the first one."""
    if isinstance(path, Path):
        assert isinstance(target, Path)
        path.rename(target)
    else:
        link(path, target)
        path.unlink()


def list_sizes(folder: Root) -> Iterator[tuple[str, int]]:
    """Yield the name and the size in bytes of each file in a folder, in no particular order.

    A folder that is missing, or that has a file in its path, has no files.
    """
    if not isinstance(folder, Path):
        yield from ((key, stat.st_size) for key, stat in folder.list_files().items() if "/" not in key)
        return
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process has just removed the file
                yield entry.name, entry.stat().st_size


def list_folders(folder: Root) -> list[str]:
    """Return the names of the folders in a folder, in no particular order; none if the folder is missing."""
    if not isinstance(folder, Path):
        return folder.list_folders()
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir()]
    return []


def remove_folder(folder: Root) -> None:
    """Delete a folder with all that is in it."""
    if isinstance(folder, Path):
        import shutil  # noqa: PLC0415  # takes 5 ms to import, and is not needed by commands that only read

        shutil.rmtree(folder)
    else:
        folder.remove_all()


def register(database: "duckdb.DuckDBPyConnection") -> None:
    """Let a database read the files of the lakes in object stores that this process uses."""
    if object_path.lakes():
        from warehouse.lake.remote import filesystem  # noqa: PLC0415  # not needed with a local lake

        filesystem.register(database)
