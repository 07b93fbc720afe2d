"""Broken files in the log of a Delta table: which file is at fault, and how to open the table without it."""

import json
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from warehouse.errors import TableIncomplete
from warehouse.lake import delta_log
from warehouse.lake.roots import Root

LOG = logging.getLogger("readership.lake")

Result = TypeVar("Result")


def sync_after(table: Root, since: int) -> None:
    """Sync the commits after version `since`, which a killed process may have left unsynced.

    If a power loss broke one of these commits, it and the later ones are set aside. No row of these commits is
    lost: the hot log still has all rows that they added.
    """
    if table.uri is not None:  # a killed process leaves no part of an object
        return
    log = delta_log.read(table)
    if log.checkpoint > since:  # another node wrote the checkpoint, and removed the commits up to it
        delta_log.sync_checkpoint(table, log.checkpoint)
    versions = range(max(since, log.checkpoint) + 1, log.newest + 1)
    if fault := _first_fault(table, versions):
        set_aside_commits(table, range(fault[0], log.newest + 1), fault[1])
    delta_log.sync_commits(table, versions)


def set_aside_commits(table: Root, versions: Iterable[int], fault: str) -> None:
    """Rename commits, and write a commit without changes in the place of each, so that no version is reused.

    If a version were reused, a reader that has this version open would not read the second commit of the version.
    """
    for version in versions:
        file = delta_log.commit_file(table, version)
        aside = _free_name(file)
        LOG.warning("%s is set aside as %s and replaced by a commit without changes: %s", file, aside.name, fault)
        if file.exists():
            aside.write(file.read_bytes())
        action = {"commitInfo": {"timestamp": time.time_ns() // 1_000_000, "operation": "SET ASIDE", "reason": fault}}
        file.write(json.dumps(action).encode())


def set_aside_broken(table: Root) -> None:
    """Set aside the first unusable commit and all later ones. Raises TableIncomplete if no version can be opened."""
    set_aside_checkpoints(table)
    log, usable = delta_log.read(table), _usable(table)
    fault = _first_commit_fault(table, range(usable.checkpoint + 1, log.newest + 1))
    if fault is None:
        return
    if fault[0] == 0 or log.checkpoint > usable.checkpoint:
        raise incomplete(table, fault[1])
    set_aside_commits(table, range(fault[0], log.newest + 1), fault[1])


def set_aside_checkpoints(table: Root) -> None:
    """Rename unreadable checkpoints, and a hint that names one, if the commits contain all of their changes."""
    log, usable = delta_log.read(table), _usable(table)
    if log.newest < 0 or usable.fault(log.newest) is not None:
        return
    hint = table / delta_log.FOLDER / delta_log.HINT
    broken = [delta_log.checkpoint_file(table, version) for version in log.checkpoints.keys() - usable.checkpoints]
    for file in (*broken, *[hint] * _is_stale(hint, usable)):
        aside = _free_name(file)
        LOG.warning("%s is broken and is set aside as %s: its commits exist and are used instead", file, aside.name)
        with suppress(FileNotFoundError):  # another process has set the file aside meanwhile
            aside.write(file.read_bytes())
            file.unlink()
    (table / delta_log.FOLDER).sync()


def diagnosis(table: Root) -> str | None:
    """Return which file of the log prevents the table from being opened; None if no such file is found."""
    log, usable = delta_log.read(table), _usable(table)
    if log.newest < 0:
        return f"{table / delta_log.FOLDER} is missing or has no commit"
    _, fault = _first_commit_fault(table, range(usable.checkpoint + 1, log.newest + 1)) or (0, None)
    if fault and log.checkpoint > usable.checkpoint:
        return f"{delta_log.checkpoint_file(table, log.checkpoint)} cannot be read, and {fault}"
    return fault


def incomplete(table: Root, fault: str) -> TableIncomplete:
    """Return the error for a table that lacks files or commits that it had."""
    return TableIncomplete(
        str(table),
        fault,
        ". Restore the whole data folder from one backup. Without a backup, or if you restored an older lake on"
        " purpose, `readership recover` lists what is lost and how to go on without it",
    )


def past_broken_checkpoints(table: Root, read: Callable[[], Result]) -> Result:
    """Return the result of `read`. If delta-rs raises an error, set the broken checkpoints aside and call `read` again.

    An error of the object store is raised at once: it is no fault of the table, and a later call may succeed.

    Raises:
        TableIncomplete: `read` fails also without the broken checkpoints.
        LakeUnreachable: the table is in an object store that does not answer, or refuses a request.
    """
    try:
        with table.reaching():
            return read()
    except DeltaError:
        set_aside_checkpoints(table)
    try:
        with table.reaching():
            return read()
    except DeltaError as error:
        raise incomplete(table, diagnosis(table) or str(error).partition("\n")[0]) from None


def _usable(table: Root) -> delta_log.Log:
    log = delta_log.read(table)
    usable = (version for version in log.checkpoints if _is_readable(delta_log.checkpoint_file(table, version)))
    return replace(log, checkpoints={version: log.checkpoints[version] for version in usable})


def _first_fault(table: Root, versions: Iterable[int]) -> tuple[int, str] | None:
    """Return the first version whose commit or an added file is unusable, and its fault; None without one.

    A file that a later commit removes is not checked, because a vacuum may have deleted it.
    """
    versions = list(versions)
    fault = _first_commit_fault(table, versions)
    readable = [version for version in versions if fault is None or version < fault[0]]
    actions = {version: delta_log.actions(delta_log.commit_file(table, version)) for version in readable}
    removed = {action["remove"]["path"] for each in actions.values() for action in each if "remove" in action}
    for version, each in actions.items():
        for action in each:
            is_live = "add" in action and action["add"]["path"] not in removed
            if is_live and (file_fault := _file_fault(table, action["add"])):
                return version, file_fault
    return fault


def _first_commit_fault(table: Root, versions: Iterable[int]) -> tuple[int, str] | None:
    """Return the first version whose commit is unusable, and its fault; None without one."""
    for version in versions:
        if fault := _commit_fault(delta_log.commit_file(table, version)):
            return version, fault
    return None


def _commit_fault(file: Root) -> str | None:
    """Return the fault of a commit: missing, empty or not JSON."""
    try:
        actions = delta_log.actions(file)
    except FileNotFoundError:
        return f"{file} is missing"
    except ValueError:
        return f"{file} is not JSON"
    return None if actions else f"{file} is empty"


def _file_fault(table: Root, add: dict[str, Any]) -> str | None:
    """Return the fault of a Parquet file that a commit adds: missing, of another size or without a footer."""
    file = table / unquote(add["path"])
    try:
        if file.stat().st_size == add["size"]:
            pq.ParquetFile(file.open_parquet()).close()
            return None
    except (OSError, pa.ArrowException):
        pass
    return f"{file} is missing or broken"


def _is_readable(checkpoint: Root) -> bool:
    try:
        pq.read_table(checkpoint.open_parquet())
    except (OSError, pa.ArrowException):
        return False
    return True


def _is_stale(hint: Root, log: delta_log.Log) -> bool:
    """Return whether the hint exists, but names no checkpoint of the log."""
    try:
        return json.loads(hint.read_bytes())["version"] not in log.checkpoints
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return True


def _free_name(file: Root) -> Root:
    """Return an unused name that Delta readers ignore: `NAME.broken`, `NAME.broken-2` and so on."""
    names = (file.parent / f"{file.name}.broken{'' if number == 1 else f'-{number}'}" for number in count(1))
    return next(name for name in names if not name.exists())
