"""Cache of results, limited by the memory that they use."""

import ctypes
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from cachetools import LRUCache

from warehouse.errors import SlowReport
from warehouse.query import engine

EMPTY_TABLE_BYTES = 10_000
"""Memory of a table without rows, and of its key, in bytes."""
ENTRY_BYTES = 2_000
"""Memory of any other result without the content of its arrays, and of its key, in bytes."""
SLOW_AFTER_S = 0.1
"""Interval in seconds at which a fast report that waits for a result looks whether a slow report computes it."""
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Function of glibc; None with another C library."""


class Measured(Protocol):
    """A result that knows the memory of its arrays, in bytes."""

    @property
    def nbytes(self) -> int: ...


Result = TypeVar("Result", bound=Measured)


def release_memory() -> None:
    """Return freed memory, which Arrow and glibc retain, to the operating system."""
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)


class _Turn:
    """The lock of threads that compute one key, and the caller of the thread that has the lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._caller = engine.CALLER.get()

    def wait(self) -> None:
        """Acquire the lock. Raises SlowReport, so that slow reports do not occupy the threads of fast ones."""
        caller = engine.CALLER.get()
        while not self.lock.acquire(timeout=-1 if caller.accepts_slow else SLOW_AFTER_S):
            if self._caller.is_slow:
                raise SlowReport
        self._caller = caller


class ResultCache:
    """Thread-safe LRU cache of Arrow tables and other results. A result larger than the cache is not stored."""

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._results: LRUCache[Hashable, Measured] = LRUCache(max_bytes, _size_bytes)
        self._computing: dict[Hashable, _Turn] = {}

    def __call__(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return the result of a key, which is computed if it is not in the cache.

        Other threads that ask for the same key wait for the result.

        Raises:
            SlowReport: the report is slow, and the caller accepts only a fast one.
        """
        result: Result | None = self.get(key)
        if result is not None:
            return result
        with self._turn(key):
            result = self.get(key)
            if result is None:
                result = compute()
                self.put(key, result)
            return result

    def get(self, key: Hashable) -> Any:
        """Return the result of a key if it is in the cache."""
        with self._lock:
            return self._results.get(key)

    def put(self, key: Hashable, result: Measured) -> None:
        """Add a result, or replace that of the key."""
        with self._lock:
            if _size_bytes(result) <= self._results.maxsize:
                self._results[key] = result
            else:
                self._results.pop(key, None)

    @contextmanager
    def _turn(self, key: Hashable) -> Iterator[None]:
        """Run the block while other threads that compute the same key wait."""
        with self._lock:
            turn = self._computing.setdefault(key, _Turn())
        turn.wait()
        try:
            yield
        finally:
            turn.lock.release()
            with self._lock:
                self._computing.pop(key, None)


def _size_bytes(result: Measured) -> int:
    """Return the memory that a result references, in bytes, including the unused parts of the buffers of a table."""
    if isinstance(result, pa.Table):
        return EMPTY_TABLE_BYTES + int(result.get_total_buffer_size())
    return ENTRY_BYTES + result.nbytes
