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
    """

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._results: LRUCache[Hashable, Measured] = LRUCache(max_bytes, _size_bytes)
        self._computing: dict[Hashable, threading.Lock] = {}

    def __call__(self, key: Hashable, compute: Callable[[], Result]) -> Result:
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
                    self.put(key, result)
                return result
        finally:
            with self._lock:
                self._computing.pop(key, None)

    def get(self, key: Hashable) -> Any:
        """Return the result of a key if it is in the cache."""
        with self._lock:
            return self._results.get(key)

    def put(self, key: Hashable, result: Measured) -> None:
        """Add a result, or replace that of the key."""
        with self._lock:
            if self._results.getsizeof(result) <= self._results.maxsize:
                self._results[key] = result


def _size_bytes(result: Measured) -> int:
    """Return the memory that a result references, in bytes, including the unused parts of the buffers of a table."""
    if isinstance(result, pa.Table):
        return EMPTY_TABLE_BYTES + int(result.get_total_buffer_size())
    return ENTRY_BYTES + result.nbytes
