"""The lake's Delta tables: create them, read their state, append with an offset, replace a partition, delete.

Each function that commits returns when the commit is on the disk.

Each table keeps in its own log the id of the last hot batch it holds, by node (Delta's application transactions,
https://github.com/delta-io/delta/blob/master/PROTOCOL.md#transaction-identifiers). Rows and id come in one commit.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from warehouse import disk
from warehouse.errors import DataIncomplete
from warehouse.lake import delta_log, log_repair, table_schema
from warehouse.lake.lock import write_lock
from warehouse.lake.table_schema import STEPS, Steps
from warehouse.schema import DAILY_VIEWS, DAILY_VIEWS_ORDER, HITS, HITS_ORDER

GRACE_H = 1
"""Hours for which a file stays on disk after a commit dropped it: longer than any query runs."""
MIGRATION_WAIT_S = 60.0
CHECKPOINT_COMMITS = 50
"""Commits after which a checkpoint is written, so that opening a table reads few files."""
LAST_VACUUM = ".tidied"
"""File in the lake's folder whose time is that of the last upkeep."""
TARGET_FILE_BYTES = 128 * 1024 * 1024
ROW_GROUP_ROWS = 64 * 1024
"""Small enough that one project's rows of a day are a few row groups of the file."""

_CONFIGURATION = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": f"interval {GRACE_H} hours",
    "delta.deletedFileRetentionDuration": f"interval {GRACE_H} hours",
}
Read = TypeVar("Read")

_SIZES = ("size_bytes", "num_records")
_WRITER = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=ROW_GROUP_ROWS)


@dataclass(frozen=True, slots=True)
class Spec:
    """What a table is: its name, columns, partition column and the order of rows in a file."""

    name: str
    schema: pa.Schema
    partition: str
    order: tuple[str, ...]


HITS_TABLE = Spec("hits", HITS, "date", HITS_ORDER)
DAILY_VIEWS_TABLE = Spec("daily_views", DAILY_VIEWS, "month", DAILY_VIEWS_ORDER)
TABLES = (HITS_TABLE, DAILY_VIEWS_TABLE)
"""In the order in which the loader writes them."""


@dataclass(frozen=True, slots=True)
class File:
    """One live Parquet file: local path, value of the partition column, size in bytes, rows."""

    path: str
    partition: str
    size: int
    rows: int


@dataclass(frozen=True, slots=True)
class State:
    """A table at one version. `offset` is the last hot batch of the node that it holds; 0 for none.

    `staged` is the last hot batch whose files a snapshot added to those of the version; 0 for none.
    """

    version: int
    offset: int
    files: tuple[File, ...]
    staged: int = 0

    @property
    def files_key(self) -> tuple[int, int]:
        """Equal for two states that have the same files."""
        return self.version, self.staged


def create(lake: Path, steps: Mapping[str, Steps] = STEPS) -> None:
    """Create the tables that are missing, and bring the others to the newest schema version.

    Raises:
        StoreTooNew: a newer release wrote a table.
        LakeBusy: steps are due, and another process held the lake for MIGRATION_WAIT_S.
    """
    for spec in TABLES:
        folder = lake / spec.name
        if DeltaTable.is_deltatable(str(folder)):
            _upgrade(lake, spec, steps)
            continue
        disk.make_folder(folder)
        table = DeltaTable.create(
            str(folder),
            spec.schema,
            partition_by=[spec.partition],
            configuration={**_CONFIGURATION, **table_schema.properties(steps[spec.name])},
            raise_if_key_not_exists=False,  # the schema version is a property of ours
        )
        _persist(table, since=-1)
        disk.sync(lake)


def _upgrade(lake: Path, spec: Spec, steps: Mapping[str, Steps]) -> None:
    if table_schema.pending(open_table(lake, spec, steps), spec.name, steps[spec.name]):
        with write_lock(lake, MIGRATION_WAIT_S):
            table = open_table(lake, spec, steps)
            since = table.version()
            table_schema.upgrade(table, spec.name, steps[spec.name])
            _persist(table, since)


def refuse_newer(lake: Path) -> None:
    """Raise StoreTooNew if a newer release wrote a table. Creates and changes nothing."""
    for spec in TABLES:
        if DeltaTable.is_deltatable(str(lake / spec.name)):
            with suppress(DataIncomplete):  # a table that cannot be opened is refused when it is used
                open_table(lake, spec)


def folder(table: DeltaTable) -> Path:
    """Where a table's files are."""
    return Path(unquote(table.table_uri.removeprefix("file://")))


def open_table(lake: Path, spec: Spec, steps: Mapping[str, Steps] = STEPS) -> DeltaTable:
    """Open a table at its newest version. Broken checkpoints are set aside if the commits have all that they had.

    Raises:
        DataIncomplete: the table cannot be opened; the message names it and the file at fault.
        StoreTooNew: a newer release wrote it.
    """
    table = _past_broken_checkpoints(lake / spec.name, lambda: DeltaTable(str(lake / spec.name)))
    table_schema.pending(table, spec.name, steps[spec.name])
    return table


