"""Paths of objects in an object store, with the methods of `Path` that the lake uses.

The store is read and written with obstore, which takes credentials and endpoints from the environment, under the names
of the Rust crate object_store, such as AWS_ACCESS_KEY_ID: https://docs.rs/object_store. A path has no credentials.

A write of an object is atomic and durable: nothing is synced, and nothing is renamed.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from warehouse.errors import LakeUnreachable

if TYPE_CHECKING:
    from obstore.store import ObjectStore, RetryConfig

URI = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._-]+)*")
"""URI of a lake: scheme, bucket or container, and prefix."""
RETRIES, RETRY_TIMEOUT_S = 3, 20
"""Number of retries of a request, and the time after which no retry begins, in seconds. By default object_store retries
for three minutes. It ends a request after 30 s, and an attempt to connect after 5 s."""
DELTA_OPTIONS = {
    "aws_conditional_put": "etag",
    "aws_s3_allow_unsafe_rename": "false",
    "max_retries": str(RETRIES),
    "retry_timeout": f"{RETRY_TIMEOUT_S}s",
}
"""Storage options of delta-rs. A commit is a conditional put: the second of two writers of a version is refused. The
first two replace variables of the environment, which could turn the condition off."""
_QUERY = re.compile(r"\?[^\s\"')]*")


class Stat(NamedTuple):
    """Size of an object in bytes, and time of its last write in seconds since 1970, with the names of `Path.stat`."""

    st_size: int
    st_mtime: float


@dataclass(frozen=True, slots=True)
class ObjectLake:
    """A lake in an object store: its URI, without a slash at the end, and what belongs to it on this machine.

    `local` is the folder of its locks and cached files. `cache_bytes` is the maximum size of the cached files.
    """

    uri: str
    local: Path
    cache_bytes: int

    @property
    def store(self) -> "ObjectStore":
        return _open_store(self.uri)

    def __reduce__(self) -> tuple[object, ...]:
        return _opened, (self.uri, self.local, self.cache_bytes)


_LAKES: dict[str, ObjectLake] = {}
"""Lakes in object stores that this process uses, by URI. A file is named by its URI alone, as in DuckDB's queries."""


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """An object of a lake, or a folder: the objects whose keys begin with `key` and a slash."""

    lake: ObjectLake
    key: str = ""

    def __str__(self) -> str:
        return f"{self.lake.uri}/{self.key}" if self.key else self.lake.uri

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(self.lake, f"{self.key}/{name}" if self.key else name)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "ObjectPath":
        return ObjectPath(self.lake, self.key.rpartition("/")[0])

    def with_name(self, name: str) -> "ObjectPath":
        return self.parent / name

    @property
    def local(self) -> Path:
        """Return the folder on this machine that belongs to this folder of the lake."""
        return self.lake.local / self.key

    def stat(self) -> Stat:
        """Return the size and the time of an object.

        Raises:
            FileNotFoundError: there is no such object.
        """
        with self._errors():
            meta = self.lake.store.head(self.key)
            return Stat(meta["size"], meta["last_modified"].timestamp())

    def exists(self) -> bool:
        """Return whether the object exists. False for a folder."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Return whether there is an object in the folder."""
        return next(self._list(), None) is not None

    def read_bytes(self) -> bytes:
        """Return the content of an object.

        Raises:
            FileNotFoundError: there is no such object.
        """
        with self._errors():
            return bytes(self.lake.store.get(self.key).bytes())

    def write_bytes(self, content: bytes) -> None:
        """Write or replace an object."""
        with self._errors():
            self.lake.store.put(self.key, content)

    def write_new(self, content: bytes) -> bool:
        """Write an object unless it exists, and return whether it was written."""
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415  # not needed with a local lake

        with self._errors():
            try:
                self.lake.store.put(self.key, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

    def upload(self, file: Path) -> None:
        """Write or replace an object with the content of a local file, in parts if it is large."""
        with self._errors():
            self.lake.store.put(self.key, file)

    def download(self, file: Path) -> None:
        """Write the content of an object to a local file.

        Raises:
            FileNotFoundError: there is no such object.
        """
        with self._errors(), file.open("wb") as target:
            for part in self.lake.store.get(self.key):
                target.write(part)

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete an object.

        Raises:
            FileNotFoundError: the object is missing, unless `missing_ok`. S3 does not report a missing object.
        """
        with self._errors():
            try:
                self.lake.store.delete(self.key)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def remove_all(self) -> None:
        """Delete the objects in the folder."""
        keys = [key for key, _ in self._list()]
        with self._errors():
            if keys:
                self.lake.store.delete(keys)

    def copy_to(self, target: "ObjectPath") -> None:
        """Copy an object, within the store."""
        with self._errors():
            self.lake.store.copy(self.key, target.key)

    def glob(self, pattern: str) -> Iterator["ObjectPath"]:
        """Yield the objects in the folder that match a pattern of `PurePath.match`, with as many slashes."""
        for key, _ in self._list():
            relative = PurePosixPath(key[len(self._prefix) :])
            if len(relative.parts) == pattern.count("/") + 1 and relative.match(pattern):
                yield ObjectPath(self.lake, key)

    def list_files(self) -> dict[str, Stat]:
        """Return the objects in the folder and in its folders, by key relative to this folder."""
        return {key[len(self._prefix) :]: stat for key, stat in self._list()}

    def list_folders(self) -> list[str]:
        """Return the names of the folders in this folder."""
        with self._errors():
            prefixes = self.lake.store.list_with_delimiter(self.key or None)["common_prefixes"]
            return [prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes]

    @property
    def _prefix(self) -> str:
        return f"{self.key}/" if self.key else ""

    def _list(self) -> Iterator[tuple[str, Stat]]:
        """Yield the key and the `Stat` of each object in the folder."""
        with self._errors():
            for page in self.lake.store.list(self.key or None, chunk_size=1000):
                for meta in page:
                    yield meta["path"], Stat(meta["size"], meta["last_modified"].timestamp())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of the store as ours, without the queries of URLs, which may have signatures."""
        from obstore.exceptions import BaseError  # noqa: PLC0415  # not needed with a local lake

        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(f"{self} is missing") from None
        except BaseError as error:
            reason = _QUERY.sub("", str(error).strip().partition("\n")[0])
            raise LakeUnreachable(f"the object store of {self} does not answer: {reason}") from None


def open_lake(uri: str, local: Path, cache_bytes: int) -> ObjectPath:
    """Return the path of a lake. No request is sent. `local` and `cache_bytes`: see `ObjectLake`."""
    return ObjectPath(_opened(uri, local, cache_bytes))


def _opened(uri: str, local: Path, cache_bytes: int) -> ObjectLake:
    lake = _LAKES[uri] = ObjectLake(uri, local, cache_bytes)
    return lake


def lakes() -> list[ObjectLake]:
    """Return the lakes in object stores that this process uses."""
    return list(_LAKES.values())


def find(uri: str) -> ObjectPath | None:
    """Return the path of a URI in a lake that this process uses; None for another text, such as a local path."""
    for lake in _LAKES.values():
        if uri == lake.uri or uri.startswith(f"{lake.uri}/"):
            return ObjectPath(lake, uri[len(lake.uri) + 1 :].rstrip("/"))
    return None


@lru_cache(16)
def _open_store(uri: str) -> "ObjectStore":
    from obstore.store import S3Store, from_url  # noqa: PLC0415  # takes 0.1 s to import, and a local lake does not need it

    retries: RetryConfig = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_TIMEOUT_S)}
    if uri.startswith("s3:"):  # the option replaces a variable of the environment
        return S3Store.from_url(uri, config={"conditional_put": "etag"}, retry_config=retries)
    return from_url(uri, retry_config=retries)
