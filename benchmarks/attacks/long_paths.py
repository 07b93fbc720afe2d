"""Ever new paths: time and memory of each report, page and maintenance command over them.

`python -m benchmarks.attacks.long_paths FOLDER --paths 50000 --length 2000 --days 1` stores one view of each path, as
loads of the service do, if FOLDER does not exist yet. Then it measures a copy of the folder: the reports, the commands
`compact`, `rebuild` and `doctor`, and the reports again. The exit status is 1 if one of them failed.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlencode

import httpx
import numpy as np
import pyarrow as pa

from api import settings
from benchmarks import lake
from benchmarks.export import DIMENSIONS
from benchmarks.lake import COMMAND, LOCK_WAIT_S, Lake, Shape
from benchmarks.pages import BASE, session
from benchmarks.service import server
from benchmarks.service.server import Server
from warehouse.hotlog import batches
from warehouse.maintenance.load import load
from warehouse.schema import HOT, TIMESTAMP

BATCH_ROWS, LOAD_ROWS = 10_000, settings.Settings.load_rows
TIMEOUT_S = 300
COMMANDS = ("compact", "rebuild", "doctor")
AI_SHARE, HOSTS = 0.1, 5_000
"""Share of the views by an AI agent, and number of referrer hosts."""
_USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measurement: times in seconds, peak of the memory in MiB, and the reason of a failure, empty if none."""

    name: str
    seconds: tuple[float, ...]
    peak_mib: float
    failure: str


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.attacks.long_paths", description="Store ever new paths."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--paths", type=int, default=50_000)
    parser.add_argument("--length", type=int, default=2_000, help="characters of a path")
    parser.add_argument("--days", type=int, default=1, help="days up to yesterday that have equal parts of the views")
    parsed = parser.parse_args(arguments)
    original = Lake(parsed.folder, Shape(parsed.paths, parsed.days, parsed.paths, 1, datetime.now(UTC).date()))
    if not parsed.folder.exists():
        generating = get_context("spawn").Process(target=generate, args=(original, parsed.length))
        generating.start()  # in a process of its own: commands inherit the peak of the memory of this one
        generating.join()
    with tempfile.TemporaryDirectory(dir=original.folder, prefix="copy-") as scratch:
        copy = lake.clone(original, Path(scratch))
        failed = [each for each in _outcomes(copy) if each.failure]
    sys.exit(bool(failed))


def _outcomes(lake: Lake) -> Iterator[Outcome]:
    """Yield the outcomes, and print each."""
    token = session(lake.data)
    commands = (run(lake, command) for command in COMMANDS)
    for each in chain(reports(lake, token, "loaded"), commands, reports(lake, token, "rebuilt")):
        times = " ".join(f"{seconds:8.2f}" for seconds in each.seconds)
        print(f"{each.name:60} {times:>17} s {each.peak_mib:7.0f} MiB  {each.failure}", flush=True)
        yield each


def generate(lake: Lake, length: int) -> None:
    """Post and load one view of each path of a lake in a new folder."""
    server.create_key(lake.data)
    config = settings.read({}, lake.data)
    rng = np.random.default_rng(1)
    with closing(batches.connect(config.hot_log)) as hot:
        for posted in range(0, lake.shape.paths, BATCH_ROWS):
            count = min(BATCH_ROWS, lake.shape.paths - posted)
            batches.append(hot, _views(lake.shape, rng, posted, count, length), time.time())
            if (posted + count) % LOAD_ROWS < BATCH_ROWS or posted + count == lake.shape.paths:
                load(hot, config.lake, LOCK_WAIT_S)


