"""Append the hot batches to all tables, exactly once.

Each table is an independent consumer of the hot log. It takes the batches above its own offset, and one commit has both
the rows and the new offset. After a crash at any point, the next call continues without a lost or repeated hit.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from warehouse.encoding import EncodedRows
from warehouse.errors import BatchDamaged, HotLogBehind
from warehouse.hotlog import batches, disk_space, loads, retention
from warehouse.hotlog.connection import HotConnection, name_of
from warehouse.hotlog.loads import Synced
from warehouse.integrity import completeness
from warehouse.integrity.durability import require_synced
from warehouse.lake import delta_table, staging
from warehouse.lake.roots import Root
from warehouse.lake.staging import Staged
from warehouse.tables import HITS_TABLE, TABLES, Spec

COMMIT_BATCHES_MAX, COMMIT_ROWS_MAX, COMMIT_BYTES_MAX = 20_000, 100_000, 48 * 1024 * 1024
"""Numbers of batches, rows and bytes after which no batch is added to a commit. Its rows are in memory several times
while they are sorted and written."""

OnPoint = Callable[[str], None]
"""Function that is called with the name of each point (see POINTS) at which a crash would leave a different state."""
POINTS = (*(f"before commit of {spec.name}" for spec in TABLES), "before mark", "after mark")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of a load: hits appended, and commits to all tables."""

    rows: int
    commits: int


def catch_up(
    hot: HotConnection, root: Root, on_point: OnPoint = lambda point: None, now: Callable[[], float] = time.time
) -> Loaded:
    """Append all batches that the hot log has when the tables are open. All tables then have the same offset.

    The batches stay in the hot log as loaded ones: see `retention`. `now` returns the time in seconds since 1970.

    The caller has locked the lake with `durability.durable_writes`.

    Raises:
        HotLogBehind, DataIncomplete: see `load.load`.
        BatchDamaged: a file that a batch names is missing; no table gets a commit with that batch.
    """
    loaded = Loaded(rows=0, commits=0)
    node, recorded = batches.node_id(hot), loads.synced(hot)
    tables = {spec: delta_table.open_table(root, spec) for spec in TABLES}
    end = batches.last_id(hot)  # after the tables: another node may load if this one was paused and has lost the lock
    offsets = {spec: _offset(table, node, end) for spec, table in tables.items()}
    for spec, table in tables.items():
        require_synced(root / spec.name, Synced(table.version(), offsets[spec]), recorded.get(spec.name))
    while True:
        before = offsets.copy()
        # After a crash the tables may have different offsets, otherwise all of them take the same chunk.
        chunks = {offset: _chunk(hot, offset, end) for offset in set(before.values())}
        due = {spec: chunks[before[spec]] for spec in tables if chunks[before[spec]].last_id > before[spec]}
        for spec, chunk in due.items():
            _require_files(hot, root, spec, chunk)
        for spec, chunk in due.items():
            on_point(f"before commit of {spec.name}")
            _commit(root, tables[spec], spec, chunk, node)
            offsets[spec] = chunk.last_id
            loaded = Loaded(loaded.rows + (chunk.hits if spec is HITS_TABLE else 0), loaded.commits + 1)
        on_point("before mark")
        reached = {spec.name: Synced(table.version(), offsets[spec]) for spec, table in tables.items()}
        retention.mark_loaded(hot, min(offsets.values()), reached, now())
        on_point("after mark")
        retention.delete_due(hot, now(), retention.bytes_max(disk_space.free_bytes(root.local)))
        # A lake restored from an older copy may never reach `end`: its batches are already deleted from the hot log.
        if min(offsets.values()) >= end or offsets == before:
            return loaded


def _offset(table: DeltaTable, node: str, end: int) -> int:
    offset = delta_table.offset(table, node)
    if offset > end:
        raise HotLogBehind(completeness.older_message(offset, end))
    return offset


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Content of one commit to each table: either rows or staged files."""

    rows: Mapping[Spec, pa.Table]
    staged: dict[int, Staged]
    """Staged files by the id of their batch."""
    last_id: int

    @property
    def hits(self) -> int:
        rows = self.rows[HITS_TABLE].num_rows if HITS_TABLE in self.rows else 0
        return int(rows) + sum(staged.hits for staged in self.staged.values())


def _chunk(hot: HotConnection, offset: int, end: int) -> _Chunk:
    """Return the next batches above `offset` and up to `end`: all rows or all staged, about COMMIT_ROWS_MAX rows.

    Without `end`, the later tables would also get the hits posted during the commit to the first, and the offsets would
    differ.

    The read transaction ends with this function, before the commit, because the WAL of the hot log cannot shrink while
    it is open.
    """
    waiting, staged, last_id = dict[Spec, EncodedRows](), dict[int, Staged](), offset
    count = rows = size = 0
    for batch in batches.above(hot, offset):
        if batch.id > end or (count and (batch.staged is None) == bool(staged)):
            break
        if batch.staged is None:
            waiting.setdefault(batch.spec, EncodedRows(batch.rows.schema)).add(batch.rows)
        else:
            staged[batch.id] = batch.staged
        last_id, count = batch.id, count + 1
        rows, size = rows + batch.rows.num_rows, size + batch.rows.nbytes
        if rows >= COMMIT_ROWS_MAX or size >= COMMIT_BYTES_MAX or count >= COMMIT_BATCHES_MAX:
            break
    return _Chunk(staging.divide({spec: rows.table() for spec, rows in waiting.items()}), staged, last_id)


def _require_files(hot: HotConnection, root: Root, spec: Spec, chunk: _Chunk) -> None:
    """Raise BatchDamaged if a staged file is missing: a table that names a missing file cannot be read any more."""
    for id, staged in chunk.staged.items():
        if missing := staging.find_missing(root, spec, staged):
            raise BatchDamaged(
                f"batch {id} in {name_of(hot)} names {missing}, which is missing: restore the file from a backup of "
                "the lake; no hit is loaded until then"
            )


def _commit(root: Root, table: DeltaTable, spec: Spec, chunk: _Chunk, node: str) -> None:
    files = [file for staged in chunk.staged.values() for file in staged.files(spec, root / spec.name)]
    if spec in chunk.rows:
        files += staging.write(root, spec, chunk.rows[spec])
    delta_table.add_files(table, spec, files, node, chunk.last_id)
