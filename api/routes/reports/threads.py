"""Threads of reports: a few at once, so that posts beside them have the processor, and look-ups have other threads."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread

from ingest.errors import RETRY_AFTER_S, Overloaded

REPORTS, SHARED = CapacityLimiter(2), CapacityLimiter(1)
"""Limits on the number of reports that a process computes at once: for keys and sessions, and for share links, whose
holders thus cannot delay the others. More at once would not be faster: they compute in Python, or use all cores."""
WAITING_MAX = 200
"""Maximum number of reports that wait for one of the limits."""

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


async def run(limit: CapacityLimiter, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Return the result of a function that computes a report in a thread.

    Raises:
        Overloaded: too many reports wait.
    """
    if limit.statistics().tasks_waiting >= WAITING_MAX:
        raise Overloaded(f"{WAITING_MAX} reports wait already", RETRY_AFTER_S)
    return await to_thread.run_sync(function, *arguments, limiter=limit)


async def streamed(limit: CapacityLimiter, chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a report. While the client reads a chunk, others use the thread."""
    while (chunk := await to_thread.run_sync(next, chunks, None, limiter=limit)) is not None:
        yield chunk
