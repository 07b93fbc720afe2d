"""Delta tables of the lake: create, open, list files, append, delete, vacuum.

Each function that commits syncs the commit before it returns. Each table records in its own log, by node, the id of the
last hot batch that it has. This id, the table's offset, is in the commit that adds the rows:
https://github.com/delta-io/delta/blob/master/PROTOCOL.md#transaction-identifiers
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from warehouse.errors import DataIncomplete
from warehouse.lake import delta_log, log_repair, row_groups, table_schema
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import Root
from warehouse.lake.table_schema import MIGRATIONS, Migrations
from warehouse.migrations import newest
from warehouse.tables import DAILY_ERRORS_TABLE, HITS_TABLE, REQUESTS_TABLE, TABLES, Spec

GRACE_H = 1
"""Time for which a file stays on the disk after a commit removed it, in hours: longer than any query runs."""
MIGRATION_WAIT_S = 60.0
"""Time for which a schema upgrade waits for the lake's lock, in seconds."""
LAST_VACUUM = ".tidied"
"""File in the lake's local folder whose modification time is the time of the last vacuum by this machine."""
TARGET_FILE_BYTES = 128 * 1024 * 1024
"""Size at which a rewritten partition begins another file, in bytes."""

_CONFIGURATION = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": f"interval {GRACE_H} hours",
    "delta.deletedFileRetentionDuration": f"interval {GRACE_H} hours",
}


@dataclass(frozen=True, slots=True)
class File:
    """A live Parquet file: local path or URI, value of the partition column, size in bytes, number of rows."""

    path: str
    partition: str
    size: int
    rows: int


@dataclass(frozen=True, slots=True)
class State:
    """A table at one version. `offset` is the last hot batch of one node in it; 0 before the first."""

    version: int
    offset: int
    files: tuple[File, ...]


