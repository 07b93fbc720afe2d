"""Files in the log of a Delta table: which commits and checkpoints exist, and how they are synced.

delta-rs syncs nothing that it writes. After a power loss the newest files may be empty or missing, so each file is
synced here before anything is deleted that it replaces. delta-rs opens a table with an empty commit without an error,
as if the commit had changed nothing; `Log.fault` finds such a commit.

The format: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries
"""

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import PostCommitHookProperties

from warehouse import disk

FOLDER, HINT = "_delta_log", "_last_checkpoint"
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""For each commit: delta-rs would write checkpoints by itself, and never sync them."""
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class Log:
    """Commits and checkpoints in the log of the table in `folder`: size in bytes by version."""

    folder: Path
    commits: dict[int, int]
    checkpoints: dict[int, int]

    @property
    def newest(self) -> int:
        """The newest version; -1 if the log is empty or missing."""
        return max((*self.commits, *self.checkpoints), default=-1)

    @property
    def checkpoint(self) -> int:
        """The version of the newest checkpoint that is not empty; -1 if there is none."""
        return max((version for version, size in self.checkpoints.items() if size), default=-1)

    def fault(self, through: int) -> str | None:
        """Return the first commit after the checkpoint and up to `through` that is missing or empty; None if all exist.

        Commits up to the checkpoint are not needed: the checkpoint has what they changed.
        """
        for version in range(self.checkpoint + 1, through + 1):
            if not self.commits.get(version):
                return f"{commit_file(self.folder, version)} is {'empty' if version in self.commits else 'missing'}"
        return None


def read(table: Path) -> Log:
    """Return the names and sizes in a table's log; an empty log if the table is missing. Contents are not read."""
    log = Log(table, {}, {})
    with suppress(FileNotFoundError), os.scandir(table / FOLDER) as entries:
        for entry in entries:
            for pattern, sizes in ((_COMMIT, log.commits), (_CHECKPOINT, log.checkpoints)):
                if match := pattern.fullmatch(entry.name):
                    with suppress(FileNotFoundError):  # clean-up has just removed the file
                        sizes[int(match[1])] = entry.stat().st_size
    return log


def commit_file(table: Path, version: int) -> Path:
    return table / FOLDER / f"{version:020}.json"


def checkpoint_file(table: Path, version: int) -> Path:
    return table / FOLDER / f"{version:020}.checkpoint.parquet"


def sync_commits(table: Path, versions: Iterable[int]) -> None:
    """Sync commits, the files that they add and all their folders. A file that is missing was removed later."""
    folders = {table / FOLDER, table}
    for version in versions:
        for file in _added(table, version):
            with suppress(FileNotFoundError):
                disk.sync(file)
                folders.add(file.parent)
        disk.sync(commit_file(table, version))
    for folder in sorted(folders, reverse=True):  # a folder before the folder that has its name
        disk.sync(folder)


def sync_checkpoint(table: Path) -> None:
    """Sync the newest checkpoint, the file that names it, and their folder."""
    for path in (checkpoint_file(table, read(table).checkpoint), table / FOLDER / HINT, table / FOLDER):
        disk.sync(path)


def sync_all(table: Path, files: Iterable[Path]) -> None:
    """Sync the whole log, the given files of the table and all their folders."""
    logs, files = list((table / FOLDER).iterdir()), list(files)
    for path in (*files, *logs, *{file.parent for file in files}, table / FOLDER, table, table.parent):
        disk.sync(path)


def actions(commit: Path) -> list[dict[str, Any]]:
    """Return the actions of a commit. Raises ValueError if a line is not a JSON object of objects."""
    actions = [json.loads(line) for line in commit.read_bytes().splitlines()]
    if not all(isinstance(each, dict) and all(isinstance(value, dict) for value in each.values()) for each in actions):
        raise ValueError(f"{commit} has a line that is not a JSON object of objects")
    return actions


def _added(table: Path, version: int) -> list[Path]:
    """Return the Parquet files that a commit adds."""
    each = actions(commit_file(table, version))
    return [table / unquote(action["add"]["path"]) for action in each if "add" in action]
