"""Metrics for Prometheus: sums over all server processes, if `serve.join_counters` was called before the import."""

import os
from collections import Counter as Counted
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector

from agent.jobs.job import Status
from agent.jobs.queue import QueueStats
from agent.jobs.webhook import Outcome
from ingest.hits.body import EVENTS, HITS, Kind, Rejection
from ingest.hits.event import ServerEvent
from ingest.hits.hit import Hit
from ingest.hotlog.deduplication import Receipt

FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(ServerEvent))
"""Fields that metrics have as labels. Any other field is `other`, because the client chooses its name."""

POSTED = {
    HITS.name: Counter("readership_hits", "Hits in posts, by outcome", ["source", "outcome"]),
    EVENTS.name: Counter("readership_events", "Events in posts, by outcome", ["source", "outcome"]),
}
REJECTED = Counter("readership_rejected_hits", "Hits and events rejected, by the invalid field", ["field"])
CUT = Counter("readership_cut_hits", "Hits and events with a text that was cut, by the field", ["field"])
REQUESTS = Counter("readership_requests", "HTTP requests", ["route", "method", "status"])
TRAILERS = Counter("readership_ignored_trailers", "Header fields after the body of a request, which are ignored")
SECONDS = Histogram(
    "readership_request_seconds",
    "Seconds from a request to the end of its response",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
LOADS = Counter("readership_loads", "Loads of the hot log into the lake", ["outcome"])
FAILURES = Counter(
    "readership_maintenance_failures", "Failed steps of a maintenance task, retried each minute", ["task"]
)
LOADED = Counter("readership_loaded_hits", "Hits moved into the lake")
TURN_SECONDS = Histogram(
    "readership_job_turn_seconds",
    "Duration of a turn of an agent job, in seconds",
    ["outcome"],
    buckets=(1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200),
)
DELIVERIES = Counter("readership_webhook_deliveries", "Attempts to notify a webhook of an agent job", ["outcome"])

_COUNTERS = {
    (kind, source): (counter.labels(source, "accepted"), counter.labels(source, "duplicate"))
    for kind, counter in POSTED.items()
    for source in ("beacon", "server")
}


def count_hits(kind: Kind, source: str, receipt: Receipt) -> None:
    """Count the accepted and the duplicate hits or events of a post."""
    accepted, duplicates = _COUNTERS[kind.name, source]
    accepted.inc(receipt.accepted)
    if receipt.duplicates:
        duplicates.inc(receipt.duplicates)


@lru_cache(1_000)
def _route_metrics(route: str, method: str, status: int) -> tuple[Counter, Histogram]:
    """Return the counter and the histogram of a route. Cached: the look-up of labels takes longer than the count."""
    return REQUESTS.labels(route, method, status), SECONDS.labels(route)


def count_request(route: str, method: str, status: int, seconds: float) -> None:
    requests, took = _route_metrics(route, method, status)
    requests.inc()
    took.observe(seconds)


def count_rejected(rejected: Iterable[Rejection]) -> None:
    fields = Counted(rejection.field if rejection.field in FIELDS else "other" for rejection in rejected)
    for field, count in fields.items():
        REJECTED.labels(field).inc(count)


def count_cut(hits: Iterable[Hit]) -> int:
    """Count the cut texts of hits by their fields, and return the number of hits with a cut text."""
    cut = [hit.cut for hit in hits if hit.cut]
    for field in chain.from_iterable(cut):
        CUT.labels(field).inc()
    return len(cut)


def count_load(rows: int | None) -> None:
    """Count a load with its number of hits; None for a failed one."""
    LOADS.labels("failed" if rows is None else "done").inc()
    LOADED.inc(rows or 0)


def count_failure(task: str) -> None:
    FAILURES.labels(task.removeprefix("the ")).inc()


def count_turn(seconds: float, succeeded: bool) -> None:
    TURN_SECONDS.labels("succeeded" if succeeded else "failed").observe(seconds)


def count_delivery(outcome: Outcome) -> None:
    DELIVERIES.labels(outcome).inc()


class _SharedCounters(Collector):
    """The counters of all server processes, from the files in the folder that they share.

    MultiProcessCollector would search for the files by a pattern, which also matches another folder if the path of this
    one has `*` or `?`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        files = [str(file) for file in self._folder.glob("*.db")]
        metrics: Iterable[Metric] = multiprocess.MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return metrics


class _Waiting(Collector):
    """The release, and gauges of waiting hits and agent jobs, computed for one response.

    A Gauge of prometheus_client would have one value per process in the shared files, also after a process has died.
    """

    def __init__(self, rows: int, stats: QueueStats) -> None:
        self._rows, self._stats = rows, stats

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("readership_build", "Release that this node runs", {"version": version("readership")})
        waiting = "Hits in the hot log that are not in the lake yet, of all nodes with one database"
        yield GaugeMetricFamily("readership_waiting_hits", waiting, self._rows)
        of_jobs = "Agent jobs of all nodes with one database, by status"
        jobs = GaugeMetricFamily("readership_jobs", of_jobs, labels=["status"])
        for status in Status:
            jobs.add_metric([status], self._stats.jobs.get(status, 0))
        yield jobs
        age = "Waiting time of the oldest queued turn of an agent job, in seconds"
        yield GaugeMetricFamily("readership_job_queue_age_seconds", age, self._stats.waiting_s)


def exposition(waiting_rows: int, stats: QueueStats) -> bytes:
    """Return the gauges, and the counters of all server processes that share a folder, in Prometheus's text format."""
    registry = REGISTRY
    if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        registry = CollectorRegistry()
        registry.register(_SharedCounters(Path(folder)))
    now = CollectorRegistry()
    now.register(_Waiting(waiting_rows, stats))
    return generate_latest(registry) + generate_latest(now)
