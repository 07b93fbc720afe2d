"""Storage of a lake in an object store.

The store is read and written with obstore, which takes credentials and endpoints from the environment, under the names
of the Rust crate object_store, such as AWS_ACCESS_KEY_ID: https://docs.rs/object_store. A path has no credentials.

A write of an object is atomic and durable: nothing is synced, and nothing is renamed.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from warehouse import disk
from warehouse.errors import LakeUnreachable, UnsafeStore
from warehouse.lake.remote.file_cache import FOLDER, FileCache

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore.store import ObjectStore, RetryConfig

URI = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._-]+)*")
"""URI of a lake: scheme, bucket or container, and prefix."""
PROBES = "_probe"
"""Folder in the lake of the objects by which `require_safe` finds a store that ignores the condition of a put. There,
two commits of one version would both succeed, and the rows of the first would be lost without an error."""
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
_STORE_ERROR = re.compile(r"Generic (?:S3|GCS|MicrosoftAzure) error|The operation lacked (?:the necessary|valid) ")
"""Messages of delta-rs for a store that does not answer or refuses the credentials. A missing object has another."""
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

    @property
    def cache(self) -> FileCache:
        return FileCache(self.local / FOLDER, self.cache_bytes)

    def __post_init__(self) -> None:
        LAKES[self.uri] = self

    def __reduce__(self) -> tuple[object, ...]:
        return ObjectLake, (self.uri, self.local, self.cache_bytes)


LAKES: dict[str, ObjectLake] = {}
"""Lakes in object stores that this process uses, by URI. A file is named by its URI alone, as in DuckDB's queries."""


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """Object of a lake, or a folder: the objects whose keys begin with `key` and a slash. Methods: see `LocalPath`."""

    lake: ObjectLake
    key: str = ""
    checkpoint_commits: ClassVar[int] = 10
    delta_options: ClassVar[dict[str, str]] = DELTA_OPTIONS

    def __str__(self) -> str:
        return f"{self.lake.uri}/{self.key}" if self.key else self.lake.uri

    uri = property(__str__)

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(self.lake, f"{self.key}/{name}" if self.key else name)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "ObjectPath":
        return ObjectPath(self.lake, self.key.rpartition("/")[0])

    @property
    def local(self) -> Path:
        return self.lake.local / self.key

    def exists(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def stat(self) -> Stat:
        with self._errors():
            meta = self.lake.store.head(self.key)
            return Stat(meta["size"], meta["last_modified"].timestamp())

    def read_bytes(self) -> bytes:
        with self._errors():
            return bytes(self.lake.store.get(self.key).bytes())

    def read_immutable(self) -> bytes:
        with self.open_parquet() as file:
            return bytes(file.read())

    def open_parquet(self) -> "pa.OSFile":
        return self.lake.cache.open(str(self), self._download)

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete an object. S3 does not report a missing object."""
        with self._errors(), suppress(*(FileNotFoundError,) if missing_ok else ()):
            self.lake.store.delete(self.key)

    def write(self, content: bytes | Path) -> None:
        """Write or replace an object with the content of a local file, in parts if it is large, or with bytes."""
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

    @contextmanager
    def new_file(self) -> Iterator[Path]:
        with self.lake.cache.new_file(str(self)) as new:
            yield new
            self.write(new)

    def renew(self) -> "ObjectPath":
        stem, dot, suffix = self.name.rpartition(".")
        copy = self.parent / f"{stem}-{uuid.uuid4()}{dot}{suffix}"
        with self._errors():
            self.lake.store.copy(self.key, copy.key)
        return copy

    def files(self) -> Iterator[tuple[str, Stat]]:
        with self._errors():
            for page in self.lake.store.list(self.key or None, chunk_size=1000):
                for meta in page:
                    path = meta["path"][len(self.key) :].removeprefix("/")
                    yield path, Stat(meta["size"], meta["last_modified"].timestamp())

    def folders(self) -> list[str]:
        with self._errors():
            prefixes = self.lake.store.list_with_delimiter(self.key or None)["common_prefixes"]
            return [prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes]

    def make_folder(self) -> None:
        disk.make_folder(self.local)

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        import shutil  # noqa: PLC0415  # see `LocalPath.remove_folder`

        shutil.rmtree(self.parent.local, ignore_errors=True)  # left by a process that was killed
        self.make_folder()
        try:
            yield self.local
            for file in self.local.iterdir():
                with (self / file.name).new_file() as new:
                    file.replace(new)
        finally:
            shutil.rmtree(self.local, ignore_errors=True)

    def remove_folder(self) -> None:
        keys = [(self / path).key for path, _ in self.files()]
        with self._errors():
            if keys:
                self.lake.store.delete(keys)

    def sync(self, files: object = ()) -> None:
        return

    @contextmanager
    def reaching(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError  # noqa: PLC0415  # not needed with a local lake

        try:
            yield
        except (OSError, DeltaError) as error:
            # An OSError of the operating system has a code.
            is_store_error = error.errno is None if isinstance(error, OSError) else _STORE_ERROR.search(str(error))
            if not is_store_error:
                raise
            raise LakeUnreachable(f"the object store of {self} does not answer: {type(error).__name__}") from None

    def require_safe(self) -> None:
        probe = self / PROBES / str(uuid.uuid4())
        try:
            written = [probe.write_new(b"first"), probe.write_new(b"second")]
        finally:
            probe.unlink(missing_ok=True)
        if written != [True, False]:
            count = "two writers" if all(written) else "no writer"
            raise UnsafeStore(
                f"the object store of {self} lets {count} create an object that must be created once, which would lose "
                "hits: use a store with conditional writes (If-None-Match)"
            )

    def evict_deleted(self) -> None:
        self.lake.cache.retain(str(self / path) for path, _ in self.files())

    def _download(self, file: Path) -> None:
        with self._errors(), file.open("wb") as target:
            for part in self.lake.store.get(self.key):
                target.write(part)

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


def find(uri: str) -> ObjectPath | None:
    """Return the path of a URI in a lake that this process uses; None for another text, such as a local path."""
    for lake in LAKES.values():
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
