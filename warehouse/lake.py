"""The lake's Delta tables: create them, read their state, append with an offset, replace a partition, delete.

Each function that commits returns when the commit is on the disk.

Each table keeps in its own log the id of the last hot batch it holds, by node (Delta's application transactions,
https://github.com/delta-io/delta/blob/master/PROTOCOL.md#transaction-identifiers). Rows and id come in one commit.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from warehouse import table_schema
from warehouse.errors import LakeBusy
from warehouse.schema import DAILY_VIEWS, DAILY_VIEWS_ORDER, HITS, HITS_ORDER
from warehouse.table_schema import STEPS, Steps

GRACE_H = 1
"""Hours for which a file stays on disk after a commit dropped it: longer than any query runs."""
LOCK_POLL_S = 0.05
MIGRATION_WAIT_S = 60.0
TARGET_FILE_BYTES = 128 * 1024 * 1024
ROW_GROUP_ROWS = 64 * 1024
"""Small enough that one project's rows of a day are a few row groups of the file."""

_CONFIGURATION = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": f"interval {GRACE_H} hours",
    "delta.deletedFileRetentionDuration": f"interval {GRACE_H} hours",
}
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
    def edition(self) -> tuple[int, int]:
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
            _bring_up_to_date(lake, spec, steps)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        table = DeltaTable.create(
            str(folder),
            spec.schema,
            partition_by=[spec.partition],
            configuration={**_CONFIGURATION, **table_schema.properties(steps[spec.name])},
            raise_if_key_not_exists=False,  # the schema version is a property of ours
        )
        _persist(table, since=-1)
        sync(lake)


def _bring_up_to_date(lake: Path, spec: Spec, steps: Mapping[str, Steps]) -> None:
    if table_schema.pending(open_table(lake, spec, steps), spec.name, steps[spec.name]):
        with locked(lake, MIGRATION_WAIT_S):
            table = open_table(lake, spec, steps)
            since = table.version()
            table_schema.bring_up_to_date(table, spec.name, steps[spec.name])
            _persist(table, since)


def refuse_newer(lake: Path) -> None:
    """Raise StoreTooNew if a newer release wrote a table. Creates and changes nothing."""
    for spec in TABLES:
        if DeltaTable.is_deltatable(str(lake / spec.name)):
            open_table(lake, spec)


@contextmanager
def locked(lake: Path, wait_s: float) -> Iterator[None]:
    """Hold the lake of this node for writing: one loader or one maintenance task at a time, across processes.

    The lock is the kernel's, so that a killed holder leaves none behind.

    Raises:
        LakeBusy: another process held it for `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    with (lake / ".lock").open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LakeBusy(f"another process has held the lake for {wait_s:g} s; try again later") from None
                time.sleep(LOCK_POLL_S)
            else:
                break
        yield


def folder(table: DeltaTable) -> Path:
    """Where a table's files are."""
    return Path(unquote(table.table_uri.removeprefix("file://")))


def let_others_in() -> None:
    """Wait, the lake free, until all who wait for it have looked again. For one who takes it many times over."""
    time.sleep(2 * LOCK_POLL_S)


def open_table(lake: Path, spec: Spec, steps: Mapping[str, Steps] = STEPS) -> DeltaTable:
    """Return the table at its newest version.

    Raises:
        StoreTooNew: a newer release wrote it.
    """
    table = DeltaTable(str(lake / spec.name))
    table_schema.pending(table, spec.name, steps[spec.name])
    return table


def offset(table: DeltaTable, node: str) -> int:
    """The last hot batch of the node that the table holds; 0 for none."""
    return table.transaction_version(node) or 0


def state(table: DeltaTable, spec: Spec, node: str) -> State:
    """What the handle's version holds. Call `update_incremental` before, to have the newest."""
    actions = pa.table(table.get_add_actions(flatten=True))
    root = folder(table)
    files = zip(
        actions["path"].to_pylist(),
        actions[f"partition.{spec.partition}"].to_pylist(),
        actions["size_bytes"].to_pylist(),
        actions["num_records"].to_pylist(),
        strict=True,
    )
    return State(
        version=table.version(),
        offset=offset(table, node),
        files=tuple(
            File(str(root / unquote(path)), str(partition), size, rows) for path, partition, size, rows in files
        ),
    )


def append(table: DeltaTable, rows: pa.Table, node: str, offset: int) -> None:
    """Add rows and the offset they bring the table to, in one commit."""
    since = table.version()
    write_deltalake(
        table,
        rows,
        mode="append",
        writer_properties=_WRITER,
        commit_properties=CommitProperties(app_transactions=[Transaction(app_id=node, version=offset)]),
    )
    _persist(table, since)


def adopt(table: DeltaTable, spec: Spec, files: Iterable[File], node: str, offset: int) -> None:
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
    )
    _persist(table, since)


def delete(table: DeltaTable, where: str) -> int:
    """Remove the rows of which `where` is true, in one commit; returns how many they were. No commit where none is.

    Raises:
        deltalake.exceptions.CommitFailedError: another node appended such rows since the handle's version.
    """
    since = table.version()
    removed = int(table.delete(where)["num_deleted_rows"] or 0)
    _persist(table, since)
    return removed


def _persist(table: DeltaTable, since: int) -> None:
    """Wait until all that was committed after version `since` is on the disk: delta-rs leaves that to the system.

    Only then may the hot log, whose commits do wait for the disk, let go of the same rows, or of a day noted to be
    counted anew. And a commit is of use only if those before it are there too: so each waits.
    """
    root = folder(table)
    for version in range(since + 1, table.version() + 1):
        commit = root / "_delta_log" / f"{version:020}.json"
        adds = (action["add"] for line in commit.read_bytes().splitlines() if "add" in (action := json.loads(line)))
        for file in [root / unquote(add["path"]) for add in adds]:
            sync(file)
            sync(file.parent)
        sync(commit)
    sync(root / "_delta_log")
    sync(root)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def tidy(table: DeltaTable) -> None:
    """Checkpoint the log, drop what the checkpoint covers, and remove files that no reader can need any more.

    Those are found on the disk (`full`): the log does not name what a killed loader left, and a checkpoint forgets the
    files that were dropped before the grace.
    """
    table.create_checkpoint()
    table.cleanup_metadata()
    table.vacuum(retention_hours=GRACE_H, dry_run=False, full=True)
