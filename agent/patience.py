"""A host that does not answer is asked again, a little later and not for ever."""

import time
from collections.abc import Callable
from typing import TypeVar

from agent.errors import HostUnavailable, Stopped

PAUSES_S = (0.5, 3.0)
"""Between the three attempts: a host that restarts, or a connection that was cut, is back by then."""
PAUSE_MAX_S = 60.0
"""A host that asks for a longer pause is not waited for: a turn holds a place that others wait for."""
POLL_S = 0.1

Answer = TypeVar("Answer")


def persistently(attempt: Callable[[], Answer], is_stopped: Callable[[], bool]) -> Answer:
    """What `attempt` answers, which may raise HostUnavailable twice.

    Raises:
        HostUnavailable: it did so a third time, or the host asks for a pause that is too long.
        Stopped: `is_stopped` said so during a pause.
    """
    for pause_s in PAUSES_S:
        try:
            return attempt()
        except HostUnavailable as error:
            if error.retry_after_s > PAUSE_MAX_S:
                raise
            pause(max(pause_s, error.retry_after_s), is_stopped)
    return attempt()


def pause(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Raises Stopped as soon as `is_stopped` says so."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if is_stopped():
            raise Stopped("the turn was stopped")
        time.sleep(min(POLL_S, left))
