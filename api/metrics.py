"""What is counted, for Prometheus; over all workers where `shared_counters.join` was called before the import."""

import os
from collections import Counter as Counted
from collections.abc import Iterable, Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector

from agent.jobs.job import Status
from agent.jobs.queue import QueueStats
from agent.jobs.webhook import Outcome
from ingest.hits.body import Rejection
from ingest.hotlog.deduplication import Receipt

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
TURN_SECONDS = Histogram(
    "readership_job_turn_seconds",
    "Seconds that a turn of an agent job took",
    ["outcome"],
    buckets=(1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200),
)
DELIVERIES = Counter("readership_webhook_deliveries", "Attempts to tell a webhook of an agent job", ["outcome"])

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
    fields = Counted(rejection.field if rejection.field in FIELDS else "other" for rejection in rejected)
    for field, times in fields.items():
        REJECTED.labels(field).inc(times)


def count_turn(seconds: float, succeeded: bool) -> None:
    TURN_SECONDS.labels("succeeded" if succeeded else "failed").observe(seconds)


def count_delivery(outcome: Outcome) -> None:
    DELIVERIES.labels(outcome).inc()


class _Waiting(Collector):
    """Gauges of what waits now, computed for one answer. prometheus_client's own Gauge would be shared as the workers'
    counters are: a second time, for each process, also after its death."""

    def __init__(self, rows: int, stats: QueueStats) -> None:
        self._rows, self._stats = rows, stats

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("readership_waiting_hits", "Hits in the hot log, not in the lake yet", self._rows)
        jobs = GaugeMetricFamily("readership_jobs", "Agent jobs, by status", labels=["status"])
        for status in Status:
            jobs.add_metric([status], self._stats.jobs.get(status, 0))
        yield jobs
        waits = "Seconds that the turn which has waited longest has waited for a worker"
        yield GaugeMetricFamily("readership_job_queue_age_seconds", waits, self._stats.waiting_s)


def exposition(waiting_rows: int, stats: QueueStats) -> bytes:
    """Return the text format: the counts of every worker if they share a folder, and what waits now."""
    registry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # has no types
    now = CollectorRegistry()
    now.register(_Waiting(waiting_rows, stats))
    return generate_latest(registry) + generate_latest(now)
