"""A request to another host, with one limit for all of it: a timeout of httpx begins anew with each byte."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agent.errors import TurnStopped

POLL_S = 0.2

Answer = TypeVar("Answer")


def run_with_deadline(
    limit_s: float, ask: Callable[[], Coroutine[Any, Any, Answer]], is_stopped: Callable[[], bool] = lambda: False
) -> Answer:
    """What `ask` answers, or raises. For a thread that has no event loop.

    Not by `asyncio.run`: that waits for the thread that looks the host up, which nothing can end.

    Raises:
        TimeoutError: it does not within `limit_s`.
        TurnStopped: `is_stopped` said so meanwhile.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_watched(time.monotonic() + limit_s, ask, is_stopped))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _watched(
    until_s: float, ask: Callable[[], Coroutine[Any, Any, Answer]], is_stopped: Callable[[], bool]
) -> Answer:
    asking = asyncio.create_task(ask())
    try:
        while not asking.done():
            if is_stopped():
                raise TurnStopped("the turn was stopped")
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            await asyncio.wait({asking}, timeout=min(POLL_S, left_s))
        return asking.result()
    finally:
        asking.cancel()
        await asyncio.wait({asking})
