"""Threads that send webhook messages for several projects at once: a slow receiver delays its own messages only."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from agent.jobs import webhook
from warehouse.database.pool import Pool

THREADS = 8
"""Maximum number of projects that messages are sent for at once."""


@dataclass(slots=True)
class Sender:
    """Thread pool with at most one thread per project. Its methods are called from one thread.

    `on_outcome` is called after each attempt, in the thread of the pool.
    """

    control: Pool
    environ: Mapping[str, str] = field(repr=False)
    now_us: Callable[[], int]
    on_outcome: Callable[[webhook.Outcome], None]
    _stopping: threading.Event = field(default_factory=threading.Event)
    _running: dict[str, Future[None]] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "webhooks"))

    def send_due(self) -> None:
        """Start to send the due messages of each project, in as many threads as are free.

        Raises:
            Exception: the error that ended a thread since the last call. Its message becomes due again.
        """
        ended = [project for project, future in self._running.items() if future.done()]
        futures = [self._running.pop(project) for project in ended]
        for project in webhook.due(self.control, self.now_us()):
            if project not in self._running and len(self._running) < THREADS:
                self._running[project] = self._pool.submit(self._send, project)
        for future in futures:
            future.result()

    def close(self) -> None:
        """Wait for the messages that are being sent, and send no others."""
        self._stopping.set()
        self._pool.shutdown()

    def _send(self, project: str) -> None:
        """Send due messages until a delivery fails, so that a slow or missing receiver does not occupy a thread."""
        outcome: webhook.Outcome | None = "delivered"
        while outcome == "delivered" and not self._stopping.is_set():
            outcome = webhook.deliver(self.control, project, self.environ, self.now_us)
            if outcome is not None:
                self.on_outcome(outcome)