def refresh(table: DeltaTable) -> None:
    """Bring an open table to its newest version.

    Raises:
        DataIncomplete: a commit is broken, or commits that the table already had are missing.
    """
    _past_broken_checkpoints(folder(table), table.update_incremental)


def _past_broken_checkpoints(root: Path, read: Callable[[], Read]) -> Read:
    try:
        return read()
    except DeltaError:
        log_repair.set_aside_checkpoints(root)
    try:
        return read()
    except DeltaError as error:
        raise log_repair.unreadable(root, error) from None


def offset(table: DeltaTable, node: str) -> int:
    """The last hot batch of the node that the table holds; 0 for none."""
    return table.transaction_version(node) or 0


def list_files(table: DeltaTable, spec: Spec, partition: str | None = None) -> tuple[File, ...]:
    """Return the live Parquet files of an open table at its version, or those of one partition."""
    actions = pa.table(table.get_add_actions(flatten=True))
    root = folder(table)
    columns = (actions[name].to_pylist() for name in ("path", f"partition.{spec.partition}", *_SIZES))
    return tuple(
        File(str(root / unquote(path)), str(value), size, rows)
        for path, value, size, rows in zip(*columns, strict=True)
        if partition in {None, str(value)}
    )


def state(table: DeltaTable, spec: Spec, node: str) -> State:
    """Return the version, offset and files of an open table. Call `refresh` first to read the newest version."""
    return State(table.version(), offset(table, node), list_files(table, spec))


def append(table: DeltaTable, rows: pa.Table, node: str, offset: int) -> None:
    """Add rows and the offset they bring the table to, in one commit."""
    since = table.version()
    write_deltalake(
        table,
        rows,
        mode="append",
        writer_properties=_WRITER,
        commit_properties=CommitProperties(app_transactions=[Transaction(app_id=node, version=offset)]),
        post_commithook_properties=delta_log.NO_HOOKS,
    )
    _persist(table, since)


def add_files(table: DeltaTable, spec: Spec, files: Iterable[File], node: str, offset: int) -> None:
    """Add files that stand in the table's folder, and the offset they bring the table to, in one commit."""
    root, since = folder(table), table.version()
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path=str(Path(file.path).relative_to(root)),
            size=file.size,
            partition_values={spec.partition: file.partition},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": file.rows}),
        )
        for file in files
    ]
    table.create_write_transaction(
        actions,
        mode="append",
        schema=table.schema(),
        partition_by=[spec.partition],
        commit_properties=CommitProperties(app_transactions=[Transaction(app_id=node, version=offset)]),
        post_commithook_properties=delta_log.NO_HOOKS,
    )
    table.update_incremental()  # unlike an append, this leaves the handle where it was
    _persist(table, since)


def replace_partition(table: DeltaTable, spec: Spec, partition: str, rows: pa.RecordBatchReader) -> None:
    """Put `rows` in the place of a partition's rows, in one commit.

    Raises:
        deltalake.exceptions.CommitFailedError: another node appended to the partition since the handle's version.
    """
    since = table.version()
    write_deltalake(
        table,
        rows,
        mode="overwrite",
        predicate=f"{spec.partition} = '{partition}'",
        writer_properties=_WRITER,
        target_file_size=TARGET_FILE_BYTES,
        post_commithook_properties=delta_log.NO_HOOKS,
    )
    _persist(table, since)


def delete(table: DeltaTable, where: str) -> int:
    """Remove the rows of which `where` is true, in one commit; returns how many they were. No commit where none is.

    Raises:
        deltalake.exceptions.CommitFailedError: another node appended such rows since the handle's version.
    """
    since = table.version()
    removed = int(table.delete(where, post_commithook_properties=delta_log.NO_HOOKS)["num_deleted_rows"] or 0)
    _persist(table, since)
    return removed


def _persist(table: DeltaTable, since: int) -> None:
    """Sync all that was committed after version `since`, and write a checkpoint if one is due.

    The hot log, whose commits are synced, may drop the same rows, or a day to be recounted, only after this returns.
    """
    root = folder(table)
    delta_log.sync_commits(root, range(since + 1, table.version() + 1))
    if table.version() - delta_log.read(root).checkpoint >= CHECKPOINT_COMMITS:
        _checkpoint(table)


def _checkpoint(table: DeltaTable) -> None:
    """Write a checkpoint of the table's newest version, and sync it. The commits that it replaces are still there."""
    table.create_checkpoint()
    delta_log.sync_checkpoint(folder(table))


def vacuum(table: DeltaTable) -> None:
    """Checkpoint the log, drop what the checkpoint covers, and remove files that no reader can need any more.

    Those are found on the disk (`full`): the log does not name what a killed loader left, and a checkpoint forgets the
    files that were dropped before the grace.
    """
    since = table.version()
    _checkpoint(table)
    table.cleanup_metadata()
    table.vacuum(retention_hours=GRACE_H, dry_run=False, full=True, post_commithook_properties=delta_log.NO_HOOKS)
    _persist(table, since)  # a vacuum is two commits
