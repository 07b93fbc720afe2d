"""Retries of requests to a forge and of writes to the control database, and deadlines of HTTP requests."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agent.errors import ForgeUnavailable, TurnStopped
from warehouse.database.pool import PoolError
from warehouse.database_errors import is_temporary, reason_of

PAUSES_S = (0.5, 3.0)
"""Seconds between the three attempts of a request to a forge: enough for a restart or a lost connection."""
PAUSE_S_MAX = 60.0
"""Maximum pause that a forge may ask for, in seconds. If it asks for more, the turn fails and frees its slot for other
turns."""
DATABASE_PAUSE_S = 1.0
POLL_S = 0.1
LOG = logging.getLogger("readership.agent")

Result = TypeVar("Result")


def forge_request(attempt: Callable[[], Result], is_stopped: Callable[[], bool]) -> Result:
    """Return the result of `attempt`, which is called up to three times while it raises ForgeUnavailable.

    Raises:
        ForgeUnavailable: the third attempt failed too, or the forge asked for a pause of more than PAUSE_S_MAX.
        TurnStopped: `is_stopped` returned true during a pause.
    """
    for pause_s in PAUSES_S:
        try:
            return attempt()
        except ForgeUnavailable as error:
            if error.retry_after_s > PAUSE_S_MAX:
                raise
            pause(max(pause_s, error.retry_after_s), is_stopped)
    return attempt()


def database_write(write: Callable[[], Result], is_stopped: Callable[[], bool]) -> Result:
    """Return the result of `write`, which is called until the control database is available again.

    The work of a turn would be lost if its progress were not written.

    Raises:
        TurnStopped: `is_stopped` returned true during a pause, for example because the lease has expired.
        PoolError: the error is not temporary: see `warehouse.database_errors.is_temporary`.
    """
    while True:
        try:
            return write()
        except PoolError as error:
            if not is_temporary(error):
                raise
            text = "the progress of a turn cannot be written to the control database (%s); retrying"
            LOG.warning(text, reason_of(error))
        pause(DATABASE_PAUSE_S, is_stopped)


def pause(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Wait for this number of seconds. Raises TurnStopped if `is_stopped` returned true during the wait."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if is_stopped():
            raise TurnStopped("the turn was stopped")
        time.sleep(min(POLL_S, left))


def run_with_deadline(
    limit_s: float, request: Callable[[], Coroutine[Any, Any, Result]], is_stopped: Callable[[], bool] = lambda: False
) -> Result:
    """Return the result of a whole HTTP request, or raise its error. The calling thread must have no event loop.

    A timeout of httpx would start again with each byte received.

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
