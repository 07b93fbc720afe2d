"""Cache of results, limited by the memory that they use."""

import ctypes
import threading
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from cachetools import LRUCache

EMPTY_TABLE_BYTES = 10_000
"""Memory of a table without rows, and of its key."""
ENTRY_BYTES = 2_000
"""Memory of another result without the bytes of its arrays, and of its key."""

LARGE_BYTES = 8 * 1024 * 1024
"""Size of a result above which freed memory is returned to the operating system, in bytes."""
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Function of glibc; None with another C library."""


class Measured(Protocol):
    """A result that knows the memory of its arrays, in bytes."""

    @property
    def nbytes(self) -> int: ...


Result = TypeVar("Result", bound=Measured)


def compute_released(compute: Callable[[], Result]) -> Result:
    """Return the result of `compute`. If it is large, release memory.

    Reading the views of 1M paths would leave several times their size.
    """
    result = compute()
    if result.nbytes > LARGE_BYTES:
        release_memory()
    return result


def release_memory() -> None:
    """Return freed memory, which Arrow and glibc retain, to the operating system."""
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)


class ResultCache:
    """A cache of Arrow tables and other results. Safe to call from several threads.

    The least recently used results are evicted first. A result that is larger than the whole cache is not stored,
    unless it is costly: the last one of these is stored beside the others, and the memory used is that much more.

    The `owner` of a result is the key of another one to which the result or its key has a reference. The result is in
    the cache only as long as its owner: otherwise it would keep the memory of an evicted owner in use.
    """

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._results = _OwnedResults(max_bytes, _size_bytes)
        self._computing: dict[Hashable, threading.Lock] = {}

    def __call__(
        self, key: Hashable, compute: Callable[[], Result], owner: Hashable = None, *, is_costly: bool = False
    ) -> Result:
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
                    self.put(key, result, owner, is_costly=is_costly)
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
            results = self._results.large if key in self._results.large else self._results
            return results.get(key)

    def put(self, key: Hashable, result: Measured, owner: Hashable = None, *, is_costly: bool = False) -> None:
        """Add a result, or replace that of the key. A result that has grown is measured again by another `put`."""
        with self._lock:
            if self._results.getsizeof(result) > self._results.maxsize:
                if is_costly or key in self._results.large:
                    self._results.set_large(key, result)
                else:
                    self._results.pop(key, None)
            else:
                self._results.large.pop(key, None)
                self._results[key] = result
                if owner is not None:
                    self._results.set_owner(key, owner)


class _OwnedResults(LRUCache[Hashable, Measured]):
    """Results by key, some of which have an owner. `large` has at most one result, which is larger than the cache."""

    def __init__(self, max_bytes: int, getsizeof: Callable[[Measured], int]) -> None:
        super().__init__(max_bytes, getsizeof)
        self._owners: dict[Hashable, Hashable] = {}
        self._owned: dict[Hashable, set[Hashable]] = {}
        self.large: dict[Hashable, Measured] = {}

    def set_large(self, key: Hashable, result: Measured) -> None:
        """Replace the large result. Remove the results of the one before it."""
        self.pop(key, None)
        for other in self.large.keys() - {key}:
            self._remove_owned(other)
        self.large = {key: result}

    def set_owner(self, key: Hashable, owner: Hashable) -> None:
        """Remove the result with its owner. Remove it now if the owner was evicted."""
        if owner not in self and owner not in self.large:
            del self[key]
        else:
            self._owners[key] = owner
            self._owned.setdefault(owner, set()).add(key)

    def __delitem__(self, key: Hashable) -> None:
        super().__delitem__(key)
        self._owned.get(self._owners.pop(key, None), set()).discard(key)
        self._remove_owned(key)

    def _remove_owned(self, owner: Hashable) -> None:
        for each in self._owned.pop(owner, ()):
            del self[each]


def _size_bytes(result: Measured) -> int:
    """Return the memory that a result references, in bytes, including the unused parts of the buffers of a table."""
    if isinstance(result, pa.Table):
        return EMPTY_TABLE_BYTES + int(result.get_total_buffer_size())
    return ENTRY_BYTES + result.nbytes
