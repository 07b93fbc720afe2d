"""HTTP requests with a deadline for the whole request: a timeout of httpx starts again with each byte received."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agent.errors import TurnStopped

POLL_S = 0.2

Result = TypeVar("Result")


def run_with_deadline(
    limit_s: float, request: Callable[[], Coroutine[Any, Any, Result]], is_stopped: Callable[[], bool] = lambda: False
) -> Result:
    """Return the result of `request`, or raise its error. The calling thread must have no event loop.

    `asyncio.run` would wait for the thread that resolves the host name, and nothing can interrupt that thread.

    Raises:
        TimeoutError: `limit_s` seconds have passed.
        TurnStopped: `is_stopped` returned true.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_run_until(time.monotonic() + limit_s, request, is_stopped))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _run_until(
    deadline: float, request: Callable[[], Coroutine[Any, Any, Result]], is_stopped: Callable[[], bool]
) -> Result:
    task = asyncio.create_task(request())
    try:
        while not task.done():
            if is_stopped():
                raise TurnStopped("the turn was stopped")
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            await asyncio.wait({task}, timeout=min(POLL_S, left_s))
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})
