"""Snapshots of the tables: the files of a version, and the hot rows that this version lacks.

A snapshot is exact because of its order: first the hot rows in one read transaction, then the newest version of the
table. Batches up to the table's offset are then left out. No hit is missed or counted twice, whatever a loader in this
or another process commits meanwhile. The other tables are read before `hits`, because a load commits to `hits` first:
`hits` then has all of their batches.

The snapshot of an older moment has the same rows as the first snapshot of that moment, in any process, after any loads
and compactions: `warehouse.query.past`.
"""

import copy
import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import pyarrow as pa

from warehouse.columns import evidence
from warehouse.columns.dimensions import DIMENSIONS, MEASURES
from warehouse.errors import HotLogBehind
from warehouse.hotlog import batches, loads
from warehouse.hotlog.connection import HotLogPlace
from warehouse.hotlog.loads import Synced
from warehouse.integrity import completeness, durability
from warehouse.lake import delta_log, delta_table
from warehouse.lake.delta_table import File, State
from warehouse.lake.roots import Root
from warehouse.query.hot_rows import HotRows
from warehouse.query.moment import Moment
from warehouse.query.past import PastReader, Version, require_files
from warehouse.query.result_cache import ResultCache
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, TABLES, Spec

_SQL = " ".join([*(each.sql for each in DIMENSIONS), *(each.sql for each in MEASURES)])
_READ = {*re.findall(r"\w+", _SQL)} | {*evidence.COLUMNS}
HOT_COLUMNS = tuple(name for name in HOT.names if name in {"project_id", *_READ})
"""Columns of page views in the hot log that reports read."""
_OTHERS = tuple(spec for spec in TABLES if spec is not HITS_TABLE)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a table at a moment, staged files of hot batches included, and the hot rows that are in no file.

    `hot` has `batch_id`, too, and is in the order of the batches. The keys are for snapshots of `hits`.
    `beside` returns the snapshot of another table at the same moment: a report reads its files and hot rows.
    """

    moment: Moment
    files: tuple[File, ...]
    hot: pa.Table
    beside: Callable[[Spec], "Snapshot"] = field(default=lambda spec: NOTHING[spec], compare=False)

    @property
    def files_key(self) -> Hashable:
        """Return a key that is equal for two snapshots of one reader with the same files."""
        return self.moment.version, self.moment.staged

    @property
    def rows_key(self) -> Hashable:
        """Return a key that is equal for two snapshots of one reader with the same files and hot rows."""
        return self.files_key, self.moment.last_id, self.moment.generation


NOTHING: dict[Spec, Snapshot] = {spec: Snapshot(Moment(0, 0, 0, 0), (), spec.hot.empty_table()) for spec in TABLES}
"""Snapshots of tables without a row."""


class SnapshotReader:
    """Reader of snapshots, for all threads: it reads only new hot batches, and file lists only after a commit."""

    def __init__(
        self, hot: HotLogPlace, root: Root, now: Callable[[], float] = time.time, columns: Sequence[str] = HOT_COLUMNS
    ) -> None:
        """Open the hot log and `hits`; another table is opened when it is read first.

        `now` returns the time in seconds since 1970. `columns` are those of the hot page views, which stay in memory:
        all columns take about 0.8 kB a row, HOT_COLUMNS 0.2 kB.

        Raises:
            DataIncomplete: see `durability.require_commits`; or the hot log is missing or older than the lake.
        """
        self._lock = threading.Lock()
        self._root, self._now = root, now
        hits = delta_table.open_table(root, HITS_TABLE)
        self._tables, self._folder = {HITS_TABLE: hits}, delta_log.folder(hits).parent
        completeness.require_identity(hot, root)
        completeness.require_newest(hot, root, [hits])
        self._hot = batches.connect(hot)
        self._node = batches.node_id(self._hot)
        self._states: dict[Spec, State] = {}
        self._hot_rows = HotRows(columns)
        self._past = PastReader(hot, root, columns)

    def take(self, as_of: Moment | None = None, spec: Spec = HITS_TABLE) -> Snapshot:
        """Return the newest snapshot, which has each hit acknowledged before the call, once; or that of `as_of`.

        Raises:
            DataIncomplete: see `durability.require_commits`; or the hot log has become older than the lake.
            MomentExpired: see `Moment.require_readable`; or rows of the moment were removed.
            InvalidMoment: see `Moment.require_readable` and `Moment.require_batches`.
        """
        with self._lock:
            newest = self._newest(spec)
            moment, state = as_of or newest, self._states[spec]
            if as_of is not None:
                as_of.require_readable(newest, loads.first_version(self._hot))
            has_later = moment.version < state.version if spec is HITS_TABLE else moment.last_id < state.offset
            if not has_later:
                return self._snapshot(spec, moment, Version(state, self._hot_rows))
        snapshot = self._snapshot(spec, moment, self._past.version_of(spec, moment, state.version))
        require_files(moment, snapshot.files, state.files)
        return snapshot

    def take_all(self) -> dict[Spec, Snapshot]:
        """Return the newest snapshots of all tables, which have the same moment: see `take`."""
        with self._lock:
            moment = self._newest(*_OTHERS)
            return {spec: self._snapshot(spec, moment, Version(self._states[spec], self._hot_rows)) for spec in TABLES}

    def cache_in(self, cached: ResultCache) -> None:
        """Cache older versions of the tables, which are read for moments, in `cached`. By default none is cached."""
        self._past.cached = cached

    def close(self) -> None:
        self._past.close()
        self._hot.close()

    def _newest(self, *specs: Spec) -> Moment:
        """Return the newest moment, with the newest states of `specs` and `hits`, and the hot rows that they lack."""
        taken_us = int(self._now() * 1_000_000)  # all that follows is read after this time
        generation = loads.generation(self._hot)
        before, hot_rows_before = self._states.get(HITS_TABLE), copy.copy(self._hot_rows)
        self._hot_rows.read_waiting(self._hot)
        recorded = loads.synced(self._hot)  # after the hot rows, and before the tables: their versions only rise
        for spec in specs:
            if spec is not HITS_TABLE:
                self._states[spec] = self._state_of_other(spec, recorded)
        hits = self._states[HITS_TABLE] = self._state(HITS_TABLE, recorded)
        if before is not None and before.version != hits.version:
            self._past.remember(generation, Version(before, hot_rows_before))
        self._hot_rows.drop_through(min(hits.offset, *(self._offset(spec, recorded) for spec in _OTHERS)))
        last_id = max(self._hot_rows.last_id, *(state.offset for state in self._states.values()))
        self._read_loaded(last_id)
        return Moment(hits.version, last_id, 0, taken_us, generation)

    def _read_loaded(self, last_id: int) -> None:
        """Read the batches that were posted after the hot rows were read, and loaded before the tables were."""
        if last_id > self._hot_rows.last_id:
            if last_id > (newest := batches.last_id(self._hot)):
                raise HotLogBehind(completeness.older_message(last_id, newest))
            self._hot_rows.read_through(self._hot, last_id)

    def _offset(self, spec: Spec, recorded: Mapping[str, Synced]) -> int:
        """Return a batch up to which a table has all batches."""
        known, state = recorded.get(spec.name), self._states.get(spec)
        return max(0 if known is None else known.last_batch, 0 if state is None else state.offset)

    def _snapshot(self, spec: Spec, moment: Moment, version: Version) -> Snapshot:
        state, hot_rows = version.state, version.hot_rows
        moment.require_batches(state.offset)
        files, staged = hot_rows.staged_files(spec, self._folder / spec.name, state.offset, moment.last_id)
        hot = hot_rows.rows(spec, state.offset, moment.last_id)
        taken = replace(moment, staged=staged)
        return Snapshot(taken, (*state.files, *files), hot, cache(partial(self.take, taken)))

    def _state_of_other(self, spec: Spec, recorded: Mapping[str, Synced]) -> State:
        """Return the newest state of a table beside `hits`. A table that an older release did not have is empty."""
        if spec in self._tables or spec.name in recorded or spec in delta_table.specs(self._root):
            return self._state(spec, recorded)
        return State(-1, self._state(HITS_TABLE, recorded).offset, ())

    def _state(self, spec: Spec, recorded: Mapping[str, Synced]) -> State:
        state, known = self._states.get(spec), recorded.get(spec.name)
        if state is not None and self._is_newest(spec, state, known):
            return state
        # A table whose refresh fails is opened again: delta-rs reads a broken commit as one without changes.
        table = self._tables.pop(spec) if spec in self._tables else delta_table.open_table(self._root, spec)
        delta_table.refresh(table)
        if state is None or state.version != table.version():
            durability.require_commits(self._hot, self._root)
            state = delta_table.state(table, spec, self._node)
        durability.require_synced(self._root / spec.name, Synced(state.version, state.offset), known)
        self._tables[spec] = table
        return state

    def _is_newest(self, spec: Spec, state: State, known: Synced | None) -> bool:
        """Return whether a table needs no refresh, because neither the hot log nor a local log has a later version.

        The record and the hot batches that a load moves change in one transaction, and the hot rows were read before.
        """
        if spec not in self._tables or known is None or known.version > state.version:
            return False
        commits = (delta_log.commit_file(self._root / spec.name, state.version + later) for later in (0, 1))
        return self._root.uri is not None or [commit.exists() for commit in commits] == [True, False]
