"""Reports over HTTP on generated lakes, against other programs over the same hits.

`python -m benchmarks export [--cache-mib MIB] FOLDER...` measures lakes of `python -m benchmarks lake`, and without a
folder a temporary lake of 10M hits. The lakes are not changed; the databases of the peers are written once, beside the
data folder.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice, product
from pathlib import Path
from random import Random

from api.settings import Settings
from benchmarks import lake
from benchmarks.lake import Lake, Shape
from benchmarks.measure import RUNS, Measured, ratio, record
from benchmarks.peers import clickhouse, goatcounter
from benchmarks.peers.clickhouse import ClickHouse
from benchmarks.peers.goatcounter import GoatCounter
from benchmarks.peers.raw import Raw
from benchmarks.peers.report import Page, Peer, Range
from benchmarks.service import arrivals, server
from benchmarks.service.reader import Reader, datetimes, whole_days

DEFAULT = Shape(hits=10_000_000, days=365, paths=10_000, projects=8, end=datetime.now(UTC).date())
REQUESTS = 15
"""Number of requests of which a run takes the median."""
ARRIVAL_LEAD_S = 5.0
"""Seconds for which hits arrive before the first measurement, so that some wait in the hot log."""
EDGE_DAYS = 60
"""Maximum number of days between the ends of a random range and those of the lake."""
GOATCOUNTER_PATHS_MAX = 100_000
"""Maximum number of paths of a lake for which a GoatCounter database is built. A row for each path and hour takes about
100 bytes."""
DIMENSIONS = (
    "agent", "operator", "purpose", "verification", "referrerHost", "utmSource", "browser", "os", "device", "format",
    "status", "source", "rule", "path",
)  # fmt: skip
SERIES = (("hour", "UTC"), ("day", "UTC"), ("month", "UTC"), ("day", "Europe/Berlin"))
FILTERED: dict[str, tuple[str, dict[str, object]]] = {
    "page of AI agents": ("views", {"traffic": "ai"}),
    "page of one agent": ("views", {"agent": "GPTBot"}),
    "page of the paths with a prefix": ("views", {"path": "/docs/*"}),
    "series of the paths with a prefix": ("series", {"interval": "day", "path": "/docs/*"}),
    "series of one agent": ("series", {"interval": "day", "agent": "GPTBot"}),
    "breakdown of AI agents by referrerHost": ("breakdown", {"by": "referrerHost", "traffic": "ai"}),
    "breakdown of the paths with a prefix by referrerHost": ("breakdown", {"by": "referrerHost", "path": "/docs/*"}),
}
NEW, NEW_TO_NOW, AGAIN, SECOND = "first page, new range", "the same, range until now", "first page again", "page 2"
LOADED = " while hits arrive"


@dataclass
class Figures:
    """Results by the name and the unit of a figure."""

    runs: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, value: float, unit: str = "ms") -> None:
        self.runs[name, unit].append(value)

    def measured(self) -> list[Measured]:
        return [Measured(name, unit, runs) for (name, unit), runs in self.runs.items()]

    def ratio(self, name: str, above: str, below: str) -> Measured:
        """Return the ratio of two figures in ms."""
        return ratio(name, *(Measured(each, "ms", self.runs[each, "ms"]) for each in (above, below)))


@dataclass(frozen=True)
class Ranges:
    """Ranges that no other request has."""

    closed: Iterator[Range]
    """Ranges of nearly the whole lake."""
    to_now: Iterator[Range]
    """Ranges that have the hits that arrive during the measurement."""


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks export", description="Measure the reports over lakes.")
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--cache-mib", type=int, default=Settings.cache_mib, help="READERSHIP_CACHE_MIB of the server")
    parsed = parser.parse_args(arguments)
    for folder in parsed.folders:
        _record(lake.opened(folder), parsed.cache_mib)
    if not parsed.folders:
        with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
            generated = lake.generate(Path(scratch) / "lake", DEFAULT)
            lake.derive(generated)
            _record(generated, parsed.cache_mib)


def _record(original: Lake, cache_mib: int) -> None:
    name = f"export-{original.shape.hits}-{original.shape.paths}"
    record(name, measure(original, RUNS, REQUESTS, ARRIVAL_LEAD_S, cache_mib))


def measure(
    original: Lake, runs: int, requests: int, lead_s: float, cache_mib: int = Settings.cache_mib
) -> list[Measured]:
    """Return the figures of a lake: `runs` results each, each of which is the median of `requests` requests."""
    figures, ranges = Figures(), draw_ranges(original.shape, Random(1))  # the same ranges in each process
    with tempfile.TemporaryDirectory(dir=original.folder, prefix="copy-") as scratch, _peers(original) as peers:
        copy = lake.clone(original, Path(scratch))
        for _ in range(runs):
            with server.running(copy.data, cache_mib) as running, closing(Reader(running)) as reader:
                figures.add("first page, cold process", reader.ms("views", **whole_days(next(ranges.closed))))
        with server.running(copy.data, cache_mib) as running, closing(Reader(running)) as reader:
            _check(reader, peers, next(ranges.closed))
            for _ in range(runs):
                _measure_peers(figures, peers, next(ranges.closed))
                _measure_pages(figures, reader, ranges, requests, "")
                _measure_reports(figures, reader, ranges)
                _measure_download(figures, running, reader)
            arrived: list[float] = []
            with arrivals.arriving(running, original.shape.paths, arrived):
                time.sleep(lead_s)
                for _ in range(runs):
                    _measure_pages(figures, reader, ranges, requests, LOADED)
            figures.add("hits that arrived", arrived[0], "hits/s")
            figures.add("size of the result cache", cache_mib, "MiB")
            figures.add("resident memory at the end", running.resident_mib(), "MiB")
    return [*figures.measured(), *_ratios(figures, peers)]


def _ratios(figures: Figures, peers: list[Peer]) -> list[Measured]:
    over_peers = [figures.ratio(f"{peer.name} / {NEW}", f"page: {peer.name}", NEW) for peer in peers]
    loaded = [figures.ratio(f"{name}{LOADED} / idle", name + LOADED, name) for name in (NEW_TO_NOW, AGAIN, SECOND)]
    return [*over_peers, *loaded]


@contextmanager
def _peers(original: Lake) -> Iterator[list[Peer]]:
    """Yield the peers, whose databases are built if they are missing. ClickHouse is skipped if it is not installed."""
    peers: list[Peer] = [Raw(original.data)]
    if clickhouse.PYTHON.exists():
        folder = original.folder / "clickhouse"
        if not folder.exists():
            clickhouse.build(original.data, folder)
        peers.append(ClickHouse(folder))
    if original.shape.paths <= GOATCOUNTER_PATHS_MAX:
        file = original.folder / "goatcounter.sqlite"
        if not file.exists():
            goatcounter.build(original.data, file)
        peers.append(GoatCounter(file))
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()


def _check(reader: Reader, peers: list[Peer], range: Range) -> None:
    """Check that all programs return the same numbers. The requests also fill the caches of files."""
    series = reader.get("series", interval="day", **whole_days(range))
    for peer in peers:
        page = reader.page(range)
        expected = peer.page(range)[1]
        if isinstance(peer, GoatCounter):  # orders paths with equal views by their age
            page, expected = _totals(page), _totals(expected)
        assert page == expected, peer.name
        assert peer.series(range)[1] == series["totals"]["total"], peer.name


def _totals(page: Page) -> Page:
    return [("", total) for _, total in page]


def _measure_peers(figures: Figures, peers: list[Peer], range: Range) -> None:
    for peer in peers:
        figures.add(f"page: {peer.name}", peer.page(range)[0])
        figures.add(f"series by day: {peer.name}", peer.series(range)[0])
        if isinstance(peer, Raw):
            figures.add(f"breakdown by referrerHost: {peer.name}", peer.breakdown(range))


def _measure_pages(figures: Figures, reader: Reader, ranges: Ranges, requests: int, suffix: str) -> None:
    if not suffix:
        closed = list(islice(ranges.closed, 2 * requests))
        figures.add(NEW, reader.median_ms("views", map(whole_days, closed[:requests])))
        figures.add("first page, new range of datetimes", reader.median_ms("views", map(datetimes, closed[requests:])))
    to_now = list(islice(ranges.to_now, requests))
    figures.add(NEW_TO_NOW + suffix, reader.median_ms("views", map(whole_days, to_now)))
    again = whole_days(to_now[-1])
    figures.add(AGAIN + suffix, reader.median_ms("views", [again] * requests))
    figures.add(SECOND + suffix, reader.median_ms("views", [{**again, "offset": 50}] * requests))


def _measure_reports(figures: Figures, reader: Reader, ranges: Ranges) -> None:
    for interval, zone in SERIES:
        query = {"interval": interval, "timezone": zone, **whole_days(next(ranges.closed))}
        figures.add(f"series by {interval}, {zone}", reader.ms("series", **query))
    for dimension in DIMENSIONS:
        figures.add(
            f"breakdown by {dimension}", reader.ms("breakdown", by=dimension, **whole_days(next(ranges.closed)))
        )
    for name, (report, filters) in FILTERED.items():
        figures.add(name, reader.ms(report, **filters, **whole_days(next(ranges.closed))))


def _measure_download(figures: Figures, running: server.Server, reader: Reader) -> None:
    """Measure the CSV of all paths, and how much the server's memory grows meanwhile."""
    running.reset_peak()
    before_mib = running.resident_mib()
    seconds, lines = reader.download("views", "text/csv")
    figures.add("CSV of all paths", seconds, "s")
    figures.add("rows of the CSV", lines - 1, "rows")
    figures.add("growth of the server's memory during the CSV", running.peak_mib() - before_mib, "MiB")


def draw_ranges(shape: Shape, random: Random) -> Ranges:
    """Return ranges of a lake in a random order."""
    first, edge = shape.end - timedelta(days=shape.days), min(EDGE_DAYS, shape.days // 3)
    starts = [first + timedelta(days=after) for after in range(edge)]
    closed = [Range(start, end) for start, end in product(starts, (shape.end - timedelta(days=n) for n in range(edge)))]
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    to_now = [Range(_day(first, after), tomorrow) for after in range(shape.days - 1)]
    random.shuffle(closed)
    random.shuffle(to_now)
    return Ranges(iter(closed), iter(to_now))


def _day(first: date, after: int) -> date:
    return first + timedelta(days=after)