def create(
    lake: Root,
    known: Mapping[str, Migrations] = MIGRATIONS,
    *,
    is_locked: bool = False,
    nodes: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Create missing tables, and upgrade the others to the newest schema version.

    `is_locked`: the caller has the lake's lock, which an upgrade takes otherwise. A missing table begins with the
    offsets of its `nodes` in `hits`, or in the table that it replaces.

    Raises:
        StoreTooNew: a newer release wrote a table.
        LakeBusy: an upgrade waited for the lake's lock for MIGRATION_WAIT_S.
    """
    for spec in TABLES:
        if is_table(lake / spec.name) or not _create(lake, spec, known, nodes.get(spec.name, ())):
            _upgrade(lake, spec, known, is_locked)


def _create(lake: Root, spec: Spec, known: Mapping[str, Migrations], nodes: Collection[str]) -> bool:
    """Create a table; return False if another node has created it meanwhile."""
    folder = lake / spec.name
    folder.make_folder()
    older = DAILY_ERRORS_TABLE if spec is REQUESTS_TABLE and is_table(lake / DAILY_ERRORS_TABLE.name) else HITS_TABLE
    before = open_table(lake, older, known) if nodes and spec is not HITS_TABLE else None
    first = None if before is None else [Transaction(app_id=node, version=offset(before, node)) for node in nodes]
    try:
        table = DeltaTable.create(
            str(folder),
            spec.schema,
            partition_by=[spec.partition],
            configuration={**_CONFIGURATION, table_schema.PROPERTY: str(newest(known.get(spec.name, ())))},
            storage_options=folder.delta_options,
            raise_if_key_not_exists=False,  # delta-rs does not know the property of the schema version
            commit_properties=CommitProperties(app_transactions=first),
        )
    except DeltaError:
        if is_table(folder):
            return False
        raise
    delta_log.persist(table, since=-1)
    lake.sync()
    return True


def _upgrade(lake: Root, spec: Spec, known: Mapping[str, Migrations], is_locked: bool) -> None:
    migrations = known.get(spec.name, ())
    if table_schema.pending(open_table(lake, spec, known), spec.name, migrations):
        with nullcontext() if is_locked else write_lock(lake.local, MIGRATION_WAIT_S):
            table = open_table(lake, spec, known)
            since = table.version()
            table_schema.upgrade(table, spec.name, migrations)
            delta_log.persist(table, since)


def is_table(folder: Root) -> bool:
    """Return whether a folder has the log of a table."""
    return delta_log.read(folder).newest >= 0


def specs(lake: Root) -> tuple[Spec, ...]:
    """Return the tables that a lake must have: `hits`, and those that its release created."""
    return tuple(spec for spec in TABLES if spec is HITS_TABLE or spec.name in lake.folders())


def refuse_newer(lake: Root) -> None:
    """Raise StoreTooNew if a newer release wrote a table. Creates and changes nothing."""
    for spec in TABLES:
        if is_table(lake / spec.name):
            with suppress(DataIncomplete):  # a table that cannot be opened is refused when it is used
                open_table(lake, spec)


def open_table(lake: Root, spec: Spec, known: Mapping[str, Migrations] = MIGRATIONS) -> DeltaTable:
    """Open a table at its newest version. A broken checkpoint is set aside if the commits contain all of its changes.

    Raises:
        TableIncomplete: the table cannot be opened; the message names the table and the file at fault.
        StoreTooNew: a newer release wrote the table.
    """
    table = log_repair.past_broken_checkpoints(lake / spec.name, lambda: open_version(lake, spec))
    table_schema.pending(table, spec.name, known.get(spec.name, ()))
    return table


def open_version(lake: Root, spec: Spec, version: int | None = None) -> DeltaTable:
    """Open a table at an older version, whose files may be missing, or at the newest one.

    Raises:
        deltalake.exceptions.DeltaError: the version is not in the table's log any more.
    """
    with lake.reaching():
        return DeltaTable(str(lake / spec.name), version, storage_options=lake.delta_options)


def refresh(table: DeltaTable) -> None:
    """Update an open table to its newest version. Raises TableIncomplete if its log is broken or lacks commits."""
    log_repair.past_broken_checkpoints(delta_log.folder(table), table.update_incremental)


@delta_log.reaching
def offset(table: DeltaTable, node: str) -> int:
    """Return the id of the last hot batch of a node that the table has; 0 before the first."""
    return table.transaction_version(node) or 0


@delta_log.reaching
def list_files(table: DeltaTable, spec: Spec, partition: str | None = None) -> tuple[File, ...]:
    """Return the live Parquet files of an open table at its version, or those of one partition."""
    actions = pa.table(table.get_add_actions(flatten=True))
    root = delta_log.folder(table)
    names = ("path", f"partition.{spec.partition}", "size_bytes", "num_records")
    columns = (actions[name].to_pylist() for name in names)
    return tuple(
        File(str(root / unquote(path)), str(value), size, rows)
        for path, value, size, rows in zip(*columns, strict=True)
        if partition in {None, str(value)}
    )


def state(table: DeltaTable, spec: Spec, node: str) -> State:
    """Return the version, offset and files of an open table. Call `refresh` first to read the newest version."""
    return State(table.version(), offset(table, node), list_files(table, spec))


def writer_properties(rows_max: int) -> WriterProperties:
    """Return the Parquet settings of files that delta-rs writes, with at most `rows_max` rows in a row group."""
    return WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=rows_max)


@delta_log.reaching
def append(table: DeltaTable, rows: pa.Table, node: str, offset: int) -> None:
    """Add rows and raise the node's offset, in one commit."""
    since = table.version()
    write_deltalake(
        table,
        rows,
        mode="append",
        writer_properties=writer_properties(row_groups.ROWS_MAX),
        commit_properties=CommitProperties(app_transactions=[Transaction(app_id=node, version=offset)]),
        post_commithook_properties=delta_log.NO_HOOKS,
    )
    delta_log.persist(table, since)


@delta_log.reaching
def add_files(table: DeltaTable, spec: Spec, files: Sequence[File], node: str, offset: int) -> None:
    """Add files that are in the table's folder already, and raise the node's offset, in one commit.

    The files and folders are synced already, by `staging.sync`: an fsync of a synced file takes up to 1 ms.
    """
    since = table.version()
    table.create_write_transaction(
        [add_action(spec, file) for file in files],
        mode="append",
        schema=table.schema(),
        partition_by=[spec.partition],
        commit_properties=CommitProperties(app_transactions=[Transaction(app_id=node, version=offset)]),
        post_commithook_properties=delta_log.NO_HOOKS,
    )
    table.update_incremental()  # a write transaction does not update the handle, unlike an append
    delta_log.persist(table, since, synced={file.path for file in files})


def add_action(spec: Spec, file: File) -> AddAction:
    """Return the entry by which a commit adds a file that is in the folder of its partition.

    The entry names the file from the folder of the table, which may have another path through a symbolic link.
    """
    return AddAction(
        path="/".join(file.path.split("/")[-2:]),
        size=file.size,
        partition_values={spec.partition: file.partition},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


@delta_log.reaching
def delete(table: DeltaTable, where: str, rows_max: int = row_groups.ROWS_MAX) -> int:
    """Delete the rows that match the SQL condition `where`, in one commit, and return their number.

    Without such rows there is no commit. New files have at most `rows_max` rows in a row group.

    Raises:
        deltalake.exceptions.CommitFailedError: another node appended matching rows after the handle's version.
    """
    since = table.version()
    deleted = table.delete(where, writer_properties(rows_max), post_commithook_properties=delta_log.NO_HOOKS)
    delta_log.persist(table, since)
    return int(deleted["num_deleted_rows"] or 0)


@delta_log.reaching
def vacuum(table: DeltaTable) -> None:
    """Write a checkpoint, delete the log files that it replaces, and delete files that no reader needs any more.

    Unneeded files are found on the disk (`full=True`): the log does not name those of a killed loader, and a checkpoint
    drops the names of files that were removed more than GRACE_H ago.
    """
    since = table.version()
    delta_log.checkpoint(table)
    table.cleanup_metadata()
    table.vacuum(retention_hours=GRACE_H, dry_run=False, full=True, post_commithook_properties=delta_log.NO_HOOKS)
    delta_log.persist(table, since)  # a vacuum is two commits
