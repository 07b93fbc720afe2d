"""Threads of reports: a few at once and of low priority, so that posts beside them have the processor."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from typing import TypeVar, TypeVarTuple
from weakref import WeakSet

from anyio import CancelScope, CapacityLimiter
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from api.reports.formats import Chunks
from ingest.errors import RETRY_AFTER_S, Overloaded
from warehouse.errors import SlowReport
from warehouse.query.engine import CALLER, Caller

REPORTS, SHARED = CapacityLimiter(2), CapacityLimiter(1)
"""Limits on the number of reports that a process computes at once: for keys and sessions, and for share links, whose
holders thus cannot delay the others. More at once would not be faster: they compute in Python, or use all cores."""
SLOW = {REPORTS: CapacityLimiter(1), SHARED: CapacityLimiter(1)}
"""Limits on the number of slow reports, instead of the others: fast ones of other projects do not wait for them."""
SHARED_OPEN_MAX = 4
"""Maximum number of slow exports that holders of share links read at once. Each takes disk space until it is read: see
`statements.SPILL_LIMIT`, which is for all reports."""
WAITING_MAX = 200
"""Maximum number of reports that wait for one of the limits."""
INTERRUPT_EVERY_S = 0.1
NICE = 5
"""Number by which the priority is lower. Posts beside 100 reports take 2.5 times as long as alone (p99) with 0, 2.0
times with 5, and 1.7 times with 10. With 10, other programs on the machine delay a report that has the GIL, and with it
the posts that wait for the GIL."""

_shared_open = WeakSet[Chunks]()
_IS_SHARED = ContextVar("IS_SHARED", default=False)
"""Whether this thread computes a report of a share link."""


def _lower_priority() -> None:
    if sys.platform == "linux":  # elsewhere, all threads of a process have one priority
        # Not `os.nice`: a thread begins with the niceness of the thread that created it, which may be raised already.
        of_process = os.getpriority(os.PRIO_PROCESS, os.getpid())
        os.setpriority(os.PRIO_PROCESS, 0, min(19, of_process + NICE))


THREADS = ThreadPoolExecutor(8, "report", _lower_priority)
"""Threads of low priority, more than the limits need. The thread that opens a database gives its priority to DuckDB's
threads."""

Result = TypeVar("Result")
Other = TypeVar("Other")
Arguments = TypeVarTuple("Arguments")


async def run(
    limit: CapacityLimiter, receive: Receive, function: Callable[[*Arguments], Result], *arguments: *Arguments
) -> Result:
    """Return the result of a function that computes a report in a thread. A slow report starts again under SLOW.

    `receive` returns the messages of the client. When it leaves, the report ends.

    Raises:
        Overloaded: too many reports wait.
        ClientDisconnect
    """
    try:
        return await _run(limit, receive, function, *arguments)
    except SlowReport:
        return await _run(SLOW[limit], receive, function, *arguments)


def together(first: Callable[[], Result], second: Callable[[], Other]) -> tuple[Result, Other]:
    """Return the results of two parts of a report, of which another thread computes the second if one is free.

    On two cores, one reader of the overview of 10M hits waits 0.56 s instead of 0.67, and four at once wait as long.
    Share links use one thread.
    """
    if _IS_SHARED.get():
        return first(), second()
    other = THREADS.submit(copy_context().run, second)
    try:
        computed = first()
        return computed, second() if other.cancel() else other.result()
    finally:
        if not other.cancel():
            wait((other,))


def streamed(limit: CapacityLimiter, chunks: Chunks) -> AsyncIterator[bytes]:
    """Return the chunks of a report, which the caller computes. While the client reads one, others use the thread.

    Raises:
        Overloaded: too many slow exports of share links are open.
    """
    if not CALLER.get().accepts_slow:
        return _streamed(limit, chunks)
    if limit is SHARED:
        if len(_shared_open) >= SHARED_OPEN_MAX:
            raise Overloaded(f"{SHARED_OPEN_MAX} large exports are open through share links already", RETRY_AFTER_S)
        _shared_open.add(chunks)
    return _streamed(SLOW[limit], chunks)


async def _run(
    limit: CapacityLimiter, receive: Receive, function: Callable[[*Arguments], Result], *arguments: *Arguments
) -> Result:
    if limit.statistics().tasks_waiting >= WAITING_MAX:
        raise Overloaded(f"{WAITING_MAX} reports wait already", RETRY_AFTER_S)
    report = asyncio.ensure_future(_in_thread(limit, function, *arguments))
    left = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((report, left), return_when=asyncio.FIRST_COMPLETED)
        if not report.done():
            raise ClientDisconnect
        return report.result()
    finally:
        report.cancel()
        left.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _streamed(limit: CapacityLimiter, chunks: Chunks) -> AsyncIterator[bytes]:
    try:
        while (chunk := await _in_thread(limit, next, chunks, None)) is not None:
            yield chunk
    finally:
        chunks.close()  # the rows, which DuckDB may have spilled
        _shared_open.discard(chunks)


async def _in_thread(
    limit: CapacityLimiter, function: Callable[[*Arguments], Result], *arguments: *Arguments
) -> Result:
    """Return the result of a function. If the task is cancelled, interrupt the queries, and wait for the thread."""
    caller = Caller(limit in SLOW.values())

    def call() -> Result:
        CALLER.set(caller)  # in the context of this call alone
        _IS_SHARED.set(limit in (SHARED, SLOW[SHARED]))
        return function(*arguments)

    async with limit:
        thread = asyncio.get_running_loop().run_in_executor(THREADS, copy_context().run, call)
        try:
            await asyncio.wait((thread,))
        except asyncio.CancelledError:
            with CancelScope(shield=True):
                while not thread.done():
                    caller.leave()
                    await asyncio.wait((thread,), timeout=INTERRUPT_EVERY_S)
            thread.exception()  # else asyncio logs it, because nobody has asked for it
            raise
        return thread.result()
