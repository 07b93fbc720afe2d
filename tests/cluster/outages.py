"""Outages of the object store and of PostgreSQL that last a minute."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import httpx

from tests.cluster import exactness
from tests.cluster.cluster import RECOVERY_S, Cluster
from tests.cluster.expected import Expected
from tests.cluster.processes import Node
from tests.cluster.senders import Senders, Threads
from tests.cluster.stores import Stores
from tests.processes.waiting import until

BEFORE_S = AFTER_S = 5.0
"""Maximum time for which clients post before and after an outage, in seconds. It is no longer than the outage."""
SERVED = ("200", "202")


@dataclass(frozen=True)
class Outage:
    """An outage of a store: its name, its time in seconds, and the functions that begin and end it.

    `posts` is the status of the posts meanwhile, except for those that were already sent or have no answer.
    """

    name: str
    seconds: float
    begin: Callable[[], None]
    end: Callable[[], None]
    posts: str


def kinds(stores: Stores, seconds: float) -> list[Outage]:
    """Return the outages of the stores that last so many seconds."""
    outages = [Outage("PostgreSQL, crashed", seconds, stores.server.crash, stores.server.start, "503")]
    if (way := stores.way) is not None:
        outages.append(Outage("object store, refusing connections", seconds, way.cut, way.restore, "202"))
        outages.append(Outage("object store, silent", seconds, way.silence, way.restore, "202"))
    return outages


def run(
    cluster: Cluster,
    expected: Expected,
    outages: Sequence[Outage],
    clients: int,
    show: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Have outages one after the other while clients post and read; return the faults. `show` gets the numbers."""
    faults: list[str] = []
    for number, outage in enumerate(outages):
        senders = Senders(cluster.nodes, expected, f"/outage{number}", number)
        faults += _have(outage, cluster, senders, clients, show)
    faults += [*expected.faults, *exactness.faults(cluster, expected), *exactness.tracebacks(cluster)]
    show(f"{sum(expected.certain.values()):,} hits were acknowledged; faults: {len(faults)}")
    return faults


def _have(outage: Outage, cluster: Cluster, senders: Senders, clients: int, show: Callable[[str], None]) -> list[str]:
    """Have an outage while clients post and read, and return its faults."""
    reports: list[tuple[float, str]] = []
    threads = Threads()
    try:
        threads.start(
            [
                *(partial(senders.run, each) for each in range(clients)),
                *(partial(_read, node, senders.stopping, reports) for node in cluster.nodes),
            ]
        )
        time.sleep(min(BEFORE_S, outage.seconds))
        began = time.monotonic()
        outage.begin()
        time.sleep(max(0.0, began + outage.seconds - time.monotonic()))
        ended = time.monotonic()
        outage.end()
        until(lambda: all(_is_served(answers, ended) for answers in (senders.answered, reports)), RECOVERY_S)
        time.sleep(min(AFTER_S, outage.seconds))
        senders.stopping.set()
        threads.join(RECOVERY_S)
        cluster.wait_until_ready()
    finally:
        senders.stopping.set()
        senders.gave_up.set()
        threads.close()
    posts = senders.answered
    show(f"{outage.name} for {outage.seconds:g} s:")
    for what, answers in (("posts", posts), ("reports", reports)):
        during = Counter(answer for at, answer in answers if began <= at < ended)
        first = min((at for at, answer in answers if at >= ended and answer in SERVED), default=float("inf"))
        show(f"  {what} during it: {dict(during)}; the first one served {first - ended:.2f} s after its end")
    faults = [f"reports were answered {each}" for each in {answer for _, answer in reports} - {"200", "503"}]
    statuses = Counter(status for at, status in posts if began <= at < ended)
    if statuses.most_common(1)[0][0] != outage.posts:
        faults.append(f"posts were answered {dict(statuses)}, and not {outage.posts}")
    return [f"{outage.name}: {each}" for each in faults]


def _is_served(answers: Sequence[tuple[float, str]], since: float) -> bool:
    return any(at >= since and answer in SERVED for at, answer in [*answers])


def _read(node: Node, stopping: threading.Event, answers: list[tuple[float, str]]) -> None:
    with httpx.Client(timeout=120) as client:
        while not stopping.wait(0.1):
            try:
                answer = client.get(f"{node.url}/views", headers=node.auth)
            except httpx.TransportError as error:
                answers.append((time.monotonic(), type(error).__name__))
                continue
            has_header = answer.status_code != 503 or "Retry-After" in answer.headers
            answers.append((time.monotonic(), f"{answer.status_code}{'' if has_header else ' without Retry-After'}"))
