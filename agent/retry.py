"""Retries of requests to a forge and of writes to the control database."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_fixed

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
    retrying = Retrying(
        retry=retry_if_exception(
            lambda error: isinstance(error, ForgeUnavailable) and error.retry_after_s <= PAUSE_S_MAX
        ),
        stop=stop_after_attempt(len(PAUSES_S) + 1),
        wait=_forge_pause_s,
        sleep=partial(pause, is_stopped=is_stopped),
        reraise=True,
    )
    return retrying(attempt)


def _forge_pause_s(state: RetryCallState) -> float:
    """Return the pause before the next attempt, in seconds: at least as long as the forge asked for."""
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, ForgeUnavailable)
    return max(PAUSES_S[min(state.attempt_number, len(PAUSES_S)) - 1], error.retry_after_s)


def database_write(write: Callable[[], Result], is_stopped: Callable[[], bool]) -> Result:
    """Return the result of `write`, which is called until the control database is available again.

    The work of a turn would be lost if its progress were not written.

    Raises:
        TurnStopped: `is_stopped` returned true during a pause, for example because the lease has expired.
        PoolError: the error is not temporary: see `warehouse.database_errors.is_temporary`.
    """
    retrying = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, PoolError) and is_temporary(error)),
        wait=wait_fixed(DATABASE_PAUSE_S),
        sleep=partial(pause, is_stopped=is_stopped),
        before_sleep=_warn,
        reraise=True,
    )
    return retrying(write)


def _warn(state: RetryCallState) -> None:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, PoolError)
    reason = reason_of(error)
    LOG.warning("the progress of a turn cannot be written to the control database (%s); retrying", reason)


def pause(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Wait for this number of seconds. Raises TurnStopped if `is_stopped` returned true during the wait."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if is_stopped():
            raise TurnStopped("the turn was stopped")
        time.sleep(min(POLL_S, left))
