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
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import unquote

from deltalake import DeltaTable, PostCommitHookProperties

from warehouse.lake import roots
from warehouse.lake.roots import Root

FOLDER, HINT = "_delta_log", "_last_checkpoint"
"""Folder of the log in the table's folder, and the file in it that names the newest checkpoint."""
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Options of each commit: the checkpoints that delta-rs writes by default are never synced."""
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
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
    for name, stat in (table / FOLDER).files():
        for pattern, sizes in ((_COMMIT, log.commits), (_CHECKPOINT, log.checkpoints)):
            if match := pattern.fullmatch(name):
                sizes[int(match[1])] = stat.st_size
    return log


def version_of(name: str) -> tuple[int | None, int | None]:
    """Return the version of the commit, and that of the checkpoint, of which a file in a log has the name."""
    commit, checkpoint = _COMMIT.fullmatch(name), _CHECKPOINT.fullmatch(name)
    return int(commit[1]) if commit else None, int(checkpoint[1]) if checkpoint else None


def folder(table: DeltaTable) -> Root:
    return roots.at(unquote(table.table_uri.removeprefix("file://")))


def reaching(
    function: Callable[Concatenate[DeltaTable, Parameters], Result],
) -> Callable[Concatenate[DeltaTable, Parameters], Result]:
    """Decorate a function of a table to raise LakeUnreachable if the table's object store does not answer."""

    @wraps(function)
    def reaching(table: DeltaTable, /, *arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        with folder(table).reaching():
            return function(table, *arguments, **options)

    return reaching


def commit_file(table: Root, version: int) -> Root:
    return table / FOLDER / f"{version:020}.json"


def checkpoint_file(table: Root, version: int) -> Root:
    return table / FOLDER / f"{version:020}.checkpoint.parquet"


def persist(table: DeltaTable, since: int, synced: Collection[str] = ()) -> None:
    """Sync all commits after version `since`, and write a checkpoint if one is due.

    `synced` are files of these commits that are synced already, with their folders.

    Call this function before the hot log deletes the same rows. The hot log syncs its commits; without this call, a
    power loss could undo only the table's.
    """
    root = folder(table)
    sync_commits(root, range(since + 1, table.version() + 1), synced)
    if table.version() - read(root).checkpoint >= root.checkpoint_commits:
        checkpoint(table)


def checkpoint(table: DeltaTable) -> None:
    """Write and sync a checkpoint of the table's newest version. The commits that it replaces are not deleted."""
    table.create_checkpoint()
    sync_checkpoint(folder(table), table.version())


def sync_commits(table: Root, versions: Iterable[int], synced: Collection[str] = ()) -> None:
    """Sync commits, the Parquet files that they add except those in `synced`, and all their folders.

    A missing Parquet file is not an error: a vacuum removed the file after a later commit.
    """

    def files() -> Iterator[Root]:
        for version in versions:
            yield commit_file(table, version)
            yield from (file for file in _added(table, version) if str(file) not in synced and file.exists())

    table.sync(files())


def sync_checkpoint(table: Root, version: int) -> None:
    """Sync the newest checkpoint, which is of this version, and the hint that names it."""
    table.sync((checkpoint_file(table, version), table / FOLDER / HINT))


def actions(commit: Root) -> list[dict[str, Any]]:
    """Return the actions of a commit. Raises ValueError if a line is not a JSON object of objects."""
    actions = [json.loads(line) for line in commit.read_bytes().splitlines()]
    if not all(isinstance(each, dict) and all(isinstance(value, dict) for value in each.values()) for each in actions):
        raise ValueError(f"{commit} has a line that is not a JSON object of objects")
    return actions


def _added(table: Root, version: int) -> list[Root]:
    each = actions(commit_file(table, version))
    return [table / unquote(action["add"]["path"]) for action in each if "add" in action]
