"""Durable posts to nodes with one PostgreSQL database and one lake, against one node with SQLite, all on one machine.

`python -m benchmarks.service.nodes URL` takes the URL of an empty database: `postgresql+psycopg://USER@HOST/DATABASE`.
The nodes, the clients and a local database share the cores.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.batch import HITS_A_REQUEST, body
from benchmarks.measure import RUNS, Measured, ratio, record
from benchmarks.service import client, server
from benchmarks.service.server import Server
from benchmarks.single import AGENT, BODY

NODES = (1, 2, 3)
CLIENTS = 32
SINGLE, BATCHES = 8_000, 60
"""Number of requests of a run, over all nodes: posts of one hit, and posts of HITS_A_REQUEST hits."""


def main(url: str = "") -> None:
    if not url:
        raise SystemExit(__doc__)
    with server.running() as running:
        file = _measure("SQLite, nodes: 1", [running])
    figures = [*file]
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as folder, ExitStack() as stack:
        nodes: list[Server] = []
        for count in NODES:
            nodes.append(stack.enter_context(_node(Path(folder), f"node{count}", url)))
            measured = _measure(f"PostgreSQL, nodes: {count}", nodes)
            figures += measured
            figures += [ratio(f"{each.name} / SQLite", each, base) for each, base in zip(measured, file, strict=True)]
    record("nodes", figures)


@contextmanager
def _node(folder: Path, name: str, url: str) -> Iterator[Server]:
    """Yield a node with a data folder of its own and the lake of all nodes."""
    lake, data = folder / "lake", folder / name
    lake.mkdir(exist_ok=True)
    data.mkdir()
    (data / "lake").symlink_to(lake)
    with server.running(data, variables={"READERSHIP_DATABASE_URL": url, "READERSHIP_JOBS_AT_ONCE": "0"}) as node:
        yield node


def _measure(name: str, nodes: Sequence[Server]) -> list[Measured]:
    """Return the hits/s of all nodes together, of posts of one hit and of batches, and the median latency of a post."""
    single: list[float] = []
    latencies_ms: list[float] = []
    batches: list[float] = []
    for _ in range(RUNS + 1):
        seconds, latencies = _post(nodes, "application/json", [BODY % (n % 500, AGENT.encode()) for n in range(SINGLE)])
        single.append(SINGLE / seconds)
        latencies_ms.append(1_000 * sorted(latencies)[len(latencies) // 2])
        seconds, _ = _post(nodes, "application/x-ndjson", [body(n) for n in range(BATCHES)])
        batches.append(BATCHES * HITS_A_REQUEST / seconds)
        for node in nodes:
            node.wait_until_loaded()
    return [
        Measured(f"{name}: posts of one hit", "hits/s", single[1:]),
        Measured(f"{name}: latency of a post of one hit", "ms", latencies_ms[1:]),
        Measured(f"{name}: posts of {HITS_A_REQUEST:,} hits", "hits/s", batches[1:]),
    ]


def _post(nodes: Sequence[Server], media_type: str, bodies: Sequence[bytes]) -> tuple[float, list[float]]:
    """Send the bodies to the nodes in turn; return the duration and the latency of each request, in seconds."""

    def drive(number: int) -> client.Outcome:
        node = nodes[number]
        headers = {**node.auth, "Content-Type": media_type}
        requests = [client.request("POST", server.HITS, headers, each) for each in bodies[number :: len(nodes)]]
        return client.drive(node.host, node.port, requests, CLIENTS // len(nodes), 202)

    began = time.perf_counter()
    with ThreadPoolExecutor(len(nodes)) as pool:
        outcomes = [*pool.map(drive, range(len(nodes)))]
    seconds = time.perf_counter() - began
    unexpected = [each for outcome in outcomes for each in outcome.unexpected]
    assert not unexpected, unexpected[0]
    return seconds, [each for outcome in outcomes for each in outcome.latencies_s]


if __name__ == "__main__":
    main(*sys.argv[1:])
