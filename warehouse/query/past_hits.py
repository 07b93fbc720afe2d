"""Older versions of `hits` and the hot rows that they lacked, for the moments of reports.

Loaded batches stay in the hot log for `retention.AS_OF_S`. The rows of a moment are read completely or not at all.
"""

import copy
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from warehouse.errors import BatchDamaged, MomentExpired
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotLogPlace
from warehouse.lake import delta_table, roots
from warehouse.lake.delta_table import HITS_TABLE, File, State
from warehouse.lake.roots import Root
from warehouse.query.hot_rows import HotRows
from warehouse.query.moment import Moment
from warehouse.query.result_cache import ResultCache

PAST_SHARE = 0.25
"""Size of the cache of older versions, as a share of the size of the cache of results, which is beside it. In the cache
of results, the versions of a service that is loaded every few seconds took all space that was free."""
FILE_BYTES = 350
"""Memory of an item in the list of files of a version, in bytes."""


@dataclass(frozen=True, slots=True)
class PastHits:
    """A version of `hits`, and hot rows that it lacked."""

    state: State
    hot_rows: HotRows

    def has(self, last_id: int) -> bool:
        """Return whether every batch up to `last_id` is in the version or in the hot rows."""
        return self.hot_rows.complete_above <= self.state.offset and self.hot_rows.last_id >= last_id

    @property
    def nbytes(self) -> int:
        return self.hot_rows.nbytes + FILE_BYTES * len(self.state.files)


class PastReader:
    """Reader of older versions, with their cache. All threads of a process may share it; they read one at a time."""

    def __init__(self, hot: HotLogPlace, root: Root, columns: Sequence[str]) -> None:
        self._root, self._columns = root, columns
        self._hot = batches.connect(hot)  # its own connection: a long read must not delay the newest snapshot
        self._node = batches.node_id(self._hot)
        self._reading = threading.Lock()
        self.cached = ResultCache(0)

    def remember(self, generation: int, past: PastHits) -> None:
        """Cache a version and its hot rows, so that a load does not make readers of its moments wait.

        Reading a batch from the hot log again takes about 30 µs.
        """
        if past.has(past.state.offset):
            self.cached.put(_key(generation, past.state.version), past, evict_first=True)

    def read(self, moment: Moment) -> PastHits:
        """Return the version of a moment, and its hot rows up to the moment or later.

        Raises:
            MomentExpired: the version or a batch can no longer be read.
        """
        with self._reading:
            known: PastHits | None = self.cached.get(_key(moment.generation, moment.version))
            past = self._with_batches(known or self._open(moment), moment)
            if not past.has(moment.last_id):
                raise _gone(moment)
            self.remember(moment.generation, past)
            return past

    def close(self) -> None:
        self._hot.close()

    def _open(self, moment: Moment) -> PastHits:
        try:
            table = delta_table.open_version(self._root, HITS_TABLE, moment.version)
        except DeltaError:
            raise _gone(moment) from None
        state = delta_table.state(table, HITS_TABLE, self._node)
        return PastHits(state, HotRows(self._columns, state.offset))

    def _with_batches(self, past: PastHits, moment: Moment) -> PastHits:
        """Add the batches up to the moment, as far as the hot log has them."""
        if past.hot_rows.last_id >= moment.last_id:
            return past
        hot_rows = copy.copy(past.hot_rows)
        try:
            hot_rows.read_through(self._hot, moment.last_id)
        except BatchDamaged:  # the batch is in the lake, and only moments before its load need it
            raise _gone(moment) from None
        return PastHits(past.state, hot_rows)


def require_files(moment: Moment, files: Sequence[File], newest: Sequence[File]) -> None:
    """Raise MomentExpired if a file of a moment is missing. Files of the newest version exist and are not looked up."""
    present = {file.path for file in newest}
    if not all(file.path in present or roots.exists(file.path) for file in files):
        raise _gone(moment)


def _gone(moment: Moment) -> MomentExpired:
    return MomentExpired(f"rows of the moment {moment} were removed")


def _key(generation: int, version: int) -> Hashable:
    return "past hits", generation, version
