"""Snapshots of `hits` for reports: the files of one version of the table, and the hot rows that this version lacks.

A snapshot is exact because of its order, as in `warehouse.query.snapshot`: first the hot rows in one read transaction,
then the newest version of the table. Batches up to the table's offset are then left out.

The snapshot of an older moment has the same rows as the first snapshot of that moment, in any process, after any loads
and compactions: `warehouse.query.past_hits`. The snapshots of `daily_errors` are those of the same moments: the rows of
all batches up to the last one of the moment.
"""

import copy
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import pyarrow as pa

from warehouse import daily_count
from warehouse.errors import HotLogBehind
from warehouse.hotlog import batches, loads, synced
from warehouse.hotlog.connection import HotLogPlace
from warehouse.hotlog.synced import Synced
from warehouse.integrity import completeness, durability
from warehouse.lake import delta_log, delta_table
from warehouse.lake.delta_table import DAILY_ERRORS_TABLE, HITS_TABLE, State
from warehouse.lake.roots import Root
from warehouse.query.hot_rows import Choose, HotRows
from warehouse.query.moment import Moment
from warehouse.query.past_hits import PastHits, PastReader, require_files
from warehouse.query.result_cache import ResultCache

HOT_COLUMNS = (
    "project_id",
    "ts",
    "path",
    "traffic",
    "agent",
    "operator",
    "purpose",
    "rule",
    "user_agent",
    "browser",
    "os",
    "device",
    "referrer_host",
    "utm_source",
    "format",
    "status",
    "source",
    "verification",
    "verified_by",
)
"""Columns of hot rows that reports read."""


@dataclass(frozen=True, slots=True)
class HotSource:
    """A table that is read with hot rows: its definition, and the columns and rows of the hot log that belong to it."""

    spec: delta_table.Spec
    columns: tuple[str, ...]
    choose: Choose


HITS = HotSource(HITS_TABLE, HOT_COLUMNS, daily_count.page_views)
DAILY_ERRORS = HotSource(
    DAILY_ERRORS_TABLE,
    ("project_id", "ts", "path", "traffic", "agent", "rule", "status"),
    daily_count.errors,
)


@dataclass(frozen=True, slots=True)
class HitsSnapshot:
    """The files of `hits` at a moment, staged files of hot batches included, and the hot rows that are in no file.

    `hot` has HOT_COLUMNS and `batch_id`, in the order of the batches.
    """

    moment: Moment
    files: tuple[delta_table.File, ...]
    hot: pa.Table

    @property
    def files_key(self) -> Hashable:
        """Return a key that is equal for two snapshots of one reader with the same files."""
        return self.moment.version, self.moment.staged

    @property
    def rows_key(self) -> Hashable:
        """Return a key that is equal for two snapshots of one reader with the same files and hot rows."""
        return self.files_key, self.moment.last_id, self.moment.generation


