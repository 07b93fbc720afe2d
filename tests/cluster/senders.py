"""Clients that post hits, and repeat those with an unknown outcome."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.cluster.expected import Expected
from tests.cluster.processes import Node

AGENT = "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"
TIMEOUT_S = 15
"""Timeout of a post, in seconds. A paused node answers no sooner than it continues."""
PAUSE_S = 0.05
"""Pause of a client between two posts, in seconds."""
BATCH_HITS, LARGE_HITS, EVENTS = 200, 5_000, 20
"""Number of hits of a batch, of a large batch, and of a batch with event ids."""
LARGE_SHARE, REPEATED_SHARE = 0.03, 0.3
"""Share of batches that are large, and share of acknowledged posts that are sent again."""


@dataclass
class Senders:
    """Clients of one round. `kinds` are the methods that they call in turn.

    `answers` counts the answers by status, and the posts without an answer by their error; `answered` has the time and
    the status of each answer. `gave_up` ends the repetitions, so that the clients end although a node does not recover.
    """

    nodes: Sequence[Node]
    expected: Expected
    prefix: str
    seed: int
    answers: Counter[str] = field(default_factory=Counter)
    answered: list[tuple[float, str]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    gave_up: threading.Event = field(default_factory=threading.Event)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, number: int) -> None:
        """Post until `stopping` is set, and repeat what can be repeated until it is acknowledged."""
        chance = random.Random(f"{self.seed} {self.prefix} {number}")
        kind = (self._single, self._event, self._keyed, self._events)[number % 4]
        with httpx.Client(timeout=TIMEOUT_S) as client:
            while not self.stopping.is_set():
                kind(client, chance)
                self.stopping.wait(PAUSE_S * chance.uniform(0.5, 1.5))

    def _single(self, client: httpx.Client, chance: random.Random) -> None:
        """Post one hit, or a batch, without an id, once."""
        path, count = self._new("single"), chance.choice((1, 1, 1, BATCH_HITS))
        self.expected.add_possible(path, count)
        if self._post(client, chance.choice(self.nodes), _hits(path, count)) is not None:
            self.expected.acknowledge(path)

    def _event(self, client: httpx.Client, chance: random.Random) -> None:
        """Post a hit with an event id to the nodes in turn until it is acknowledged, and perhaps once more."""
        path = self._new("event")
        self.expected.add_possible(path, 1)
        self._repeat(client, chance, path, _events(path, 1))

    def _keyed(self, client: httpx.Client, chance: random.Random) -> None:
        """Post a batch with an Idempotency-Key to the nodes in turn until it is acknowledged, and perhaps once more."""
        path = self._new("keyed")
        count = LARGE_HITS if chance.random() < LARGE_SHARE else chance.randrange(1, BATCH_HITS)
        self.expected.add_possible(path, count)
        self._repeat(client, chance, path, _hits(path, count), {"Idempotency-Key": path})

    def _events(self, client: httpx.Client, chance: random.Random) -> None:
        """Post the same event ids to all nodes at once, until all have acknowledged them."""
        path = self._new("events")
        self.expected.add_possible(path, EVENTS)
        hits = _events(path, EVENTS)

        def send(node: Node) -> None:
            with httpx.Client(timeout=TIMEOUT_S) as own:
                self._until_acknowledged(own, [node], hits, {})

        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(send, self.nodes))
        if not self.gave_up.is_set():
            self.expected.acknowledge(path)

    def _repeat(
        self,
        client: httpx.Client,
        chance: random.Random,
        path: str,
        hits: Sequence[dict[str, str]],
        headers: dict[str, str] | None = None,
    ) -> None:
        nodes = [*self.nodes]
        chance.shuffle(nodes)
        first = self._until_acknowledged(client, nodes, hits, headers or {})
        if first is None:
            return
        self.expected.acknowledge(path)
        if chance.random() < REPEATED_SHARE:
            again = self._post(client, nodes[-1], hits, headers or {})
            allowed = (None, first) if headers else (None, {"accepted": 0, "duplicates": len(hits), "rejected": []})
            if again not in allowed:
                self.expected.fault(f"{path}: the answer to a repeated post is {again}, not {allowed[1]}")

    def _until_acknowledged(
        self, client: httpx.Client, nodes: Sequence[Node], hits: Sequence[dict[str, str]], headers: dict[str, str]
    ) -> dict[str, Any] | None:
        """Return the receipt; None if `gave_up` is set."""
        for node in itertools.cycle(nodes):
            if (receipt := self._post(client, node, hits, headers)) is not None:
                return receipt
            if self.gave_up.wait(PAUSE_S):
                break
        return None

    def _post(
        self, client: httpx.Client, node: Node, hits: Sequence[dict[str, str]], headers: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Return the receipt of a post; None if it was not acknowledged."""
        if (url := node.url) is None:
            self._count("no address")
            return None
        try:
            answer = client.post(f"{url}/hits", json=hits, headers={**node.auth, **(headers or {})})
        except httpx.TransportError as error:
            self._count(type(error).__name__)
            return None
        self._count(str(answer.status_code))
        if answer.status_code == 503 and "Retry-After" in answer.headers:
            return None
        if answer.status_code != 202:
            self.expected.fault(f"a post was answered {answer.status_code}: {answer.text[:300]}")
            return None
        receipt: dict[str, Any] = answer.json()
        return receipt

    def _new(self, kind: str) -> str:
        return f"{self.prefix}/{kind}/{next(self._numbers)}"

    def _count(self, result: str) -> None:
        with self._lock:
            self.answers[result] += 1
            if result.isdigit():
                self.answered.append((time.monotonic(), result))


def _hits(path: str, count: int) -> list[dict[str, str]]:
    return [{"path": path, "userAgent": AGENT}] * count


def _events(path: str, count: int) -> list[dict[str, str]]:
    return [{"path": path, "userAgent": AGENT, "eventId": f"{path} {number}"} for number in range(count)]


class Threads:
    """Functions that run in threads until they return, whose errors are raised by `join`."""

    def __init__(self) -> None:
        self._running: list[Future[None]] = []
        self._pool: ThreadPoolExecutor | None = None

    def start(self, functions: Sequence[Callable[[], None]]) -> None:
        self._pool = ThreadPoolExecutor(len(functions))
        for each in functions:
            self._running.append(self._pool.submit(each))

    def join(self, timeout_s: float) -> None:
        """Wait until all have returned. Raises TimeoutError, or the first error of a function."""
        deadline = time.monotonic() + timeout_s
        for each in self._running:
            each.result(max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        """Wait until all functions that were started have returned."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
