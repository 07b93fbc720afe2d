"""Every report of a project with very many or very long distinct paths: its seconds, and the memory of the process.

    python -m tests.warehouse.rollups.paths DATA [REPORT ...]

DATA is a folder that `tests.attacks.doctor` filled. All reports run in this process, or only those that are named.
"""

import resource
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pyarrow.parquet as pq

from api import settings
from tests.processes.running import PROJECT
from warehouse.columns.dimensions import BREAKDOWNS
from warehouse.columns.filters import Filters
from warehouse.errors import SpillFull
from warehouse.query.snapshot import SnapshotReader
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

CACHE_BYTES = 64 * 2**20
ZONE = ZoneInfo("Europe/Berlin")
DAY = timedelta(days=1)
CALLS = dict[str, Callable[[], object]]


@cache
def now() -> datetime:
    return datetime.now(UTC)


def query(**filters: str) -> Query:
    return Query(PROJECT, FIRST, None, Filters(**filters), now())


def calls(reports: Reports) -> CALLS:
    """Return the reports by name."""
    snapshot, whole = reports.take(), query()
    part = Query(PROJECT, now() - 2 * DAY, now() - DAY / 2, Filters(), now())
    rows = pq.ParquetFile(snapshot.files[0].path).iter_batches(1, columns=["path"])
    path = next(rows)["path"][0].as_py()
    paths = [path, *(f"{path[:-3]}{number:03}" for number in range(249))]
    filters = {
        "exact": {"path": path}, "prefix": {"path": f"{path[:2]}*"}, "all as prefix": {"path": "/*"},
        "part": {"path": "*abc*"}, "browser": {"browser": "Firefox"}, "part, system": {"path": "*abc*", "os": "Linux"},
        "rule": {"rule": "human:browser"}, "traffic": {"traffic": "human"},
    }  # fmt: skip
    found: CALLS = {
        **{f"views by {order}": lambda order=order: reports.views(snapshot, whole, 0, 250, order)
           for order in ("total", "human", "ai", "bot", "path")},
        **{f"views from {offset}": lambda offset=offset: reports.views(snapshot, whole, offset, 250)
           for offset in (1_000, 30_000, 1_000_000)},
        "views people only": lambda: reports.views(snapshot, whole, 0, 250, audience="people_only"),
        "views of some hours": lambda: reports.views(snapshot, part, 0, 250),
        "all views": lambda: sum(batch.num_rows for batch in reports.all_views(snapshot, whole)[1]),
        "all views of some hours": lambda: sum(batch.num_rows for batch in reports.all_views(snapshot, part)[1]),
        **{f"views, {name}": lambda each=each: reports.views(snapshot, query(**each), 0, 250)
           for name, each in filters.items()},
        **{f"by {by}": lambda by=by: reports.breakdown(snapshot, whole, by, 0, 250) for by in BREAKDOWNS},
        **{f"by browser, {name}": lambda each=each: reports.breakdown(snapshot, query(**each), "browser", 0, 250)
           for name, each in filters.items()},
        "by agent, all as prefix": lambda: reports.breakdown(snapshot, query(path="/*"), "agent", 0, 250),
        "all of path": lambda: sum(b.num_rows for b in reports.all_breakdown(snapshot, whole, "path")[1]),
        **{f"series, {name}, {interval}, {zone}": lambda each=each, i=interval, z=zone:
           reports.series(snapshot, query(**each), i, z)
           for name, each in filters.items() for interval, zone in (("day", ZoneInfo("UTC")), ("hour", ZONE))},
        **{f"pages by {by}": lambda by=by: reports.agent_pages(snapshot, whole, by) for by in ("agent", "operator")},
        "first days": lambda: reports.first_ai_days(snapshot, whole, paths),
        "views of": lambda: reports.views_of(snapshot, whole, paths),
        "user agents": lambda: reports.user_agents(snapshot, whole, None, 50),
        "agents": lambda: reports.agents(snapshot, whole),
        "verdicts": lambda: reports.verdicts(snapshot, whole),
        "coverage": lambda: reports.source_coverage(snapshot, PROJECT),
        "measured": lambda: reports.measured(snapshot, whole),
        "sparklines": lambda: reports.sparklines(snapshot, [PROJECT], now()),
        "last hits": lambda: reports.last_hits(snapshot, [PROJECT]),
    }  # fmt: skip
    return found


def sampled() -> Iterator[float]:
    """Yield the largest resident memory in MiB since the last one, sampled every 20 ms."""
    peak = [0]

    def sample() -> None:
        while True:
            peak[0] = max(peak[0], resident())
            time.sleep(0.02)

    threading.Thread(target=sample, daemon=True).start()
    while True:
        largest, peak[0] = peak[0], 0
        yield largest / 2**20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main(data: Path, only: Collection[str]) -> None:
    config = settings.read({}, data)
    reader = SnapshotReader(config.hot_log, config.lake)
    memory = sampled()
    with closing(Reports(reader, config.lake, data / "spill", CACHE_BYTES)) as reports:
        for name, call in calls(reports).items():
            if not only or name in only:
                next(memory)
                began = time.monotonic(), time.process_time()
                fault = ""
                try:
                    call()
                except (duckdb.Error, SpillFull) as error:
                    fault = f"  FAILED: {type(error).__name__} {error}"
                seconds, processor_s = time.monotonic() - began[0], time.process_time() - began[1]
                print(
                    f"{name:36} {seconds:7.2f} s {processor_s:6.2f} s of processor {next(memory):5.0f} MiB{fault}",
                    flush=True,
                )
    print(f"largest: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
