"""Pages of the dashboard on generated lakes: time to the whole page, and its size.

`python -m benchmarks pages FOLDER...` measures lakes of `python -m benchmarks lake`, which are not changed, and without
a folder a temporary lake of 10M hits.
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import httpx

from api import settings
from api.accounts import sessions, users
from benchmarks import lake
from benchmarks.lake import Lake, Shape
from benchmarks.measure import RUNS, Measured, record
from benchmarks.service import server
from warehouse.control import database

DEFAULT = Shape(hits=10_000_000, days=365, paths=10_000, projects=8, end=datetime.now(UTC).date())
REQUESTS = 5
"""Number of requests of which a run takes the median. Each has another period."""
ZONE = "Europe/Berlin"
"""Zone whose days are not those of UTC, so that the first and the last day of a period are counted from its hits."""
BASE = f"/projects/{server.PROJECT}"
PAGES = {
    "projects": ("/projects", None),
    "overview, 30 days": (BASE, 30),
    "overview, 30 days compared": (f"{BASE}?compare=previous", 30),
    "overview, 330 days": (BASE, 330),
    "overview, 330 days of one operator": (f"{BASE}?operator=OpenAI", 330),
    "AI readers, 30 days": (f"{BASE}/ai", 30),
    "AI readers, 330 days": (f"{BASE}/ai", 330),
    "an agent, 30 days": (f"{BASE}/ai/agents/GPTBot", 30),
    "an agent, 330 days": (f"{BASE}/ai/agents/GPTBot", 330),
    "pages, 30 days": (f"{BASE}/pages", 30),
    "pages, 330 days": (f"{BASE}/pages", 330),
    "a page, 30 days": (f"{BASE}/page?path=/docs/install-install-3", 30),
    "a page, 330 days": (f"{BASE}/page?path=/docs/install-install-3", 330),
    "why": (f"{BASE}/why", None),
    "set up": (f"{BASE}/setup", None),
    "API keys": (f"{BASE}/keys", None),
    "agent jobs": (f"{BASE}/jobs", None),
    "share": (f"{BASE}/share", None),
}
"""Addresses of the pages with the number of days that they show; None for pages without a period."""


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pages", description="Measure the dashboard's pages.")
    parser.add_argument("folders", type=Path, nargs="*")
    parsed = parser.parse_args(arguments)
    for folder in parsed.folders:
        _record(lake.opened(folder))
    if not parsed.folders:
        with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
            generated = lake.generate(Path(scratch) / "lake", DEFAULT)
            lake.derive(generated)
            _record(generated)


def _record(original: Lake) -> None:
    record(f"pages-{original.shape.hits}-{original.shape.paths}", measure(original, RUNS, REQUESTS))


def measure(original: Lake, runs: int, requests: int) -> list[Measured]:
    """Return the figures of a lake: the time of each page with new periods, and again, and its size."""
    chance = Random(1)
    results: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=original.folder, prefix="copy-") as scratch:
        copy = lake.clone(original, Path(scratch))
        with server.running(copy.data) as running, httpx.Client(base_url=running.url, timeout=60) as client:
            client.cookies.set("readership_session", session(copy.data))
            for _ in range(runs):
                for name, (address, days) in PAGES.items():
                    chosen = list(_addresses(address, days, original.shape, chance, requests))
                    sizes, times = zip(*[_get(client, each) for each in chosen], strict=True)
                    results[name, "ms"].append(statistics.median(times))
                    results[f"{name}, again", "ms"].append(_get(client, chosen[-1])[1])
                    results[f"{name}, size", "kB"].append(max(sizes) / 1000)
                results["resident memory after all pages", "MiB"].append(running.resident_mib())
                results["peak of the memory until then", "MiB"].append(running.peak_mib())
    return [Measured(name, unit, values) for (name, unit), values in results.items()]


def _addresses(address: str, days: int | None, shape: Shape, chance: Random, number: int) -> Iterator[str]:
    """Yield addresses of a page, each with another period."""
    for _ in range(number):
        if days is None:
            yield address
            continue
        length = min(days, shape.days - 1) - chance.randrange(max(1, min(days, shape.days) // 10))
        last = shape.end - timedelta(days=1 + chance.randrange(max(1, shape.days - length)))
        first = last - timedelta(days=length - 1)
        yield f"{address}{'&' if '?' in address else '?'}period=custom&from={first}&to={last}&zone={ZONE}"


def _get(client: httpx.Client, address: str) -> tuple[int, float]:
    """Return the size of a page in bytes, and the time until it has arrived in ms."""
    began = time.perf_counter()
    response = client.get(address)
    elapsed_ms = (time.perf_counter() - began) * 1000
    assert response.status_code == 200, (address, response.status_code, response.text[:500])
    return len(response.content), elapsed_ms


def session(data: Path) -> str:
    """Create an owner in the copy of a lake, and return the token of a session."""
    engine, now_s = database.connect(settings.read({}, data).database_url), int(time.time())
    owner = users.create(engine, "benchmark", "owner", None, now_s)
    token = sessions.start(engine, owner.id, now_s)
    engine.close()
    return token
