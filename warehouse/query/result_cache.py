"""Cache of results, limited by the memory that they use."""

import threading
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from cachetools import LRUCache

EMPTY_TABLE_BYTES = 10_000
"""Memory of a table without rows, and of its key."""
ENTRY_BYTES = 2_000
"""Memory of another result without the bytes of its arrays, and of its key."""


class Measured(Protocol):
    """A result that knows the memory of its arrays, in bytes."""

    @property
    def nbytes(self) -> int: ...


Result = TypeVar("Result", bound=Measured)


class ResultCache:
    """A cache of Arrow tables and other results. Safe to call from several threads.

    The least recently used results are evicted first. A result that is larger than the whole cache is not stored.

    The `owner` of a result is the key of another one to which the result or its key has a reference. The result is in
    the cache only as long as its owner: otherwise it would keep the memory of an evicted owner in use.
    """

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._results = _OwnedResults(max_bytes, _size_bytes)
        self._computing: dict[Hashable, threading.Lock] = {}

    def __call__(self, key: Hashable, compute: Callable[[], Result], owner: Hashable = None) -> Result:
        """Return the result of a key, which is computed if it is not in the cache.

        Other threads that ask for the same key wait for the result.
        """
        result: Result | None = self.get(key)
        if result is not None:
            return result
        with self._lock:
            lock = self._computing.setdefault(key, threading.Lock())
        try:
            with lock:
                result = self.get(key)
                if result is None:
                    result = compute()
                    self.put(key, result, owner)
                return result
        finally:
            with self._lock:
                self._computing.pop(key, None)

    @property
    def used_share(self) -> float:
        """Return the share of the cache's size that is in use, from 0 to 1. A cache of no size is full."""
        with self._lock:
            return self._results.currsize / self._results.maxsize if self._results.maxsize else 1

    def get(self, key: Hashable) -> Any:
        """Return the result of a key if it is in the cache."""
        with self._lock:
            return self._results.get(key)

    def put(self, key: Hashable, result: Measured, owner: Hashable = None) -> None:
        """Add a result, or replace that of the key. A result that has grown is measured again by another `put`."""
        with self._lock:
            if self._results.getsizeof(result) > self._results.maxsize:
                self._results.pop(key, None)
            else:
                self._results[key] = result
                if owner is not None:
                    self._results.set_owner(key, owner)


class _OwnedResults(LRUCache[Hashable, Measured]):
    """Results by key, some of which have an owner."""

    def __init__(self, max_bytes: int, getsizeof: Callable[[Measured], int]) -> None:
        super().__init__(max_bytes, getsizeof)
        self._owners: dict[Hashable, Hashable] = {}
        self._owned: dict[Hashable, set[Hashable]] = {}

    def set_owner(self, key: Hashable, owner: Hashable) -> None:
        """Remove the result with its owner. Remove it now if the owner was evicted."""
        if owner not in self:
            del self[key]
        else:
            self._owners[key] = owner
            self._owned.setdefault(owner, set()).add(key)

    def __delitem__(self, key: Hashable) -> None:
        super().__delitem__(key)
        self._owned.get(self._owners.pop(key, None), set()).discard(key)
        for each in self._owned.pop(key, ()):
            del self[each]


def _size_bytes(result: Measured) -> int:
    """Return the memory that a result references, in bytes, including the unused parts of the buffers of a table."""
    if isinstance(result, pa.Table):
        return EMPTY_TABLE_BYTES + int(result.get_total_buffer_size())
    return ENTRY_BYTES + result.nbytes
