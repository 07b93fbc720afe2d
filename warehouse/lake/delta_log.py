"""Files in the log of a Delta table: which commits and checkpoints exist, and how they are synced.

delta-rs does not sync the files that it writes, so after a power loss the newest files may be empty or missing. Each
file is therefore synced here before the data that it replaces is deleted; in an object store there is nothing to sync.
delta-rs opens a table with an empty commit without an error, as if the commit had changed nothing; `Log.fault` finds
such a commit.

Format: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import unquote

from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError

from warehouse.errors import LakeUnreachable
from warehouse.lake import roots
from warehouse.lake.roots import Root

FOLDER, HINT = "_delta_log", "_last_checkpoint"
"""Folder of the log in the table's folder, and the file in it that names the newest checkpoint."""
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Options of each commit: the checkpoints that delta-rs writes by default are never synced."""
CHECKPOINT_COMMITS = 50
"""Number of commits after which a checkpoint is written, to bound the number of files that opening a table reads."""
REMOTE_CHECKPOINT_COMMITS = 10
"""Number of commits after which a checkpoint of a table in an object store is written. Each file takes a request."""
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_STORE_ERROR = re.compile(r"Generic (?:S3|GCS|MicrosoftAzure) error|The operation lacked (?:the necessary|valid) ")
"""Messages of delta-rs for a store that does not answer or refuses the credentials. A missing object has another."""
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class Log:
    """Commits and checkpoints in the log of the table in `folder`: sizes in bytes by version."""

    folder: Root
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


def read(table: Root) -> Log:
    """Return the versions and sizes of the files in a table's log; an empty log if the table is missing."""
    log = Log(table, {}, {})
    for name, size in roots.list_sizes(table / FOLDER):
        for pattern, sizes in ((_COMMIT, log.commits), (_CHECKPOINT, log.checkpoints)):
            if match := pattern.fullmatch(name):
                sizes[int(match[1])] = size
    return log


def version_of(name: str) -> tuple[int | None, int | None]:
    """Return the version of the commit, and that of the checkpoint, of which a file in a log has the name."""
    commit, checkpoint = _COMMIT.fullmatch(name), _CHECKPOINT.fullmatch(name)
    return int(commit[1]) if commit else None, int(checkpoint[1]) if checkpoint else None


def folder(table: DeltaTable) -> Root:
    """Return the folder of an open table."""
    return roots.at(unquote(table.table_uri.removeprefix("file://")))


@contextmanager
def reaching_store(table: Root) -> Iterator[None]:
    """Raise LakeUnreachable if delta-rs raises that the object store of a table does not answer.

    delta-rs reads parts of a table's log when they are first needed, long after the table was opened.
    """
    try:
        yield
    except (OSError, DeltaError) as error:
        # An OSError of the operating system has a code.
        is_store_error = error.errno is None if isinstance(error, OSError) else _STORE_ERROR.search(str(error))
        if isinstance(table, Path) or not is_store_error:
            raise
        raise LakeUnreachable(f"the object store of {table} does not answer: {type(error).__name__}") from None


def reaching(
    function: Callable[Concatenate[DeltaTable, Parameters], Result],
) -> Callable[Concatenate[DeltaTable, Parameters], Result]:
    """Decorate a function of a table to raise LakeUnreachable if the table's object store does not answer."""

    @wraps(function)
    def reaching(table: DeltaTable, /, *arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        with reaching_store(folder(table)):
            return function(table, *arguments, **options)

    return reaching


def commit_file(table: Root, version: int) -> Root:
    return table / FOLDER / f"{version:020}.json"


def checkpoint_file(table: Root, version: int) -> Root:
    return table / FOLDER / f"{version:020}.checkpoint.parquet"


def persist(table: DeltaTable, since: int, synced: Collection[Path] = ()) -> None:
    """Sync all commits after version `since`, and write a checkpoint if one is due.

    `synced` are files of these commits that are synced already, with their folders.

    Call this function before the hot log deletes the same rows or clears a dirty day. The hot log syncs its commits;
    without this call, a power loss could undo only the table's.
    """
    root = folder(table)
    sync_commits(root, range(since + 1, table.version() + 1), synced)
    due = CHECKPOINT_COMMITS if isinstance(root, Path) else REMOTE_CHECKPOINT_COMMITS
    if table.version() - read(root).checkpoint >= due:
        checkpoint(table)


def checkpoint(table: DeltaTable) -> None:
    """Write and sync a checkpoint of the table's newest version. The commits that it replaces are not deleted."""
    table.create_checkpoint()
    sync_checkpoint(folder(table))


def sync_commits(table: Root, versions: Iterable[int], synced: Collection[Root] = ()) -> None:
    """Sync commits, the Parquet files that they add except those in `synced`, and all their folders.

    A missing Parquet file is not an error: a vacuum removed the file after a later commit.
    """
    if not isinstance(table, Path):
        return
    folders: set[Root] = {table / FOLDER, table}
    for version in versions:
        for file in set(_added(table, version)).difference(synced):
            with suppress(FileNotFoundError):
                roots.sync(file)
                folders.add(file.parent)
        roots.sync(commit_file(table, version))
    for folder in sorted(folders, key=str, reverse=True):  # a folder before its parent, which has its name
        roots.sync(folder)


def sync_checkpoint(table: Root) -> None:
    """Sync the newest checkpoint, the hint that names it, and their folder."""
    if not isinstance(table, Path):
        return
    for path in (checkpoint_file(table, read(table).checkpoint), table / FOLDER / HINT, table / FOLDER):
        roots.sync(path)


def sync_all(table: Root, files: Iterable[Root]) -> None:
    """Sync the whole log, `files` of the table, and all their folders."""
    if not isinstance(table, Path):
        return
    logs, files = list((table / FOLDER).iterdir()), list(files)
    for path in (*files, *logs, *{file.parent for file in files}, table / FOLDER, table, table.parent):
        roots.sync(path)


def actions(commit: Root) -> list[dict[str, Any]]:
    """Return the actions of a commit. Raises ValueError if a line is not a JSON object of objects."""
    actions = [json.loads(line) for line in commit.read_bytes().splitlines()]
    if not all(isinstance(each, dict) and all(isinstance(value, dict) for value in each.values()) for each in actions):
        raise ValueError(f"{commit} has a line that is not a JSON object of objects")
    return actions


def _added(table: Root, version: int) -> list[Root]:
    """Return the Parquet files that a commit adds."""
    each = actions(commit_file(table, version))
    return [table / unquote(action["add"]["path"]) for action in each if "add" in action]
