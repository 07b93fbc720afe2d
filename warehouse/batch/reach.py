"""Check that a process on another machine has the release of this one, and reads and writes the same lake.

A local path may be another folder there. This process therefore writes a file into the lake, and the other process
reads the file and writes another one beside it.
"""

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from warehouse.errors import WarehouseError
from warehouse.lake.roots import Root

FOLDER = "_workers"
"""Folder in the lake of the files of the check, which are deleted after it."""
_ADVICE = "set READERSHIP_LAKE to an object store, or mount the data folder there at the same path (docs/ray.md)"


@dataclass(frozen=True, slots=True)
class Probe:
    """A file in the lake, which another process answers. `release` is that of this process: see `release`."""

    root: Root
    name: str
    release: str

    @property
    def file(self) -> Root:
        return self.root / FOLDER / self.name

    def answer_of(self, process: str) -> Root:
        return self.root / FOLDER / f"{self.name}.{process}"


@contextmanager
def probe(root: Root) -> Iterator[Probe]:
    """Yield a new probe, and delete its files at the end of the block."""
    folder = root / FOLDER
    new = Probe(root, str(uuid.uuid4()), release())
    folder.make_folder()
    try:
        new.file.write(b"")
        yield new
    finally:
        for name in [name for name, _ in folder.files() if name.startswith(new.name)]:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # another command checks its workers
            folder.local.rmdir()


def answer(probe: Probe, process: str) -> str:
    """Answer a probe in another process, and return the fault that prevented the answer; an empty text for no fault."""
    if (own := release()) != probe.release:
        return (
            f"has readership {own}, and this machine has {probe.release}: install the same release, or the same "
            "checkout, on all machines"
        )
    try:
        probe.file.read_bytes()
        (probe.root / FOLDER).make_folder()
        probe.answer_of(process).write(b"")
    except (FileNotFoundError, NotADirectoryError):
        return f"has another lake at {probe.root}: {_ADVICE}"
    except (OSError, WarehouseError) as error:
        return f"cannot use the lake at {probe.root}: {error}"
    return ""


def fault(probe: Probe, process: str) -> str:
    """Return the fault if the answer of a process is not in the lake; an empty text if the answer is there."""
    return "" if probe.answer_of(process).exists() else f"has a copy of the lake at {probe.root}: {_ADVICE}"


PACKAGES = ("ingest", "warehouse")
"""Packages whose code workers run."""
_HASH_BYTES = 6


@cache
def release() -> str:
    """Return the release of this process's program, such as `0.1.0 (source 1c9b3e0d52fa)`. Takes 20 ms, once."""
    return f"{version('readership')} (source {source_hash([Path(str(files(name))) for name in PACKAGES])})"


def source_hash(packages: Iterable[Path]) -> str:
    """Return a hash of the names and contents of all files in the folders of packages, except caches of bytecode.

    The files are read when the function is called. Hidden files, such as those of editors, are left out.
    """
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for package in packages:
        for file in sorted(package.rglob("*")):
            name = file.relative_to(package.parent)
            if file.is_file() and not any(part == "__pycache__" or part.startswith(".") for part in name.parts):
                content = file.read_bytes()
                digest.update(f"{name.as_posix()}\0{len(content)}\0".encode())
                digest.update(content)
    return digest.hexdigest()
