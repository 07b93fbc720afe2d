"""Ids of the paths of a project."""

import threading
from bisect import bisect_left
from collections.abc import Sequence
from operator import methodcaller

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.cumulative import Array
from warehouse.schema import PathBounds

LATER_PATH_BYTES = 300
"""Estimated memory of a path that was added later: a Python text, and its entries in a dictionary and two lists."""
SEARCH_PATHS = 500
"""Number of sorted paths that a hash look-up reads in the time of one binary search, 20 µs."""


class PathIds:
    """Ids of paths. The id of a path is its index among the sorted paths; paths that are added later have higher ids.

    An id never changes. Safe to call from several threads.
    """

    def __init__(self, paths: pa.Array) -> None:
        """Create ids for distinct paths that are sorted by bytes. They stay in Arrow's memory."""
        self._sorted = paths
        self._lock = threading.Lock()
        self._later: list[str] = []
        self._places: list[int] = []
        self._ids: dict[str, int] = {}
        self._later_order = np.zeros(0, np.int64)

    @property
    def sorted_count(self) -> int:
        return len(self._sorted)

    @property
    def later_count(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        return int(self._sorted.nbytes) + self.later_count * LATER_PATH_BYTES

    def sorted_between(self, bounds: PathBounds | None) -> slice:
        """Return the ids of the sorted paths within bounds."""
        if bounds is None:
            return slice(0, self.sorted_count)
        first, after = bounds
        start = self._place(first)
        return slice(start, self.sorted_count if after is None else max(start, self._place(after)))

    def is_later_between(self, bounds: PathBounds | None) -> Array:
        """Return, for each path that was added later, whether it is within bounds."""
        count = self.later_count
        if bounds is None:
            return np.ones(count, bool)
        first, after = bounds
        return np.array([first <= path and (after is None or path < after) for path in self._later[:count]], bool)

    def add(self, paths: pa.Array) -> Array:
        """Return the ids of distinct paths. Those that are unknown are added."""
        ids = self.find(paths)
        unknown = np.flatnonzero(ids < 0)
        if unknown.size:
            with self._lock:
                ids[unknown] = [self._add(path) for path in paths.take(pa.array(unknown)).to_pylist()]
        return ids

    def find(self, paths: pa.Array) -> Array:
        """Return the ids of paths that are among the sorted ones, and -1 for the others."""
        if len(paths) * SEARCH_PATHS < self.sorted_count:
            return np.array([self._search(path) for path in paths.to_pylist()], np.int64)
        ids = np.full(len(paths), -1, np.int64)
        positions = pc.index_in(self._sorted, value_set=paths)  # a hash table of the fewer paths: 10 times faster
        is_present = positions.is_valid().to_numpy(zero_copy_only=False)
        ids[positions.drop_null().to_numpy()] = np.flatnonzero(is_present)
        return ids

    def take(self, ids: Array) -> pa.Array:
        """Return the paths of ids."""
        is_later = ids >= self.sorted_count
        if not is_later.any():
            return self._sorted.take(pa.array(ids))
        later = [self._later[id] for id in (ids[is_later] - self.sorted_count).tolist()]
        known = self._sorted.take(pa.array(ids[~is_later]))
        places = np.where(is_later, len(known) + np.cumsum(is_later) - 1, np.cumsum(~is_later) - 1)
        return pa.concat_arrays([known, pa.array(later, known.type)]).take(pa.array(places))

    def positions(self, ids: Array) -> Array:
        """Return the indices that ids have among all paths, sorted by bytes."""
        with self._lock:
            if self._later_order.size < self.later_count:
                self._later_order = np.array(sorted(range(self.later_count), key=self._later.__getitem__), np.int64)
            order, places = self._later_order, np.array(self._places, np.int64)
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size)
        is_later = ids >= self.sorted_count
        positions = ids + np.searchsorted(places[order], ids, "right")
        later = ids[is_later] - self.sorted_count
        positions[is_later] = places[later] + rank[later]
        return positions

    def _search(self, path: str) -> int:
        place = self._place(path)
        return place if place < self.sorted_count and self._sorted[place].as_py() == path else -1

    def _place(self, path: str) -> int:
        """Return the number of sorted paths before a path."""
        # Texts of Python compare by code points, which is the order of the bytes in UTF-8.
        return bisect_left(self._sorted, path, key=methodcaller("as_py"))

    def _add(self, path: str) -> int:
        """Return the id of a path that is not among the sorted ones."""
        id = self._ids.get(path)
        if id is None:
            id = self._ids[path] = self.sorted_count + len(self._later)
            self._later.append(path)
            self._places.append(self._place(path))  # last, because readers count the places
        return id


def encode(columns: Sequence[pa.Array]) -> tuple[pa.Array, list[Array]]:
    """Return the distinct paths of all columns, those of the first one first, and their indices in the others."""
    encoded = pa.chunked_array(columns, pa.string()).dictionary_encode()
    if len(encoded) == 0:
        return columns[0], [np.zeros(0, np.int32)] * (len(columns) - 1)
    indices = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    _, *ids = np.split(indices, np.cumsum([len(column) for column in columns[:-1]]))
    return encoded.chunk(encoded.num_chunks - 1).dictionary, ids


def pack(ids: Array, count: int) -> Array:
    """Return `count` bits, of which those of the ids are 1."""
    is_member = np.zeros(count, bool)
    is_member[ids] = True
    return np.packbits(is_member)


def pack_in_order(bits: Array, order: Array) -> Array:
    """Return bits in another order. The bits after the last one are 0."""
    is_member = np.zeros(order.size, bool)
    known = np.unpackbits(bits)[: order.size]
    is_member[: known.size] = known
    return np.packbits(is_member[order])
