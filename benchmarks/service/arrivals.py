"""Hits that arrive at a constant rate while something else is measured, from a process of their own.

Half of the posts are NDJSON, half are single hits. The hits have no timestamp, and are therefore of today.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle

import msgspec
import numpy as np

from benchmarks.data import traffic
from benchmarks.service import server

HITS_A_SECOND = 2_000
CONNECTIONS = 4
HITS_A_POST = 19
"""Number of hits of an NDJSON post, which is followed by a post of one hit."""
BODIES = 200
"""Number of different NDJSON posts, and of different single hits."""


@contextmanager
def arriving(running: server.Server, paths: int, arrived: list[float]) -> Iterator[None]:
    """Post HITS_A_SECOND hits/s until the block ends, and append the rate of accepted hits, in hits/s, to `arrived`."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.service.arrivals",
        running.host,
        str(running.port),
        running.key,
        str(paths),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "started\n"
        try:
            yield
        finally:
            output, _ = process.communicate()
        arrived.append(float(output))


def main(host: str, port: str, key: str, paths: str) -> None:
    """Post hits until standard input is closed, and print the rate."""
    bodies, stopping = _bodies(int(paths)), threading.Event()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        writers = [
            pool.submit(_post, HTTPConnection(host, int(port)), key, bodies, stopping) for _ in range(CONNECTIONS)
        ]
        print("started", flush=True)
        sys.stdin.read()
        stopping.set()
        print(sum(writer.result() for writer in writers))


def _post(connection: HTTPConnection, key: str, bodies: list[tuple[bytes, bytes]], stopping: threading.Event) -> float:
    """Post the connection's part of HITS_A_SECOND until `stopping` is set, and return the rate in hits/s."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    single = {**headers, "Content-Type": "application/json"}
    rate = HITS_A_SECOND / CONNECTIONS
    began, hits = time.perf_counter(), 0
    for lines, hit in cycle(bodies):
        if stopping.wait(began + hits / rate - time.perf_counter()):
            break
        for body, kind in ((lines, headers), (hit, single)):
            connection.request("POST", server.HITS, body, kind)
            response = connection.getresponse()
            response.read()
            assert response.status == 202, response.status
        hits += HITS_A_POST + 1
    return hits / (time.perf_counter() - began)


def _bodies(paths: int) -> list[tuple[bytes, bytes]]:
    """Return pairs of an NDJSON post and a single hit."""
    rng, pages = np.random.default_rng(), traffic.pages(1, paths)
    agents = traffic.sample_user_agents()
    number = BODIES * (HITS_A_POST + 1)
    drawn = pages.path[np.searchsorted(pages.cumulated, rng.random(number))]
    hits = [
        msgspec.json.encode({"path": pages.paths[int(path)].as_py(), "userAgent": agents[index]})
        for path, index in zip(drawn, rng.integers(0, len(agents), number).tolist(), strict=True)
    ]
    posts = [hits[first : first + HITS_A_POST + 1] for first in range(0, number, HITS_A_POST + 1)]
    return [(b"\n".join(post[:-1]), post[-1]) for post in posts]


if __name__ == "__main__":
    main(*sys.argv[1:])
