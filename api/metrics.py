"""What is counted, for Prometheus; over all workers where PROMETHEUS_MULTIPROC_DIR is set before this is imported."""

import os
from collections.abc import Iterable
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.registry import REGISTRY

from ingest.post import Rejection
from ingest.seen import Receipt

FIELDS = frozenset({"path", "url", "referrer", "eventId", "userAgent", "timestamp", "status", "format"})

HITS = Counter("readership_hits", "Hits of posts, by what became of them", ["source", "outcome"])
REJECTED = Counter("readership_rejected_hits", "Hits rejected, by the field at fault", ["field"])
REQUESTS = Counter("readership_requests", "HTTP requests", ["route", "method", "status"])
SECONDS = Histogram(
    "readership_request_seconds",
    "Seconds from a request to the end of its answer",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
LOADS = Counter("readership_loads", "Loads of the hot log into the lake", ["outcome"])
LOADED = Counter("readership_loaded_hits", "Hits moved into the lake")


_ACCEPTED = {source: HITS.labels(source, "accepted") for source in ("beacon", "server")}
_DUPLICATES = {source: HITS.labels(source, "duplicate") for source in ("beacon", "server")}


def count_hits(source: str, receipt: Receipt) -> None:
    _ACCEPTED[source].inc(receipt.accepted)
    if receipt.duplicates:
        _DUPLICATES[source].inc(receipt.duplicates)


@lru_cache(1_000)
def _of_route(route: str, method: str, status: int) -> tuple[Counter, Histogram]:
    """A look-up of labels costs more than the count itself."""
    return REQUESTS.labels(route, method, status), SECONDS.labels(route)


def count_request(route: str, method: str, status: int, seconds: float) -> None:
    requests, took = _of_route(route, method, status)
    requests.inc()
    took.observe(seconds)


def count_rejected(rejected: Iterable[Rejection]) -> None:
    for rejection in rejected:
        REJECTED.labels(rejection.field if rejection.field in FIELDS else "other").inc()


def exposition(waiting_rows: int) -> bytes:
    """The text format: the counts of every worker if they share a folder, and the hits that wait to be loaded."""
    registry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # has no types
    now = CollectorRegistry()
    Gauge("readership_waiting_hits", "Hits in the hot log, not in the lake yet", registry=now).set(waiting_rows)
    return generate_latest(registry) + generate_latest(now)
