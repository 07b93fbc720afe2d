"""Older versions of the tables and the hot rows that they lacked, for the moments of reports.

Loaded batches stay in the hot log for `retention.AS_OF_S`. The rows of a moment are read completely or not at all.
"""

import copy
import threading
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from warehouse.errors import BatchDamaged, MomentExpired
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotLogPlace
from warehouse.lake import delta_table, roots
from warehouse.lake.delta_table import File, State
from warehouse.lake.roots import Root
from warehouse.query.hot_rows import HotRows
from warehouse.query.moment import Moment
from warehouse.query.result_cache import ResultCache
from warehouse.tables import HITS_TABLE, Spec

PAST_SHARE = 0.25
"""Size of the cache of older versions, as a share of the size of the cache of results. They are two caches: in one, the
versions of a service that loads every few seconds took all free space."""
FILE_BYTES = 350
"""Memory of an item in the list of files of a version, in bytes."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a table, and hot rows that it lacked."""

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
        """Open the hot log. `columns` are those of the hot rows: see `HotRows`."""
        self._root, self._columns = root, columns
        self._hot = batches.connect(hot)  # its own connection: a long read must not delay the newest snapshot
        self._node = batches.node_id(self._hot)
        self._reading = threading.Lock()
        self.cached = ResultCache(0)

    def remember(self, generation: int, version: Version) -> None:
        """Cache a version of `hits` and its hot rows, so that a load does not make readers of its moments wait.

        Reading a batch from the hot log again takes about 30 µs.
        """
        if version.has(version.state.offset):
            self.cached.put((HITS_TABLE.name, generation, version.state.version), version)

    def version_of(self, spec: Spec, moment: Moment, newest: int) -> Version:
        """Return the version of a table at a moment before its version `newest`, and its hot rows up to the moment.

        A moment names its version of `hits`. Of another table it is the last version without a later batch.

        Raises:
            MomentExpired: the version or a batch can no longer be read.
        """
        number = moment.version if spec is HITS_TABLE else moment.last_id
        key: Hashable = spec.name, moment.generation, number
        with self._reading:
            known: Version | None = self.cached.get(key)
            if known is None:
                number = moment.version if spec is HITS_TABLE else self._last_version(spec, moment, newest)
                known = self._open(spec, moment, number)
            version = self._with_batches(known, moment)
            if not version.has(moment.last_id):
                raise _gone(moment)
            self.cached.put(key, version)
            return version

    def close(self) -> None:
        self._hot.close()

    def _last_version(self, spec: Spec, moment: Moment, newest: int) -> int:
        """Return the last version before `newest` without a batch after a moment; -1 if each of them has one."""

        def has_later(version: int) -> bool:
            try:
                table = delta_table.open_version(self._root, spec, version)
            except DeltaError:  # its commit has left the log: the version is older
                return False
            return delta_table.offset(table, self._node) > moment.last_id

        first, step = max(0, newest - 1), 1
        while first > 0 and has_later(first):  # most moments are only a few commits old
            first, step = max(0, first - step), 2 * step
        return bisect_left(range(newest), x=True, lo=first, key=has_later) - 1

    def _open(self, spec: Spec, moment: Moment, version: int) -> Version:
        if version < 0:
            raise _gone(moment)
        try:
            table = delta_table.open_version(self._root, spec, version)
        except DeltaError:
            raise _gone(moment) from None
        state = delta_table.state(table, spec, self._node)
        return Version(state, HotRows(self._columns, state.offset))

    def _with_batches(self, version: Version, moment: Moment) -> Version:
        """Add the batches up to the moment, as far as the hot log has them."""
        if version.hot_rows.last_id >= moment.last_id:
            return version
        hot_rows = copy.copy(version.hot_rows)
        try:
            hot_rows.read_through(self._hot, moment.last_id)
        except BatchDamaged:  # the batch is in the lake, and only moments before its load need it
            raise _gone(moment) from None
        return Version(version.state, hot_rows)


def require_files(moment: Moment, files: Sequence[File], newest: Sequence[File]) -> None:
    """Raise MomentExpired if a file of a moment is missing. Files of the newest version exist and are not looked up."""
    present = {file.path for file in newest}
    if not all(file.path in present or roots.at(file.path).exists() for file in files):
        raise _gone(moment)


def _gone(moment: Moment) -> MomentExpired:
    return MomentExpired(f"rows of the moment {moment} were removed")
