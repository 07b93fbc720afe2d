"""New files of a partition, and the commit that replaces the old files by them."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import RemoveAction

from warehouse.errors import LakeBusy
from warehouse.lake import delta_log, delta_table, roots, row_groups
from warehouse.lake.delta_table import GRACE_H, TARGET_FILE_BYTES, File, add_action
from warehouse.lake.roots import Root
from warehouse.tables import Spec

ATTEMPTS = 5
"""Attempts at a commit that conflicts with appends of other nodes."""
COMPRESSION, COMPRESSION_LEVEL = "zstd", 3
Result = TypeVar("Result")


def retry_commit(commit: Callable[[], Result]) -> Result:
    """Return the result of `commit`, repeated if it fails for another node's append. Raises LakeBusy after ATTEMPTS."""
    for _ in range(ATTEMPTS):
        try:
            return commit()
        except CommitFailedError:
            continue
    raise LakeBusy(f"other nodes wrote into the same days {ATTEMPTS} times over; try again later")


def write_partition(root: Root, spec: Spec, partition: str, rows: pa.RecordBatchReader) -> tuple[File, ...]:
    """Write rows with the columns of a table to new files in a partition's folder, in the order of the rows.

    No table has the files before a commit names them; without a commit a vacuum deletes them.
    """
    schema = pa.schema([field for field in spec.schema if field.name != spec.partition])
    tables = (pa.Table.from_batches([batch]).select(schema.names).cast(schema) for batch in rows.cast(spec.schema))
    groups = row_groups.split(tables)
    files = []
    for first in groups:
        path = root / spec.name / f"{spec.partition}={partition}" / f"part-{uuid.uuid4()}.parquet"
        count = 0
        with path.new_file() as local:
            with pq.ParquetWriter(
                local, schema, compression=COMPRESSION, compression_level=COMPRESSION_LEVEL, store_schema=False
            ) as writer:
                for group in chain([first], groups):
                    writer.write_table(group, row_groups.ROWS_MAX)
                    count += group.num_rows
                    if local.stat().st_size >= TARGET_FILE_BYTES:
                        break
            files.append(File(str(path), partition, local.stat().st_size, count))
    return tuple(files)


@delta_log.reaching
def replace_files(table: DeltaTable, spec: Spec, old: Sequence[File], new: Sequence[File]) -> None:
    """Replace files of a table by new files in its folder, in one commit.

    Rows that another node appends meanwhile are in other files, and stay.

    Raises:
        deltalake.exceptions.CommitFailedError: another node removed one of the old files after the handle's version.
    """
    root, since, now_ms = delta_log.folder(table), table.version(), int(time.time() * 1000)
    removed = [
        RemoveAction(
            path=file.path.removeprefix(f"{root}/"),
            deletion_timestamp=now_ms,
            data_change=True,
            partition_values={spec.partition: file.partition},
            size=file.size,
        )
        for file in old
    ]
    table.create_write_transaction(
        [*removed, *(add_action(spec, file) for file in new)],
        mode="append",  # the mode for commits that list what they remove
        schema=table.schema(),
        partition_by=[spec.partition],
        post_commithook_properties=delta_log.NO_HOOKS,
    )
    table.update_incremental()  # a write transaction does not update the handle
    delta_log.persist(table, since)


def replace_live(root: Root, spec: Spec, old: Sequence[File], new: Sequence[File]) -> bool:
    """Replace files of a partition by uncommitted ones, unless another process has replaced one of them meanwhile.

    Rows that were added meanwhile are in other files, and stay. The caller has locked the lake.
    """
    table, fresh = delta_table.open_table(root, spec), renewed(new)
    live = delta_table.list_files(table, spec, old[0].partition)
    if fresh is None or not set(old) <= set(live):
        return False
    replace_files(table, spec, old, fresh)
    return True


def renewed(files: Sequence[File]) -> tuple[File, ...] | None:
    """Return uncommitted files in a form that no vacuum deletes for half of GRACE_H; None if one is missing.

    A vacuum deletes a file that no table names GRACE_H after its last write. Files older than half of that are renewed.
    """
    oldest_s = time.time() - GRACE_H * 3600 / 2
    try:
        return tuple(
            file if roots.modified_s(file.path) >= oldest_s else replace(file, path=str(roots.at(file.path).renew()))
            for file in files
        )
    except FileNotFoundError:
        return None
