"""Resident memory of the server while hits arrive, and while many projects are read.

`python -m benchmarks memory FOLDER` reads the projects of a lake of `python -m benchmarks lake`. Without a folder it
first measures 10 million hits that arrive as NDJSON, for which the goal is a constant size under 600 MiB, and then
generates a lake of 1,000 small projects and one of 1M paths.
"""

import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx

from api import settings
from api.accounts import keys
from benchmarks import lake
from benchmarks.batch import CLIENTS, HITS_A_REQUEST, body
from benchmarks.data.traffic import LARGE
from benchmarks.lake import Lake, Shape
from benchmarks.measure import RUNS, Measured, record
from benchmarks.service import client, server
from benchmarks.service.reader import Reader
from warehouse.control import database, projects

HITS = 10_000_000
PART = 200_000
STEPS = 10
RELEASED_S = 12
"""Time in seconds after which the server has released freed memory: more than `scheduler.RELEASE_EVERY_S`."""
SHAPE = Shape(hits=20_000_000, days=365, paths=1_000_000, projects=1_001, end=datetime.now(UTC).date())
CACHES_MIB = (32, 128, settings.Settings.cache_mib, 512)
"""Sizes of the cache setting with which the projects are read."""
LARGE_EVERY = 100
"""Number of small projects after which the large one is read again."""


def main(*folders: str) -> None:
    if folders:
        figures = [
            figure for folder in folders for figure in read_projects(lake.opened(Path(folder)), CACHES_MIB, RUNS)
        ]
        record("memory-projects", figures)
        return
    record("memory", _arriving())
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        generated = lake.generate(Path(scratch) / "lake", SHAPE)
        lake.derive(generated)
        record("memory-projects", read_projects(generated, CACHES_MIB, RUNS))


def _arriving() -> list[Measured]:
    resident: list[float] = []
    with server.running() as running, httpx.Client(headers=running.auth, timeout=60) as reader:
        headers = {**running.auth, "Content-Type": "application/x-ndjson"}
        requests = [client.request("POST", server.HITS, headers, body(n)) for n in range(PART // HITS_A_REQUEST)]
        for part in range(HITS // PART):
            outcome = client.drive(running.host, running.port, requests, CLIENTS, 202)
            assert not outcome.unexpected, outcome.unexpected[0]
            reader.get(f"{running.url}{server.VIEWS}").raise_for_status()
            running.wait_until_loaded()
            if (part + 1) % (HITS // PART // STEPS) == 0:
                resident.append(running.resident_mib())
        peak = running.peak_mib()
        time.sleep(RELEASED_S)
        later = running.resident_mib()
    return [
        Measured(f"resident, after each of {STEPS} parts of {HITS:,} hits", "MiB", resident),
        Measured("the same: peak of all parts", "MiB", [peak]),
        Measured(f"the same: {RELEASED_S} s after the last part", "MiB", [later]),
    ]


def read_projects(original: Lake, caches_mib: tuple[int, ...], rounds: int) -> list[Measured]:
    """Return the peak of the server's memory in each round of reads of all projects, for each size of the cache."""
    figures = []
    for cache_mib in caches_mib:
        with tempfile.TemporaryDirectory(dir=original.folder, prefix="copy-") as scratch:
            copy = lake.clone(original, Path(scratch))
            tokens = _create_keys(copy)
            with server.running(copy.data, cache_mib) as running:
                started_mib = running.resident_mib()
                peaks = [_round(running, tokens) for _ in range(rounds)]
        name = f"{original.shape.projects:,} projects, cache of {cache_mib} MiB"
        figures += [
            Measured(f"{name}: resident after the start", "MiB", [started_mib]),
            Measured(f"{name}: peak of a round", "MiB", peaks),
        ]
    return figures


def _round(running: server.Server, tokens: Mapping[str, str]) -> float:
    """Read each project once, the large one more often, and return the peak of the server's memory, in MiB."""
    running.reset_peak()
    for number, (project, token) in enumerate(tokens.items()):
        _read(running, project, token)
        if number % LARGE_EVERY == 0:
            _read(running, LARGE, tokens[LARGE])
    return running.peak_mib()


def _read(running: server.Server, project: str, token: str) -> None:
    with closing(Reader(running, project, token)) as reader:
        reader.get("views")
        reader.get("series", interval="day")
        reader.get("breakdown", by="referrerHost")


def _create_keys(copy: Lake) -> dict[str, str]:
    """Return a key of each project."""
    engine = database.connect(settings.read({}, copy.data).database_url)
    names = [each.id for each in projects.list_all(engine)]
    tokens = {name: keys.create(engine, name, "benchmark", "read", None, int(time.time()))[1] for name in names}
    engine.close()
    return tokens
