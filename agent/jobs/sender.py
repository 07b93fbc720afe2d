"""The threads of one process that send webhooks, for several projects at once: a slow receiver delays its own alone."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import sqlalchemy as sa

from agent.jobs import webhook

AT_ONCE = 8


@dataclass(slots=True)
class Sender:
    """Used by one thread. `on_outcome` is told of each attempt, by the thread that made it."""

    engine: sa.Engine
    environ: Mapping[str, str] = field(repr=False)
    now_us: Callable[[], int]
    on_outcome: Callable[[webhook.Outcome], None]
    _stopping: threading.Event = field(default_factory=threading.Event)
    _sending: dict[str, Future[None]] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE, "webhooks"))

    def send_due(self) -> None:
        """Begin to send what is due, one message of a project at a time; what has no place is due at the next call.

        Raises:
            Exception: what has ended a sending since the last call. Its message is due again.
        """
        ended = [project for project, sending in self._sending.items() if sending.done()]
        results = [self._sending.pop(project) for project in ended]
        for project in webhook.due(self.engine, self.now_us()):
            if project not in self._sending and len(self._sending) < AT_ONCE:
                self._sending[project] = self._pool.submit(self._send, project)
        for each in results:
            each.result()

    def close(self) -> None:
        """What is being sent is sent to its end."""
        self._stopping.set()
        self._pool.shutdown()

    def _send(self, project: str) -> None:
        """All that is due, as long as it is taken: a receiver that is slow or away gives its place to another."""
        outcome: webhook.Outcome | None = "delivered"
        while outcome == "delivered" and not self._stopping.is_set():
            outcome = webhook.deliver(self.engine, project, self.environ, self.now_us)
            if outcome is not None:
                self.on_outcome(outcome)
