"""Durable posts to nodes with one PostgreSQL database and one lake, against one node with SQLite, all on one machine.

`python -m benchmarks.service.nodes` starts a PostgreSQL server with `fsync` on, its default; with `--url` it uses an
empty database: `postgresql+psycopg://USER@HOST/DATABASE`. The nodes, the clients and a local database share the cores.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from benchmarks.batch import HITS_A_REQUEST, body
from benchmarks.measure import RUNS, Measured, end_within, ratio, record
from benchmarks.service import client, server
from benchmarks.service.server import Server
from benchmarks.single import AGENT, BODY
from tests.stores.postgresql import Server as Postgresql
from tests.stores.postgresql import new_database

NODES = (1, 2, 3)
CLIENTS = 32
SINGLE, COMMITS, BATCHES = 8_000, 2_000, 60
"""Number of requests of a run, over all nodes: posts of one hit by CLIENTS clients, and by one client for each node, so
that each post is one commit; and posts of HITS_A_REQUEST hits."""
POSTGRESQL = "-c listen_addresses= -c max_connections=200"
LIMIT_S = 3_600
"""Time limit of the benchmark, in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="URL of an empty database; by default that of a new server")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    end_within(LIMIT_S)
    with server.running() as running:
        file = _measure("SQLite, nodes: 1", [running], options.runs)
    figures = [*file]
    with (
        nullcontext(options.url) if options.url else _postgresql() as url,
        tempfile.TemporaryDirectory(prefix="readership-bench-") as folder,
        ExitStack() as stack,
    ):
        nodes: list[Server] = []
        for count in NODES:
            nodes.append(stack.enter_context(_node(Path(folder), f"node{count}", url)))
            measured = _measure(f"PostgreSQL, nodes: {count}", nodes, options.runs)
            figures += measured
            figures += [ratio(f"{each.name} / SQLite", each, base) for each, base in zip(measured, file, strict=True)]
    record("nodes", figures)


@contextmanager
def _postgresql() -> Iterator[str]:
    """Start a PostgreSQL server, and yield the URL of an empty database."""
    with Postgresql.running(POSTGRESQL) as running:
        yield new_database(running.folder)


@contextmanager
def _node(folder: Path, name: str, url: str) -> Iterator[Server]:
    """Yield a node with a data folder of its own and the lake of all nodes."""
    lake, data = folder / "lake", folder / name
    lake.mkdir(exist_ok=True)
    data.mkdir()
    (data / "lake").symlink_to(lake)
    with server.running(data, variables={"READERSHIP_DATABASE_URL": url, "READERSHIP_JOBS_AT_ONCE": "0"}) as node:
        yield node


def _measure(name: str, nodes: Sequence[Server], runs: int) -> list[Measured]:
    """Return the hits/s of all nodes together, of posts of one hit and of batches, the median latency of a post, and
    the commits/s.
    """
    single: list[float] = []
    latencies_ms: list[float] = []
    batches: list[float] = []
    commits: list[float] = []
    bodies = [BODY % (n % 500, AGENT.encode(), n % 256) for n in range(SINGLE)]
    for _ in range(runs + 1):
        seconds, latencies = _post(nodes, "application/json", bodies, CLIENTS // len(nodes))
        single.append(SINGLE / seconds)
        latencies_ms.append(1_000 * sorted(latencies)[len(latencies) // 2])
        seconds, _ = _post(nodes, "application/x-ndjson", [body(n) for n in range(BATCHES)], CLIENTS // len(nodes))
        batches.append(BATCHES * HITS_A_REQUEST / seconds)
        seconds, _ = _post(nodes, "application/json", bodies[:COMMITS], 1)
        commits.append(COMMITS / seconds)
        for node in nodes:
            node.wait_until_loaded()
    return [
        Measured(f"{name}: posts of one hit", "hits/s", single[1:]),
        Measured(f"{name}: latency of a post of one hit", "ms", latencies_ms[1:]),
        Measured(f"{name}: posts of {HITS_A_REQUEST:,} hits", "hits/s", batches[1:]),
        Measured(f"{name}: commits, one client a node", "commits/s", commits[1:]),
    ]


def _post(nodes: Sequence[Server], media_type: str, bodies: Sequence[bytes], clients: int) -> tuple[float, list[float]]:
    """Send the bodies to the nodes in turn, by `clients` each; return the duration and each latency, in seconds."""

    def drive(number: int) -> client.Outcome:
        node = nodes[number]
        headers = {**node.auth, "Content-Type": media_type}
        requests = [client.request("POST", server.HITS, headers, each) for each in bodies[number :: len(nodes)]]
        return client.drive(node.host, node.port, requests, clients, 202)

    began = time.perf_counter()
    with ThreadPoolExecutor(len(nodes)) as pool:
        outcomes = [*pool.map(drive, range(len(nodes)))]
    seconds = time.perf_counter() - began
    unexpected = [each for outcome in outcomes for each in outcome.unexpected]
    assert not unexpected, unexpected[0]
    return seconds, [each for outcome in outcomes for each in outcome.latencies_s]


if __name__ == "__main__":
    main()
