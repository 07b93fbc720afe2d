"""The views export over HTTP on ten million generated hits of 90 days and 1,000 paths, against DuckDB over the hits.

Goal: 20 times faster than DuckDB over the raw rows; page 2 under 5 ms; under load less than twice the idle time.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import duckdb
import httpx
from deltalake import DeltaTable

from benchmarks import generate, server
from benchmarks.measure import RUNS, Measured, ratio, record

HITS, DAYS, PATHS = 10_000_000, 90, 1_000
REQUESTS = 40
HITS_A_SECOND = 2_000
_RAW = """
SELECT path, count(*) FILTER (traffic = 'human') AS human, count(*) FILTER (traffic = 'ai') AS ai, human + ai AS total
FROM read_parquet($files, hive_partitioning = true)
WHERE project_id = $project AND traffic <> 'bot'
GROUP BY path ORDER BY total DESC, path LIMIT 50
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        data = Path(scratch) / "data"
        generate.fill(data, server.PROJECT, HITS, DAYS, PATHS)
        files = DeltaTable(str(data / "lake" / "hits")).file_uris()
        with server.running(data) as running, httpx.Client(headers=running.auth, timeout=60) as client:
            url = f"{running.url}{server.VIEWS}"
            raw = Measured("DuckDB over the raw rows", "ms", [_raw(files) for _ in range(RUNS)])
            new = Measured(
                "first page, range not asked before", "ms", [_new_ranges(client, url, run) for run in range(RUNS)]
            )
            edges = Measured("the same with datetimes", "ms", [_new_edges(client, url, run) for run in range(RUNS)])
            first = Measured("first page again", "ms", [_same(client, url, "") for _ in range(RUNS)])
            second = Measured("page 2", "ms", [_same(client, url, "offset=50") for _ in range(RUNS)])
            with _arriving(running):
                loaded = Measured(
                    "first page while 2,000 hits/s arrive", "ms", [_same(client, url, "") for _ in range(RUNS)]
                )
    figures = [raw, new, edges, first, second, loaded]
    ratios = [
        ratio("DuckDB over the raw rows / first page, new range", raw, new),
        ratio("first page under load / new range idle", loaded, new),
    ]
    record("export", [*figures, *ratios])


def _raw(files: list[str]) -> float:
    database = duckdb.connect()
    began = time.perf_counter()
    database.execute(_RAW, {"files": files, "project": server.PROJECT}).fetchall()
    return (time.perf_counter() - began) * 1000


def _new_ranges(client: httpx.Client, url: str, run: int) -> float:
    """The median of ranges that nobody asked for before, each of nearly all days."""
    queries = [f"dateFrom={_day(90 - i)}&dateTo={_day(run * 9 // RUNS)}" for i in range(1, 9)]
    return _median(client, [f"{url}?{query}" for query in queries])


def _new_edges(client: httpx.Client, url: str, run: int) -> float:
    queries = [f"dateFrom={_day(90 - i)}T10:30:{run:02}Z&dateTo={_day(0)}T00:00:00Z" for i in range(1, 9)]
    return _median(client, [f"{url}?{query}" for query in queries])


def _same(client: httpx.Client, url: str, query: str) -> float:
    return _median(client, [f"{url}?{query}"] * REQUESTS)


def _median(client: httpx.Client, urls: list[str]) -> float:
    took: list[float] = []
    for url in urls:
        began = time.perf_counter()
        client.get(url).raise_for_status()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def _day(before: int) -> str:
    return (generate.END - timedelta(days=before)).date().isoformat()


@contextmanager
def _arriving(running: server.Server) -> Iterator[None]:
    """Post HITS_A_SECOND hits a second, 20 a request, until the block ends."""
    stopping = threading.Event()

    def post() -> None:
        content = [{"path": f"/docs/{number}", "userAgent": "ClaudeBot/1.0"} for number in range(20)]
        with httpx.Client(headers=running.auth, timeout=60) as client:
            while not stopping.wait(20 / HITS_A_SECOND):
                client.post(f"{running.url}{server.HITS}", json=content).raise_for_status()

    thread = threading.Thread(target=post)
    thread.start()
    yield
    stopping.set()
    thread.join()
