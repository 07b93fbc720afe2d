"""Append the hot batches to all tables, exactly once.

Each table is an independent consumer of the hot log. It takes the batches above its own offset, and one commit has both
the rows and the new offset. After a crash at any point, the next call continues without a lost or repeated hit.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from warehouse import daily_count
from warehouse.errors import HotLogBehind
from warehouse.hotlog import batches, disk_space, retention, synced
from warehouse.hotlog.connection import HotConnection
from warehouse.hotlog.synced import Synced
from warehouse.integrity import completeness
from warehouse.integrity.durability import require_synced
from warehouse.lake import delta_log, delta_table
from warehouse.lake.roots import Root, local_folder
from warehouse.lake.staging import Staged
from warehouse.schema import HITS, HOT

COMMIT_BATCHES_MAX = 20_000
COMMIT_ROWS_MAX, COMMIT_BYTES_MAX = 100_000, 128 * 1024 * 1024
"""Size of one commit, in rows and in bytes. Its rows are in memory several times while they are sorted and written."""

OnStep = Callable[[str], None]
"""Function that is called with the name of each point (see STEPS) at which a crash would leave a different state."""
STEPS = (
    "before commit of hits",
    "before commit of daily_views",
    "before commit of daily_errors",
    "before mark",
    "after mark",
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of a load: hits appended, and commits to all tables."""

    rows: int
    commits: int


def catch_up(
    hot: HotConnection,
    root: Root,
    on_step: OnStep = lambda step: None,
    now: Callable[[], float] = time.time,
) -> Loaded:
    """Append all batches that the hot log has when the tables are open. All tables then have the same offset.

    The batches stay in the hot log as loaded ones: see `retention`. `now` returns the time in seconds since 1970.

    The caller has locked the lake with `durability.durable_writes`. Dirty days stay dirty.

    Raises:
        HotLogBehind, DataIncomplete: see `load.load`.
    """
    loaded = Loaded(rows=0, commits=0)
    node, recorded = batches.node_id(hot), synced.recorded(hot)
    tables = {spec: delta_table.open_table(root, spec) for spec in delta_table.TABLES}
    end = batches.last_id(hot)  # after the tables: another node may load if this one was paused and has lost the lock
    offsets = {spec: _offset(table, node, end) for spec, table in tables.items()}
    for spec, table in tables.items():
        require_synced(root / spec.name, Synced(table.version(), offsets[spec]), recorded.get(spec.name))
    while True:
        before = offsets.copy()
        # After a crash the tables may have different offsets, otherwise all of them take the same chunk.
        chunks = {offset: _chunk(hot, offset, end) for offset in set(before.values())}
        for spec, table in tables.items():
            chunk = chunks[before[spec]]
            if chunk.last_id > offsets[spec]:
                on_step(f"before commit of {spec.name}")
                _commit(table, spec, chunk, node)
                offsets[spec] = chunk.last_id
                loaded = Loaded(loaded.rows + (chunk.hits if spec is delta_table.HITS_TABLE else 0), loaded.commits + 1)
        on_step("before mark")
        reached = {spec.name: Synced(table.version(), offsets[spec]) for spec, table in tables.items()}
        retention.mark_loaded(hot, min(offsets.values()), reached, now())
        on_step("after mark")
        retention.delete_due(hot, now(), retention.bytes_max(disk_space.free_bytes(local_folder(root))))
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

    views: pa.Table
    errors: pa.Table
    staged: list[Staged]
    last_id: int

    @property
    def hits(self) -> int:
        return int(self.views.num_rows) + sum(file.rows for staged in self.staged for file in staged.hits)


def _chunk(hot: HotConnection, offset: int, end: int) -> _Chunk:
    """Return the next batches above `offset` and up to `end`: all rows or all staged, about COMMIT_ROWS_MAX rows.

    Without `end`, the later tables would also get the hits posted during the commit to the first, and the offsets would
    differ.

    The read transaction ends with this function, before the commit, because the WAL of the hot log cannot shrink while
    it is open.
    """
    chosen: list[batches.Batch] = []
    rows = size = 0
    for batch in batches.above(hot, offset):
        if batch.id > end or (chosen and (batch.staged is None) != (chosen[0].staged is None)):
            break
        chosen.append(batch)
        rows, size = rows + batch.rows.num_rows, size + batch.rows.nbytes
        if rows >= COMMIT_ROWS_MAX or size >= COMMIT_BYTES_MAX or len(chosen) >= COMMIT_BATCHES_MAX:
            break
    return _Chunk(
        *daily_count.split(pa.Table.from_batches([batch.rows for batch in chosen], HOT)),
        [batch.staged for batch in chosen if batch.staged],
        chosen[-1].id if chosen else offset,
    )


def _commit(table: DeltaTable, spec: delta_table.Spec, chunk: _Chunk, node: str) -> None:
    if chunk.staged:
        files = [file for staged in chunk.staged for file in staged.files(spec, delta_log.folder(table))]
        delta_table.add_files(table, spec, files, node, chunk.last_id)
    else:
        delta_table.append(table, _ROWS_FOR[spec.name](chunk), node, chunk.last_id)


def hits_of(hot_rows: pa.Table) -> pa.Table:
    """Return hot rows with their UTC day, in the order of a file of `hits`."""
    dated = hot_rows.add_column(2, HITS.field("date"), pc.cast(hot_rows["ts"], pa.date32()))
    return dated.sort_by([(column, "ascending") for column in delta_table.HITS_TABLE.order])


_ROWS_FOR: dict[str, Callable[[_Chunk], pa.Table]] = {
    "hits": lambda chunk: hits_of(chunk.views),
    "daily_views": lambda chunk: daily_count.count(chunk.views),
    "daily_errors": lambda chunk: daily_count.count_errors(chunk.errors),
}
