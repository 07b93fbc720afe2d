"""Release of the program: its version, and a hash of the source of the packages whose code workers run.

Two checkouts may have the same version and different code.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("ingest", "warehouse")
"""Packages whose code workers run."""
_HASH_BYTES = 6


@cache
def release() -> str:
    """Return the release of this process's program, such as `0.1.0 (source 1c9b3e0d52fa)`. Takes 20 ms, once."""
    return f"{version('readership')} (source {source_hash(_folders())})"


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


def _folders() -> list[Path]:
    folders = []
    for name in PACKAGES:
        package = find_spec(name)
        assert package is not None
        assert package.submodule_search_locations is not None
        folders += [Path(location) for location in package.submodule_search_locations]
    return folders
