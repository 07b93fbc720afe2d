"""Limits of the files that one commit changes: their number, their names and their sizes."""

import os
from dataclasses import dataclass

from agent.errors import TurnFailed

FILE_BYTES_MAX = 100 * 1024 * 1024
"""Maximum size of a committed file, in bytes; GitHub's limit: https://docs.github.com/en/repositories/working-with-files/managing-large-files"""
CHANGED_MAX = 100_000
"""Maximum number of changed files in one commit; git needs memory and time for each file."""
CHANGED_NAMES_BYTES_MAX = 32 * 1024 * 1024
"""Maximum total size of the names of the changed files in one commit, in bytes."""


@dataclass(slots=True)
class ChangedFiles:
    """Checker of the NUL-separated names of the changed files, chunk by chunk, which does not store the names."""

    tree: bytes
    _incomplete: bytes = b""
    _count: int = 0
    _bytes: int = 0

    def add(self, chunk: bytes) -> None:
        """Check the names that end in the chunk. Raises TurnFailed if a limit is exceeded."""
        *names, self._incomplete = (self._incomplete + chunk).split(b"\0")
        self._count += len(names)
        self._bytes += len(chunk)
        if self._count > CHANGED_MAX or self._bytes > CHANGED_NAMES_BYTES_MAX:
            raise TurnFailed(
                f"the agent changed more than {CHANGED_MAX} files, or files whose names have more than "
                f"{CHANGED_NAMES_BYTES_MAX // 1024**2} MiB: too many to commit; is a folder missing in .gitignore?"
            )
        for name in names:
            self._check(name)

    def _check(self, name: bytes) -> None:
        try:
            size = os.lstat(os.path.join(self.tree, name)).st_size  # noqa: PTH118  # no Path takes bytes
        except OSError:
            return  # deleted, or its folder was replaced by a file: `git add` treats both as a deletion
        if size > FILE_BYTES_MAX:
            raise TurnFailed(
                f"{os.fsdecode(name)!r} in the work tree has {size / 1024**2:.0f} MiB: "
                f"files over {FILE_BYTES_MAX // 1024**2} MiB are not committed"
            )