def _views(shape: Shape, rng: np.random.Generator, first: int, count: int, length: int) -> pa.RecordBatch:
    ago = (np.arange(first, first + count) * shape.days // shape.paths + 1) * 86_400 - rng.integers(86_400, size=count)
    midnight_us = int(datetime.combine(shape.end, datetime.min.time(), UTC).timestamp()) * 1_000_000
    ts = pa.array(midnight_us - ago * 1_000_000, TIMESTAMP)
    is_ai = rng.random(count) < AI_SHARE
    columns = {
        "project_id": pa.array([server.PROJECT] * count),
        "ts": ts,
        "received_at": ts,
        "path": pa.array([f"/{secrets.token_urlsafe(length)[: length - 1]}" for _ in range(count)]),
        "traffic": pa.array(np.where(is_ai, "ai", "human")),
        "agent": pa.array(np.where(is_ai, "GPTBot", ""), mask=~is_ai),
        "operator": pa.array(np.where(is_ai, "OpenAI", ""), mask=~is_ai),
        "purpose": pa.array(np.where(is_ai, "training", ""), mask=~is_ai),
        "rule": pa.array(np.where(is_ai, "ai:GPTBot", "human")),
        "ruleset": pa.array(["1"] * count),
        "user_agent": pa.array(np.where(is_ai, "GPTBot/1.2", _USER_AGENT)),
        "browser": pa.array(np.where(is_ai, "", "Firefox"), mask=is_ai),
        "referrer_host": pa.array([f"site-{number}.example" for number in rng.integers(HOSTS, size=count)]),
        "status": pa.array(np.full(count, 200), pa.int16()),
        "source": pa.array(np.where(is_ai, "log", "beacon")),
    }
    arrays = [columns.get(field.name, pa.nulls(count, field.type)).cast(field.type) for field in HOT]
    return pa.RecordBatch.from_arrays(arrays, schema=HOT)


def reports(lake: Lake, token: str, state: str) -> Iterator[Outcome]:
    """Yield each report and page of a new process: its first time, another time, and the peak of both."""
    with server.running(lake.data) as running, httpx.Client(base_url=running.url, timeout=TIMEOUT_S) as client:
        client.cookies.set("readership_session", token)
        for name, address, headers in _addresses(lake.shape):
            running.reset_peak()
            (status, first_s), (again, again_s) = (_get(client, running, address, headers) for _ in range(2))
            failure = "" if (status, again) == (200, 200) else f"answered {status}, {again}"
            yield Outcome(f"{state}: {name}", (first_s, again_s), running.peak_mib(), failure)
        running.reset_peak()
        status, ready_s = _get(client, running, "/readyz", {})
        yield Outcome(f"{state}: readyz", (ready_s,), running.peak_mib(), "" if status == 200 else f"answered {status}")


def _addresses(shape: Shape) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield a name, an address and headers of each report and page."""
    last, first = shape.end - timedelta(days=1), shape.end - timedelta(days=shape.days)
    cut: dict[str, object] = {"dateFrom": f"{first}T10:30:00Z", "dateTo": f"{shape.end}T00:00:00Z"}
    root = f"/v1/analytics/{server.PROJECT}"
    narrow: tuple[dict[str, object], ...] = (
        {},
        {"traffic": "ai"},
        {"agent": "GPTBot"},
        {"path": "/a*"},
        {"source": "beacon"},
        cut,
    )
    requests: list[tuple[str, dict[str, object]]] = [("views", each) for each in narrow]
    requests += [("views", {"offset": shape.paths // 2}), ("errors", {}), ("coverage", {})]
    requests += [
        ("series", {"interval": unit, **each}) for unit in ("hour", "day") for each in ({}, {"path": "/a*"}, cut)
    ]
    requests += [("breakdown", {"by": by, **each}) for by in DIMENSIONS for each in ({}, {"path": "/a*"})]
    for report, parameters in requests:
        target = f"{report}?{urlencode(parameters)}"
        yield target, f"{root}/{target}", {"Accept": "application/json"}
    yield "views as CSV", f"{root}/views", {"Accept": "text/csv"}
    period = f"period=custom&from={first}&to={last}&zone=Europe/Berlin"
    for page in ("", "/ai", "/pages", "/ai/agents/GPTBot", "/setup"):
        yield f"page {page or '/'}", f"{BASE}{page}?{period}", {}
    yield "page of all projects", "/projects", {}


def _get(client: httpx.Client, running: Server, address: str, headers: dict[str, str]) -> tuple[int, float]:
    """Return the status of a response, and the time until it has arrived in seconds; status 0 if it did not."""
    began = time.perf_counter()
    auth = running.auth if address.startswith("/v1") else {}
    try:
        with client.stream("GET", address, headers={**auth, **headers}) as response:
            for _ in response.iter_raw():
                pass
    except httpx.HTTPError:
        return 0, time.perf_counter() - began
    return response.status_code, time.perf_counter() - began


def run(lake: Lake, command: str) -> Outcome:
    """Run a command over a lake."""
    began = time.perf_counter()
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            [COMMAND, "--data", str(lake.data), command], stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode()
    failure = "" if process.returncode == 0 else f"exit status {process.returncode}: {text[-600:]}"
    return Outcome(f"command {command}", (time.perf_counter() - began,), usage.ru_maxrss / 1024, failure)


if __name__ == "__main__":
    main(*sys.argv[1:])
