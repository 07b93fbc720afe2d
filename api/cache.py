"""The cache of what a server process has looked up lately: keys, projects, source policies and its readiness."""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from cachetools import TTLCache

TTL_S = 2.0
"""TTL of an entry, in seconds: the time for which a revoked key, a deleted project or a replaced source policy is still
used in each process."""
ENTRIES_MAX = 10_000

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """A thread-safe cache; when it is full, the least recently used entry is evicted."""

    def __init__(
        self, entries_max: int = ENTRIES_MAX, now_s: Callable[[], float] = time.monotonic, ttl_s: float = TTL_S
    ) -> None:
        self._lock = threading.Lock()
        self._entries: TTLCache[str, Value] = TTLCache(entries_max, ttl_s, now_s)
        self._look_ups: dict[str, asyncio.Task[Value]] = {}
        """Look-ups that are not complete; only the event loop uses them."""

    def get(self, name: str) -> Value | None:
        """Return a cached value, or None. Takes 1 µs; `TTLCache.get` takes 3 µs."""
        with self._lock:
            try:
                return self._entries[name]
            except KeyError:
                return None

    def put(self, name: str, value: Value) -> None:
        with self._lock:
            self._entries[name] = value

    async def look_up(self, name: str, find: Callable[[], Value]) -> Value:
        """Return the result of `find`, which runs in a thread, and cache it. Requests for one name share a look-up.

        Without this, an expiring entry causes a stampede. A request that disconnects does not cancel the look-up of the
        others. The cache is not read: the caller reads it first.
        """
        from starlette.concurrency import run_in_threadpool  # noqa: PLC0415  # 0.03 s, and commands look up nothing

        task = self._look_ups.get(name)
        if task is None:
            task = self._look_ups[name] = asyncio.ensure_future(run_in_threadpool(self._find, name, find))
            task.add_done_callback(partial(self._end_look_up, name))
        return await asyncio.shield(task)

    def _find(self, name: str, find: Callable[[], Value]) -> Value:
        value = find()
        self.put(name, value)
        return value

    def _end_look_up(self, name: str, task: asyncio.Task[Value]) -> None:
        del self._look_ups[name]
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs the error of a look-up for which no request waits any more
