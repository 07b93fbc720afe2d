"""Heartbeat: a thread that renews the lease of a running turn and writes the turn's output to the log of its job."""

import logging
import threading
import time
from collections.abc import Callable

from agent.errors import LeaseLost
from agent.jobs import queue
from agent.jobs.journal import Tail
from agent.jobs.queue import Lease
from warehouse.database.pool import Pool, PoolError
from warehouse.database_errors import is_temporary, reason_of

HEARTBEATS = 5
"""Heartbeats within the duration of a lease."""
HEARTBEAT_S_MAX = 1.0
"""Longest time between two heartbeats, in seconds. A cancelled turn notices its cancellation at the next heartbeat."""
ABANDON_AFTER = 0.8
"""Share of a lease after which a turn is stopped if its lease could not be renewed. The rest of the lease is for the
turn's programs to end before another worker may claim the turn: 3 of 15 seconds. After SIGTERM they have
`process.TERMINATE_S` seconds until they are killed."""
LOG = logging.getLogger("readership.agent")


class LeaseHeartbeat:
    """Thread that renews a lease until the turn ends, the lease is lost, or the turn is abandoned.

    A turn is abandoned when ABANDON_AFTER of its lease has passed since the last successful renewal was requested. The
    time is measured on this process's monotonic clock: a database that does not answer cannot report an expired lease.

    `requested_s` is the monotonic time at which the lease was requested. `stopping` is set when the worker ends.
    """

    def __init__(
        self,
        control: Pool,
        lease: Lease,
        lease_s: float,
        requested_s: float,
        stopping: threading.Event,
        now_us: Callable[[], int],
    ) -> None:
        self._control, self._lease, self._lease_s = control, lease, lease_s
        self._stopping, self._now_us = stopping, now_us
        self._closed = threading.Event()
        self._abandon_at_s = requested_s + ABANDON_AFTER * lease_s
        self._is_abandoned = False
        self.is_lost = False
        self.tail = Tail()
        self._thread = threading.Thread(target=self._run, name="heartbeat")
        self._thread.start()

    def is_stopped(self) -> bool:
        """Return whether the turn must stop. Once true, the result stays true: the turn's programs have been ended."""
        if not self._is_abandoned and time.monotonic() >= self._abandon_at_s:
            self._is_abandoned = True
            LOG.warning("the lease of turn %s could not be renewed: the turn is stopped", self._lease.turn)
        return self.is_lost or self._is_abandoned or self._stopping.is_set()

    def close(self) -> None:
        """Write the rest of the output and end the thread."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        interval_s = min(HEARTBEAT_S_MAX, self._lease_s / HEARTBEATS)
        is_last = False
        while not (is_last or self._is_abandoned or self.is_lost):
            is_last = self._closed.wait(interval_s)
            self._beat(is_last=is_last)

    def _beat(self, *, is_last: bool) -> None:
        """Renew the lease once, together with the output that the log lacks."""
        requested_s = time.monotonic()
        output = self.tail.unwritten(requested_s, is_last=is_last)
        try:
            queue.renew(self._control, self._lease, self._now_us(), int(self._lease_s * 1_000_000), output)
        except LeaseLost:
            self.is_lost = True
        except PoolError as error:
            traceback = None if is_temporary(error) else error
            text = "the lease of turn %s cannot be renewed (%s); retrying"
            LOG.warning(text, self._lease.turn, reason_of(error), exc_info=traceback)
        else:
            self._abandon_at_s = requested_s + ABANDON_AFTER * self._lease_s
            if output is not None:
                self.tail.set_written(output, requested_s)
