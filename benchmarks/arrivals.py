"""Hits that arrive at a constant rate while something else is measured, from a process of their own.

Half of the posts are NDJSON, half are single hits. The hits have no timestamp, and are therefore of today.
"""

import http.client
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

import msgspec
import numpy as np

from benchmarks import server, traffic

HITS_A_SECOND = 2_000
HITS_A_POST = 19
"""Number of hits of an NDJSON post, which is followed by a post of one hit."""
BODIES = 200
"""Number of different NDJSON posts, and of different single hits."""


@contextmanager
def arriving(running: server.Server, paths: int, arrived: list[float]) -> Iterator[None]:
    """Post HITS_A_SECOND hits/s until the block ends, and append the rate of accepted hits, in hits/s, to `arrived`."""
    command = [sys.executable, "-m", "benchmarks.arrivals", running.host, str(running.port), running.key, str(paths)]
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
    bodies = cycle(_bodies(int(paths)))
    connection = http.client.HTTPConnection(host, int(port))
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    single = {**headers, "Content-Type": "application/json"}
    print("started", flush=True)
    began, hits = time.perf_counter(), 0
    while not select.select([sys.stdin], [], [], max(0.0, began + hits / HITS_A_SECOND - time.perf_counter()))[0]:
        lines, hit = next(bodies)
        for body, kind in ((lines, headers), (hit, single)):
            connection.request("POST", server.HITS, body, kind)
            response = connection.getresponse()
            response.read()
            assert response.status == 202, response.status
        hits += HITS_A_POST + 1
    print(hits / (time.perf_counter() - began))


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
