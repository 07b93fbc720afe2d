"""Consistent snapshots of all tables and the hot rows.

A snapshot is exact because of its order: first the hot rows in one read transaction, then the newest version of each
table. For each table, the hot rows of batches up to its offset are then left out. No hit is missed or counted twice,
whatever a loader in this or another process commits meanwhile.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from warehouse import daily_count
from warehouse.errors import HotLogBehind
from warehouse.hotlog import batches, synced
from warehouse.hotlog.connection import HotLogPlace
from warehouse.hotlog.synced import Synced
from warehouse.integrity import completeness, durability
from warehouse.lake import delta_table
from warehouse.lake.roots import Root
from warehouse.query.hot_rows import HotRows
from warehouse.schema import HOT


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All tables at one version, the hot rows that each table does not have yet, and the id of the newest hot batch.

    The hot rows of `hits` are page views, those of `daily_errors` are errors.
    """

    hits: delta_table.State
    daily_errors: delta_table.State
    hits_hot: pa.Table
    daily_errors_hot: pa.Table
    last_id: int


class SnapshotReader:
    """Reader of snapshots, which reads only new hot batches, and a table's file list only after a commit.

    All threads of a process may share it; they take snapshots one at a time.
    """

    def __init__(self, hot: HotLogPlace, root: Root, columns: Sequence[str] = tuple(HOT.names)) -> None:
        """Open the hot log and the tables. `columns` are those of the hot rows, which stay in memory.

        The columns `status` and `traffic` are required. All columns take about 0.8 kB a row, those of a report 0.2 kB.

        Raises:
            DataIncomplete: see `durability.require_commits`; or the hot log is missing or older than the lake.
        """
        self._lock = threading.Lock()
        self._root = root
        self._tables = {spec.name: delta_table.open_table(root, spec) for spec in delta_table.specs(root)}
        completeness.require_identity(hot, root)
        completeness.require_newest(hot, root, list(self._tables.values()))
        self._hot = batches.connect(hot)
        self._node = batches.node_id(self._hot)
        self._states: dict[str, delta_table.State] = {}
        self._hot_rows = HotRows(columns, choose=_all)

    def take(self) -> Snapshot:
        """Return a snapshot that has each hit acknowledged before the call, once.

        Raises:
            DataIncomplete: see `durability.require_commits`; or the hot log has become older than the lake.
        """
        with self._lock:
            recorded = synced.recorded(self._hot)  # before the tables: their versions only rise
            self._hot_rows.read_waiting(self._hot)
            states = self._states_now(recorded)
            self._require_newest(max(state.offset for state in states))
            self._hot_rows.drop_through(min(state.offset for state in states))
            hits, daily_errors = states
            return Snapshot(
                self._with_staged(delta_table.HITS_TABLE, hits),
                self._with_staged(delta_table.DAILY_ERRORS_TABLE, daily_errors),
                daily_count.page_views(self._hot_rows.rows(hits.offset)),
                daily_count.errors(self._hot_rows.rows(daily_errors.offset)),
                self._hot_rows.last_id,
            )

    def close(self) -> None:
        self._hot.close()

    def _require_newest(self, offset: int) -> None:
        if offset > self._hot_rows.last_id and offset > (last_id := batches.last_id(self._hot)):
            raise HotLogBehind(completeness.older_message(offset, last_id))

    def _states_now(self, recorded: Mapping[str, Synced]) -> tuple[delta_table.State, ...]:
        """Return the tables in the order of TABLES. One that an older release did not have is empty, like new ones."""
        states: list[delta_table.State] = []
        for spec in delta_table.TABLES:
            if spec.name in self._tables or spec.name in recorded or spec in delta_table.specs(self._root):
                states.append(self._refresh(spec, recorded.get(spec.name)))
            else:
                states.append(delta_table.State(-1, states[0].offset, ()))
        return tuple(states)

    def _refresh(self, spec: delta_table.Spec, known: Synced | None) -> delta_table.State:
        table = self._tables.get(spec.name)
        if table is None:
            table = self._tables[spec.name] = delta_table.open_table(self._root, spec)
        delta_table.refresh(table)
        state = self._states.get(spec.name)
        if state is None or state.version != table.version():
            durability.require_commits(self._hot, self._root)
            self._states[spec.name] = state = delta_table.state(table, spec, self._node)
        durability.require_synced(self._root / spec.name, Synced(state.version, state.offset), known)
        return state

    def _with_staged(self, spec: delta_table.Spec, state: delta_table.State) -> delta_table.State:
        """Return the table's state with the staged files of waiting batches added."""
        files, last = self._hot_rows.staged_files(spec, self._root / spec.name, state.offset)
        return replace(state, files=(*state.files, *files), staged=last) if files else state


def _all(rows: pa.Table) -> pa.Table:
    return rows
