"""Rounds of random faults on several nodes, each followed by a comparison of all that is stored.

The process exits with 1, and prints the differences, if a hit is lost or counted twice, if the tables were apart for a
reader, or if a service did not recover.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.cluster import cluster as clusters
from tests.cluster import exactness, outages
from tests.cluster.cluster import Cluster
from tests.cluster.expected import Expected
from tests.cluster.faults import Faults
from tests.cluster.log_imports import GrowingLog
from tests.cluster.processes import Node, Process
from tests.cluster.readers import Readers
from tests.cluster.senders import Senders, Threads
from tests.processes.waiting import until

OUTAGE_EVERY = 3
"""Number of rounds of which one has an outage of the store and of PostgreSQL."""
LOG_ENDS_S = 600
FAULTS_SHOWN = 20


@dataclass(frozen=True)
class Options:
    """Options of the rounds: number of clients, seed, and time for which faults are caused in a round, in seconds."""

    clients: int
    seed: int
    faults_s: float


@dataclass(frozen=True)
class Result:
    """Result of a round."""

    faults: list[str]
    summary: str


def run(cluster: Cluster, options: Options, number: int, expected: Expected) -> Result:
    """Run a round: clients, readers, imports and faults at the same time, then recovery and comparison."""
    began = time.monotonic()
    prefix, chance = f"/r{number}", random.Random(f"{options.seed} {number}")
    log = GrowingLog(cluster.folder / f"access-{number}.log", prefix, chance, expected)
    senders = Senders(cluster.nodes, expected, prefix, options.seed)
    environ = dict(cluster.nodes[0].environ)
    readers = Readers(cluster.nodes, expected, prefix, cluster.folder / clusters.READERS, environ)
    faults = Faults(cluster, chance, partial(_import, cluster, log))
    threads = Threads()
    try:
        threads.start(
            [
                *(partial(senders.run, each) for each in range(options.clients)),
                readers.compare_tables,
                readers.compare_exports,
            ]
        )
        log.write(1)
        faults.run(options.faults_s / 2, _outages(cluster, number))
        log.write(2)
        faults.run(options.faults_s / 2)
        recovered_s = _recover(cluster, faults)
        senders.stopping.set()
        readers.stopping.set()
        threads.join(clusters.RECOVERY_S)
    finally:
        for event in (senders.stopping, senders.gave_up, readers.stopping):
            event.set()
        threads.close()
    _end_commands(cluster)
    errors = [*faults.unexpected, *_import_all(cluster, log), *expected.faults]
    errors += [*exactness.faults(cluster, expected), *exactness.tracebacks(cluster)]
    return Result(errors, _summary(number, began, recovered_s, expected, senders, readers, faults))


def _outages(cluster: Cluster, number: int) -> tuple[str, ...]:
    if number % OUTAGE_EVERY:
        return ()
    return ("postgresql", "store") if cluster.stores.way else ("postgresql",)


def _import(cluster: Cluster, log: GrowingLog, node: Node) -> Process:
    process = log.start(node)
    cluster.commands.append(process)
    return process


def _recover(cluster: Cluster, faults: Faults) -> float:
    """Wait until both stores and all services answer, which must need no help; return the time, in seconds."""
    began = time.monotonic()
    until(cluster.stores.server.answers, within_s=60)
    cluster.wait_until_ready(faults.watch)
    return time.monotonic() - began


def _end_commands(cluster: Cluster) -> None:
    """Wait for the commands that run."""
    for process in cluster.commands:
        process.forked.wait(LOG_ENDS_S)
    cluster.commands.clear()


def _import_all(cluster: Cluster, log: GrowingLog) -> list[str]:
    """Import the log on each node until it is complete."""
    for node in cluster.nodes:
        process = _import(cluster, log, node)
        if (status := process.forked.wait(LOG_ENDS_S)) != 0:
            return [f"{process.name} ended with {status}: {process.text[-1000:]}"]
    log.acknowledge()
    return []


def _summary(
    number: int,
    began: float,
    recovered_s: float,
    expected: Expected,
    senders: Senders,
    readers: Readers,
    faults: Faults,
) -> str:
    certain = {path: n for path, n in expected.certain.items() if path.startswith(f"/r{number}/")}
    parts = [
        f"{sum(certain.values()):,} hits acknowledged in {len(certain):,} posts",
        f"answers {_counts(senders.answers)}",
        f"readers {_counts(readers.reads)}",
        f"faults {_counts(faults.done)}",
        f"ready after {recovered_s:.1f} s",
    ]
    return f"round {number} ({time.monotonic() - began:.0f} s): " + "; ".join(parts)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items())) or "none"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults-s", type=float, default=8, help="time for which a round causes faults, in seconds")
    parser.add_argument("--folder", action="store_true", help="have the lake in a folder, and not in an S3 server")
    parser.add_argument("--outage-s", type=float, help="instead of rounds, make each store unreachable for this time")
    parser.add_argument("--keep", type=Path, help="folder of the data and the logs, which is not deleted")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="readership-rounds-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        with clusters.running(folder, options.nodes, is_remote=not options.folder) as cluster:
            if options.outage_s:
                return _have_outages(cluster, options.clients, options.outage_s)
            return _run_all(cluster, Options(options.clients, options.seed, options.faults_s), options.rounds)


def _run_all(cluster: Cluster, options: Options, count: int) -> int:
    expected, began = Expected(), time.monotonic()
    for number in range(1, count + 1):
        result = run(cluster, options, number, expected)
        print(result.summary, flush=True)
        if result.faults:
            return _print_faults(result.faults)
    if faults := exactness.faults_of_lake(cluster, expected):
        return _print_faults(faults)
    certain = expected.certain
    print(
        f"{count} rounds in {time.monotonic() - began:.0f} s, seed {options.seed}: {sum(certain.values()):,} hits of"
        f" {len(certain):,} posts and logs are stored once, in both tables and in the export of each node"
    )
    return 0


def _have_outages(cluster: Cluster, clients: int, seconds: float) -> int:
    expected = Expected()
    faults = outages.run(cluster, expected, outages.kinds(cluster.stores, seconds), clients, partial(print, flush=True))
    return _print_faults([*faults, *exactness.faults_of_lake(cluster, expected)])


def _print_faults(faults: list[str]) -> int:
    """Print the first faults, and return the exit status."""
    if faults:
        print(f"FAILED with {len(faults)} faults:", *faults[:FAULTS_SHOWN], sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
