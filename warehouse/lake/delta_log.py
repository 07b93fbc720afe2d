"""Files in the log of a Delta table: which commits and checkpoints exist, and how they are synced.

delta-rs does not sync the files that it writes, so after a power loss the newest files may be empty or missing. Each
file is therefore synced here before the data that it replaces is deleted. delta-rs opens a table with an empty commit
without an error, as if the commit had changed nothing; `Log.fault` finds such a commit.

Format: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries
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

from deltalake import DeltaTable, PostCommitHookProperties

from warehouse import disk

FOLDER, HINT = "_delta_log", "_last_checkpoint"
"""Folder of the log in the table's folder, and the file in it that names the newest checkpoint."""
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Options of each commit: the checkpoints that delta-rs writes by default are never synced."""
CHECKPOINT_COMMITS = 50
"""Number of commits after which a checkpoint is written, to bound the number of files that opening a table reads."""
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class Log:
    """Commits and checkpoints in the log of the table in `folder`: sizes in bytes by version."""

    folder: Path
    commits: dict[int, int]
    checkpoints: dict[int, int]

    @property
    def newest(self) -> int:
        """Return the newest version; -1 if the log is empty or missing."""
        return max((*self.commits, *self.checkpoints), default=-1)

    @property
    def checkpoint(self) -> int:
        """Return the version of the newest checkpoint that is not empty; -1 without one."""
        return max((version for version, size in self.checkpoints.items() if size), default=-1)

    def fault(self, through: int) -> str | None:
        """Return the first missing or empty commit after the checkpoint, up to version `through`; None without one.

        Commits up to the checkpoint are not needed, because the checkpoint contains their changes.
        """
        for version in range(self.checkpoint + 1, through + 1):
            if not self.commits.get(version):
                return f"{commit_file(self.folder, version)} is {'empty' if version in self.commits else 'missing'}"
        return None


def read(table: Path) -> Log:
    """Return the versions and sizes of the files in a table's log; an empty log if the table is missing."""
    log = Log(table, {}, {})
    with suppress(FileNotFoundError), os.scandir(table / FOLDER) as entries:
        for entry in entries:
            for pattern, sizes in ((_COMMIT, log.commits), (_CHECKPOINT, log.checkpoints)):
                if match := pattern.fullmatch(entry.name):
                    with suppress(FileNotFoundError):  # a clean-up has just removed the file
                        sizes[int(match[1])] = entry.stat().st_size
    return log


def folder(table: DeltaTable) -> Path:
    """Return the folder of an open table."""
    return Path(unquote(table.table_uri.removeprefix("file://")))


def commit_file(table: Path, version: int) -> Path:
    return table / FOLDER / f"{version:020}.json"


def checkpoint_file(table: Path, version: int) -> Path:
    return table / FOLDER / f"{version:020}.checkpoint.parquet"


def persist(table: DeltaTable, since: int) -> None:
    """Sync all commits after version `since`, and write a checkpoint if one is due.

    Call this function before the hot log deletes the same rows or clears a dirty day. The hot log syncs its commits;
    without this call, a power loss could undo only the table's.
    """
    root = folder(table)
    sync_commits(root, range(since + 1, table.version() + 1))
    if table.version() - read(root).checkpoint >= CHECKPOINT_COMMITS:
        checkpoint(table)


def checkpoint(table: DeltaTable) -> None:
    """Write and sync a checkpoint of the table's newest version. The commits that it replaces are not deleted."""
    table.create_checkpoint()
    sync_checkpoint(folder(table))


def sync_commits(table: Path, versions: Iterable[int]) -> None:
    """Sync commits, the Parquet files that they add, and all their folders.

    A missing Parquet file is not an error: a vacuum removed the file after a later commit.
    """
    folders = {table / FOLDER, table}
    for version in versions:
        for file in _added(table, version):
            with suppress(FileNotFoundError):
                disk.sync(file)
                folders.add(file.parent)
        disk.sync(commit_file(table, version))
    for folder in sorted(folders, reverse=True):  # a folder before its parent, which has its name
        disk.sync(folder)


def sync_checkpoint(table: Path) -> None:
    """Sync the newest checkpoint, the hint that names it, and their folder."""
    for path in (checkpoint_file(table, read(table).checkpoint), table / FOLDER / HINT, table / FOLDER):
        disk.sync(path)


def sync_all(table: Path, files: Iterable[Path]) -> None:
    """Sync the whole log, `files` of the table, and all their folders."""
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
