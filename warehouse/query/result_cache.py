"""Cache of results, limited by the memory that they use."""

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from cachetools import Cache

from warehouse.errors import SlowReport
from warehouse.query import engine

EMPTY_TABLE_BYTES = 10_000
"""Memory of a table without rows, and of its key, in bytes."""
ENTRY_BYTES = 2_000
"""Memory of any other result without the content of its arrays, and of its key, in bytes."""
FIRST_SHARE = 0.25
"""Share of the cache, from 0 to 1, up to which the results stored with `evict_first` displace others."""

LARGE_BYTES = 8 * 1024 * 1024
"""Size of a result above which freed memory is returned to the operating system, in bytes."""
SLOW_AFTER_S = 0.1
"""Interval in seconds at which a fast report that waits for a result looks whether a slow report computes it."""
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


class _Turn:
    """The lock of threads that compute one key, and the caller of the thread that has the lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._caller: engine.Caller | None = None

    def wait(self) -> None:
        """Acquire the lock. Raises SlowReport, so that slow reports do not occupy the threads of fast ones."""
        caller = engine.CALLER.get()
        is_fast = caller is not None and not caller.accepts_slow
        while not self.lock.acquire(timeout=SLOW_AFTER_S if is_fast else -1):
            if self._caller is not None and self._caller.is_slow:
                raise SlowReport
        self._caller = caller


class ResultCache:
    """A cache of Arrow tables and other results. Safe to call from several threads.

    The least recently used results are evicted. While those that were stored with `evict_first` use more than
    FIRST_SHARE of the cache, one of them is evicted, otherwise one of the others. Without this share, the results of
    ever new time ranges would displace the months from which every time range is counted.

    A result that is larger than the whole cache is not stored, unless it is costly: the last one of these is stored
    beside the others, and the memory used is that much more.

    The `owner` of a result is the key of another one to which the result or its key has a reference. The result is in
    the cache only as long as its owner: otherwise it would keep the memory of an evicted owner in use.
    """

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._results = _OwnedResults(max_bytes, _size_bytes)
        self._computing: dict[Hashable, _Turn] = {}

    def __call__(
        self,
        key: Hashable,
        compute: Callable[[], Result],
        owner: Hashable = None,
        *,
        is_costly: bool = False,
        evict_first: bool = False,
    ) -> Result:
        """Return the result of a key, which is computed if it is not in the cache.

        Other threads that ask for the same key wait for the result.
        """
        result: Result | None = self.get(key)
        if result is not None:
            return result
        with self.computing(key):
            result = self.get(key)
            if result is None:
                result = compute()
                self.put(key, result, owner, is_costly=is_costly, evict_first=evict_first)
            return result

    @contextmanager
    def computing(self, key: Hashable) -> Iterator[None]:
        """Run the block while other threads that compute the same key wait. They then look into the cache again.

        Raises:
            SlowReport: the report is slow, and the caller accepts only a fast one.
        """
        with self._lock:
            turn = self._computing.setdefault(key, _Turn())
        turn.wait()
        try:
            yield
        finally:
            turn.lock.release()
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

    def put(
        self,
        key: Hashable,
        result: Measured,
        owner: Hashable = None,
        *,
        is_costly: bool = False,
        evict_first: bool = False,
    ) -> None:
        """Add a result, or replace that of the key. A result that has grown is measured again by another `put`."""
        with self._lock:
            if self._results.getsizeof(result) > self._results.maxsize:
                if is_costly or key in self._results.large:
                    self._results.set_large(key, result)
                else:
                    self._results.pop(key, None)
            else:
                self._results.large.pop(key, None)
                self._results.add(key, result, evict_first)
                if owner is not None:
                    self._results.set_owner(key, owner)


class _OwnedResults(Cache[Hashable, Measured]):
    """Results by key, some of which have an owner. `large` has at most one result, which is larger than the cache."""

    def __init__(self, max_bytes: int, getsizeof: Callable[[Measured], int]) -> None:
        super().__init__(max_bytes, getsizeof)
        self._first: OrderedDict[Hashable, float] = OrderedDict()
        self._others: OrderedDict[Hashable, float] = OrderedDict()
        self._first_bytes = self._adding_first = 0.0
        self._owners: dict[Hashable, Hashable] = {}
        self._owned: dict[Hashable, set[Hashable]] = {}
        self.large: dict[Hashable, Measured] = {}

    def add(self, key: Hashable, result: Measured, evict_first: bool) -> None:
        """Add a result that is not larger than the cache, or replace that of the key."""
        size = self.getsizeof(result)
        self._adding_first = size if evict_first else 0.0
        self[key] = result
        self._forget(key)
        (self._first if evict_first else self._others)[key] = size
        self._first_bytes += self._adding_first

    def __getitem__(self, key: Hashable) -> Measured:
        result: Measured = super().__getitem__(key)
        (self._first if key in self._first else self._others).move_to_end(key)
        return result

    def popitem(self) -> tuple[Hashable, Measured]:
        """Remove the result that is evicted next, and return it. `add` calls this function until there is space."""
        is_over = self._first_bytes + self._adding_first > self.maxsize * FIRST_SHARE
        key = next(iter(self._first if self._first and (is_over or not self._others) else self._others))
        result = self[key]
        del self[key]
        return key, result

    def _forget(self, key: Hashable) -> None:
        self._first_bytes -= self._first.pop(key, 0)
        self._others.pop(key, None)

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
        self._forget(key)
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
