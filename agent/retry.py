"""A host or a database that does not answer is asked again, a little later and not for ever."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from agent.errors import ForgeUnavailable, TurnStopped
from warehouse.database_errors import is_temporary, reason_of

PAUSES_S = (0.5, 3.0)
"""Between the three attempts: a host that restarts, or a connection that was cut, is back by then."""
PAUSE_MAX_S = 60.0
"""A host that asks for a longer pause is not waited for: a turn holds a place that others wait for."""
NOTE_AGAIN_S = 1.0
POLL_S = 0.1
LOG = logging.getLogger("readership.agent")

Answer = TypeVar("Answer")


def forge_request(attempt: Callable[[], Answer], is_stopped: Callable[[], bool]) -> Answer:
    """What `attempt` answers, which may raise ForgeUnavailable twice.

    Raises:
        ForgeUnavailable: it did so a third time, or the host asks for a pause that is too long.
        TurnStopped: `is_stopped` said so during a pause.
    """
    for pause_s in PAUSES_S:
        try:
            return attempt()
        except ForgeUnavailable as error:
            if error.retry_after_s > PAUSE_MAX_S:
                raise
            pause(max(pause_s, error.retry_after_s), is_stopped)
    return attempt()


def database_write(note: Callable[[], Answer], is_stopped: Callable[[], bool]) -> Answer:
    """What `note` answers once the control database takes it: what a turn did would be lost with the note of it.

    Raises:
        TurnStopped: `is_stopped` said so meanwhile, as where the lease of the turn is given up.
        SQLAlchemyError: an error that is not temporary: see `warehouse.database_errors.is_temporary`.
    """
    while True:
        try:
            return note()
        except sa.exc.SQLAlchemyError as error:
            if not is_temporary(error):
                raise
            reason = reason_of(error)  # without the values that were to be noted
            LOG.warning("the control database does not take a note of a turn (%s); it is tried again", reason)
            pause(NOTE_AGAIN_S, is_stopped)


def pause(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Raises TurnStopped as soon as `is_stopped` says so."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if is_stopped():
            raise TurnStopped("the turn was stopped")
        time.sleep(min(POLL_S, left))
