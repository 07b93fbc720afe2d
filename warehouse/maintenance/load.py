"""Hot batches into the lake, exactly once.

Each table is an independent consumer of the hot log: it takes the batches above its own offset, and rows and new
offset are one commit. A crash at any point leaves a state from which the next load goes on without a loss or a repeat.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from warehouse.errors import HotLogBehind
from warehouse.hotlog import batches, dirty_days, synced
from warehouse.hotlog.synced import Synced
from warehouse.integrity import completeness
from warehouse.integrity.durability import durable_writes, require_synced
from warehouse.lake import delta_log, delta_table
from warehouse.lake.staging import Staged
from warehouse.maintenance import rollup
from warehouse.schema import DAILY_VIEWS, DAILY_VIEWS_KEY, HITS, HOT

COMMIT_BATCHES_MAX = 20_000
COMMIT_ROWS_MAX, COMMIT_BYTES_MAX = 100_000, 128 * 1024 * 1024
"""A commit holds its rows in memory, several times over while they are sorted and written."""

OnStep = Callable[[str], None]
"""Told the name of each point at which a crash would leave another state: see STEPS."""
STEPS = ("before commit of hits", "before commit of daily_views", "before delete", "after delete")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one load moved: hits, and commits over both tables."""

    rows: int
    commits: int


def is_due(hot: sqlite3.Connection, rows: int, age_s: float, now_s: float) -> bool:
    """Whether so many hits wait in the hot log, one has waited for so long, or a day waits to be counted anew."""
    waits = batches.backlog(hot)
    return waits.rows >= rows or waits.age_s(now_s) >= age_s or bool(dirty_days.list_dirty(hot))


def load(hot: sqlite3.Connection, root: Path, wait_s: float, on_step: OnStep = lambda step: None) -> Loaded:
    """Bring both tables up to the hot log's end as it is now, and delete from it what both hold.

    Then the days whose rollup was cut short are counted: see `warehouse.maintenance.rollup`.

    Raises:
        LakeBusy: another loader or maintenance task held the lake's lock for `wait_s` seconds.
        HotLogBehind: the hot log is older than the lake.
        DataIncomplete: the lake lacks what was stored in it: see `durability.require_commits`.
    """
    with durable_writes(hot, root, wait_s):
        loaded = bring_up(hot, root, on_step)
        rollup.finish(hot, root)
        return loaded


def bring_up(hot: sqlite3.Connection, root: Path, on_step: OnStep = lambda step: None) -> Loaded:
    """`load`, without the days noted, for one who holds the lake: both tables then stand at one offset."""
    loaded = Loaded(rows=0, commits=0)
    node, end, recorded = batches.node_id(hot), batches.last_id(hot), synced.recorded(hot)
    tables = {spec: delta_table.open_table(root, spec) for spec in delta_table.TABLES}
    offsets = {spec: _offset(table, node, end) for spec, table in tables.items()}
    for spec, table in tables.items():
        require_synced(root / spec.name, Synced(table.version(), offsets[spec]), recorded.get(spec.name))
    while True:
        before = offsets.copy()
        for spec, table in tables.items():
            chunk = _chunk(hot, offsets[spec], end)
            if chunk.last_id > offsets[spec]:
                on_step(f"before commit of {spec.name}")
                _commit(table, spec, chunk, node)
                offsets[spec] = chunk.last_id
                loaded = Loaded(loaded.rows + (chunk.hits if spec is delta_table.HITS_TABLE else 0), loaded.commits + 1)
        on_step("before delete")
        reached = {spec.name: Synced(table.version(), offsets[spec]) for spec, table in tables.items()}
        batches.delete_through(hot, min(offsets.values()), reached)
        on_step("after delete")
        if min(offsets.values()) >= end or offsets == before:  # a lake restored from an older copy never gets there
            return loaded


def _offset(table: DeltaTable, node: str, end: int) -> int:
    offset = delta_table.offset(table, node)
    if offset > end:
        raise HotLogBehind(completeness.older_message(offset, end))
    return offset


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What one commit takes: rows, or else files."""

    rows: pa.Table
    staged: list[Staged]
    last_id: int

    @property
    def hits(self) -> int:
        return int(self.rows.num_rows) + sum(file.rows for staged in self.staged for file in staged.hits)


def _chunk(hot: sqlite3.Connection, offset: int, end: int) -> _Chunk:
    """The next batches above the offset and up to `end` that are of one kind, about COMMIT_ROWS_MAX rows of them.

    Without `end` the table that is written second would take what was posted while the first was: they would part.

    Its read transaction ends here, not with the commit: the hot log's WAL could not shrink meanwhile.
    """
    taken: list[batches.Batch] = []
    rows = size = 0
    for batch in batches.above(hot, offset):
        if batch.id > end or (taken and (batch.staged is None) != (taken[0].staged is None)):
            break
        taken.append(batch)
        rows, size = rows + batch.rows.num_rows, size + batch.rows.nbytes
        if rows >= COMMIT_ROWS_MAX or size >= COMMIT_BYTES_MAX or len(taken) >= COMMIT_BATCHES_MAX:
            break
    return _Chunk(
        pa.Table.from_batches([batch.rows for batch in taken], HOT),
        [batch.staged for batch in taken if batch.staged],
        taken[-1].id if taken else offset,
    )


def _commit(table: DeltaTable, spec: delta_table.Spec, chunk: _Chunk, node: str) -> None:
    if chunk.staged:
        files = [file for staged in chunk.staged for file in staged.files(spec, delta_log.folder(table))]
        delta_table.add_files(table, spec, files, node, chunk.last_id)
    else:
        delta_table.append(table, _ROWS_OF[spec.name](chunk.rows), node, chunk.last_id)


def hits_of(hot_rows: pa.Table) -> pa.Table:
    """Hot rows with their UTC day, in the order of a file of `hits`."""
    dated = hot_rows.add_column(2, HITS.field("date"), pc.cast(hot_rows["ts"], pa.date32()))
    return dated.sort_by([(column, "ascending") for column in delta_table.HITS_TABLE.order])


def daily_views_of(hot_rows: pa.Table) -> pa.Table:
    """Hot rows counted by day, in the order of a file of `daily_views`."""
    keyed = pa.table(
        {
            "project_id": hot_rows["project_id"],
            "month": pc.strftime(hot_rows["ts"], format="%Y-%m"),
            "date": pc.cast(hot_rows["ts"], pa.date32()),
            "path": hot_rows["path"],
            "traffic": hot_rows["traffic"],
            "agent": hot_rows["agent"],
        }
    )
    counted = keyed.group_by(DAILY_VIEWS_KEY).aggregate([([], "count_all")])
    named = counted.rename_columns([*DAILY_VIEWS_KEY, "views"]).select(DAILY_VIEWS.names).cast(DAILY_VIEWS)
    return named.sort_by([(column, "ascending") for column in delta_table.DAILY_VIEWS_TABLE.order])


_ROWS_OF: dict[str, Callable[[pa.Table], pa.Table]] = {"hits": hits_of, "daily_views": daily_views_of}
