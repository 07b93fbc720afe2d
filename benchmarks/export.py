"""The views report over HTTP on 10 million generated hits of 90 days and 1,000 paths, against DuckDB over the raw rows.

Goals: 20 times faster than DuckDB over the raw rows; page 2 in under 5 ms; while hits arrive, less than twice the idle
time, both for a new range and for a repeated one.
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
HITS_A_SECOND, HITS_A_POST = 2_000, 20
ENDS_IDLE, ENDS_LOADED = (0, 1, 3, 5, 7), (2, 4, 6, 8, 9)
"""Ends of the ranges of each run, in days before the last. All are different, so that no range is cached."""
ARRIVAL_DAY = 12
"""Day of the arriving hits, in days before the last. It is in each range."""
ARRIVAL_LEAD_S = 5
"""Seconds for which hits arrive before the first measurement, so that some wait in the hot log."""
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
                "first page, range not requested before", "ms", [_new_ranges(client, url, end) for end in ENDS_IDLE]
            )
            instants = Measured(
                "the same with datetimes", "ms", [_new_instants(client, url, run) for run in range(RUNS)]
            )
            first = Measured("first page again", "ms", [_repeated(client, url, "") for _ in range(RUNS)])
            second = Measured("page 2", "ms", [_repeated(client, url, "offset=50") for _ in range(RUNS)])
            arrived: list[float] = []
            with _arriving(running, arrived):
                new_loaded = Measured(
                    "new range while hits arrive", "ms", [_new_ranges(client, url, end) for end in ENDS_LOADED]
                )
                loaded = Measured(
                    "first page again while hits arrive", "ms", [_repeated(client, url, "") for _ in range(RUNS)]
                )
    figures = [raw, new, instants, first, second, new_loaded, loaded, Measured("hits that arrived", "hits/s", arrived)]
    ratios = [
        ratio("DuckDB over the raw rows / first page, new range: goal 20", raw, new),
        ratio("new range while hits arrive / idle: goal under 2", new_loaded, new),
        ratio("first page again while hits arrive / idle: goal under 2", loaded, first),
    ]
    record("export", [*figures, *ratios])


def _raw(files: list[str]) -> float:
    database = duckdb.connect()
    began = time.perf_counter()
    database.execute(_RAW, {"files": files, "project": server.PROJECT}).fetchall()
    return (time.perf_counter() - began) * 1000


def _new_ranges(client: httpx.Client, url: str, end: int) -> float:
    """Return the median time of eight new ranges, each of nearly all days, in ms."""
    queries = [f"dateFrom={_day(90 - i)}&dateTo={_day(end)}" for i in range(1, 9)]
    return _median(client, [f"{url}?{query}" for query in queries])


def _new_instants(client: httpx.Client, url: str, run: int) -> float:
    queries = [f"dateFrom={_day(90 - i)}T10:30:{run:02}Z&dateTo={_day(0)}T00:00:00Z" for i in range(1, 9)]
    return _median(client, [f"{url}?{query}" for query in queries])


def _repeated(client: httpx.Client, url: str, query: str) -> float:
    return _median(client, [f"{url}?{query}"] * REQUESTS)


def _median(client: httpx.Client, urls: list[str]) -> float:
    durations_ms: list[float] = []
    for url in urls:
        began = time.perf_counter()
        client.get(url).raise_for_status()
        durations_ms.append((time.perf_counter() - began) * 1000)
    return statistics.median(durations_ms)


def _day(before: int) -> str:
    return (generate.END - timedelta(days=before)).date().isoformat()


@contextmanager
def _arriving(running: server.Server, arrived: list[float]) -> Iterator[None]:
    """Post HITS_A_SECOND hits/s until the block ends, and append the hits/s that were accepted to `arrived`."""
    stopping = threading.Event()

    def post() -> None:
        hit = {"userAgent": "ClaudeBot/1.0", "timestamp": f"{_day(ARRIVAL_DAY)}T12:00:00Z"}
        content = [{"path": f"/docs/{number}", **hit} for number in range(HITS_A_POST)]
        began, posts = time.perf_counter(), 0
        with httpx.Client(headers=running.auth, timeout=60) as client:
            while not stopping.wait(began + posts * HITS_A_POST / HITS_A_SECOND - time.perf_counter()):
                client.post(f"{running.url}{server.HITS}", json=content).raise_for_status()
                posts += 1
        arrived.append(posts * HITS_A_POST / (time.perf_counter() - began))

    thread = threading.Thread(target=post)
    thread.start()
    try:
        time.sleep(ARRIVAL_LEAD_S)
        yield
    finally:
        stopping.set()
        thread.join()