class HitsReader:
    """Reader of snapshots, which reads only new hot batches, and the table's file list only after a commit.

    All threads of a process may share it.
    """

    def __init__(
        self, hot: HotLogPlace, root: Root, now: Callable[[], float] = time.time, source: HotSource = HITS
    ) -> None:
        """Open the hot log and the table. `now` returns the time in seconds since 1970.

        With another `source` than `HITS`, the snapshots are of its table: call `take` without a moment, or
        `take_through`.

        Raises:
            DataIncomplete: see `durability.require_commits`; or the hot log is missing or older than the lake.
        """
        self._lock = threading.Lock()
        self._root, self._now = root, now
        self._spec = source.spec
        self._table = delta_table.open_table(root, self._spec)
        completeness.require_identity(hot, root)
        completeness.require_newest(hot, root, [self._table])
        self._hot = batches.connect(hot)
        self._node = batches.node_id(self._hot)
        self._state: State | None = None
        self._is_broken = False  # whether the last refresh failed
        self._hot_rows = HotRows(source.columns, choose=source.choose)
        self._past = PastReader(hot, root, source.spec, source.columns, source.choose)

    def take(self, as_of: Moment | None = None) -> HitsSnapshot:
        """Return the newest snapshot, which has each hit acknowledged before the call, once; or that of `as_of`.

        Raises:
            DataIncomplete: see `durability.require_commits`; or the hot log has become older than the lake.
            MomentExpired: see `Moment.require_readable`; or rows of the moment were removed.
            InvalidMoment: see `Moment.require_readable` and `Moment.require_batches`.
        """
        with self._lock:
            newest, state = self._read()
            if as_of is not None:
                as_of.require_readable(newest, loads.first_version(self._hot))
            if as_of is None or as_of.version == newest.version:
                return self._snapshot(as_of or newest, PastHits(state, self._hot_rows))
        snapshot = self._snapshot(as_of, self._past.read(as_of))
        require_files(as_of, snapshot.files, state.files)
        return snapshot

    def take_through(self, moment: Moment) -> HitsSnapshot:
        """Return the rows of the batches up to the last one of a moment that `take` of the reader of `hits` returned.

        These rows are in any version of the table that has no later batch, and in the batches that it lacks.

        Raises:
            DataIncomplete: see `take`.
            MomentExpired: rows of the moment were removed.
        """
        with self._lock:
            _, state = self._read()
            if state.offset <= moment.last_id:
                return self._snapshot(moment, PastHits(state, self._hot_rows))
        snapshot = self._snapshot(moment, self._past.read_through(state.version, moment))
        require_files(moment, snapshot.files, state.files)
        return snapshot

    def cache_in(self, cached: ResultCache) -> None:
        """Cache older versions of the table, which are read for moments, in `cached`. By default none is cached."""
        self._past.cached = cached

    def close(self) -> None:
        self._past.close()
        self._hot.close()

    def _read(self) -> tuple[Moment, State]:
        """Return the newest moment and the table at its version. `_hot_rows` then has the rows that the table lacks."""
        taken_us = int(self._now() * 1_000_000)  # all that follows is read after this time
        generation = loads.generation(self._hot)
        known = synced.recorded(self._hot).get(self._spec.name)  # before the table: its version only rises
        before, hot_rows_before = self._state, copy.copy(self._hot_rows)
        self._hot_rows.read_waiting(self._hot)
        state = self._refresh(known)
        self._require_newest(state.offset)
        if before is not None and before.version != state.version:
            self._past.remember(generation, PastHits(before, hot_rows_before))
        self._hot_rows.drop_through(state.offset)
        return Moment(state.version, self._hot_rows.last_id, 0, taken_us, generation), state

    def _snapshot(self, moment: Moment, hits: PastHits) -> HitsSnapshot:
        offset, folder = hits.state.offset, delta_log.folder(self._table)
        moment.require_batches(offset)
        files, staged = hits.hot_rows.staged_files(self._spec, folder, offset, moment.last_id)
        return HitsSnapshot(
            replace(moment, staged=staged),
            (*hits.state.files, *files),
            hits.hot_rows.rows(offset, moment.last_id),
        )

    def _refresh(self, known: Synced | None) -> State:
        if self._state is not None and self._is_newest(self._state):
            return self._state
        if self._is_broken:  # delta-rs reads a broken commit as one without changes, and never reads it again
            self._table = delta_table.open_table(self._root, self._spec)
        self._is_broken = True
        delta_table.refresh(self._table)
        if self._state is None or self._state.version != self._table.version():
            durability.require_commits(self._hot, self._root)
            self._state = delta_table.state(self._table, self._spec, self._node)
        actual = Synced(self._state.version, self._state.offset)
        durability.require_synced(self._root / self._spec.name, actual, known)
        self._is_broken = False
        return self._state

    def _is_newest(self, state: State) -> bool:
        """Return whether a table in an object store needs no request: the hot log records no load after its version.

        The record and the hot batches that a load moves change in one transaction, and the hot rows were read before.
        """
        if self._root.uri is None or self._is_broken:
            return False
        recorded = synced.recorded(self._hot).get(self._spec.name)
        return recorded is not None and recorded.version <= state.version

    def _require_newest(self, offset: int) -> None:
        if offset > self._hot_rows.last_id and offset > (last_id := batches.last_id(self._hot)):
            raise HotLogBehind(completeness.older_message(offset, last_id))
