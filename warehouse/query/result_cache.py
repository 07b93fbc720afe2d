"""Cache of Arrow tables, limited by the memory that they use."""

import threading
from collections.abc import Callable, Hashable

import pyarrow as pa
from cachetools import LRUCache, cached

EMPTY_TABLE_BYTES = 10_000
"""Memory of a table without rows, and of its key."""

GetTable = Callable[[Hashable, Callable[[], pa.Table]], pa.Table]


def table_cache(max_bytes: int) -> GetTable:
    """Return a function that returns the table of a key, and computes it if it is not in a cache of `max_bytes`.

    The least recently used tables are evicted first; a table that is larger than the whole cache is not stored. Safe to
    call from several threads; two of them may compute the same key.
    """

    @cached(LRUCache(max_bytes, _size_bytes), key=lambda key, compute: key, lock=threading.Lock())
    def table(key: Hashable, compute: Callable[[], pa.Table]) -> pa.Table:
        return compute()

    return table


def _size_bytes(table: pa.Table) -> int:
    """Return the memory that a table references, in bytes, including the unused parts of its buffers."""
    return EMPTY_TABLE_BYTES + int(table.get_total_buffer_size())
