"""Import and rebuild in a Ray cluster of two raylets, against processes of this machine, with one and two workers each.

    python -m benchmarks.cluster.against_local [LINES [RUNS]]

Each figure of a run is the speed of a command, and the ratios are those of each run. The imports of a run also give the
same hits. In the end, a process of the cluster is killed while it parses a chunk; the import is exact nevertheless.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import lake
from benchmarks.cluster.raylets import cluster
from benchmarks.data import generate_log
from benchmarks.measure import Measured, end_within, ratio, record
from benchmarks.start import COMMAND

LINES, RUNS, USER_AGENTS = 10_000_000, 3, 2_000
MONTHS = 12
"""Months of the lake whose rollups are written, with half as many hits as the log has lines."""
PROJECT = "bench"
COUNTS = (1, 2)
WORKERS = {
    f"{place}, {count}": ("--on", place, "--processes", str(count)) for place in ("local", "ray") for count in COUNTS
}
HITS = """
SELECT count(*) AS hits, sum(hash(path, ts, traffic, agent, user_agent, referrer, status)::HUGEINT)::VARCHAR AS hash
FROM hits
"""
TASK = b"ray::_outcome"
"""Name of a process of the cluster while it runs a task."""
KILL_AFTER_S = 0.3
LIMIT_S = 7_200
"""Time limit of the benchmark, in seconds."""


def main(lines: str = str(LINES), runs: str = str(RUNS)) -> None:
    end_within(LIMIT_S)
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as folder, cluster() as environ:
        log = Path(folder) / "access.log"
        generate_log.write(log, int(lines), USER_AGENTS)
        imports, results = _imports(log, environ, int(runs))
        assert len(results) == 1, f"the imports differ: {results}"
        killed = _result_with_a_kill(log, environ)
        assert killed == results.pop(), "the import with a killed process differs"
        rebuilds = _rebuilds(Path(folder) / "lake", int(lines) // 2, environ, int(runs))
    figures = [*imports, *_ratios(imports), *rebuilds, *_ratios(rebuilds)]
    record("cluster", figures)


def _imports(log: Path, environ: Mapping[str, str], runs: int) -> tuple[list[Measured], set[str]]:
    """Return the speed of the import by workers, and the distinct results."""
    lines, results = log.read_bytes().count(b"\n"), set()
    rates: dict[str, list[float]] = {name: [] for name in ("threads", *WORKERS)}
    for _ in range(runs):
        for name, measured in rates.items():
            options = WORKERS.get(name, ("--on", "local"))
            with _imported(log, environ, options) as (data, seconds):
                measured.append(lines / seconds)
                results.add(_result(data))
    return [Measured(f"import, {name}", "lines/s", each) for name, each in rates.items()], results


def _rebuilds(folder: Path, hits: int, environ: Mapping[str, str], runs: int) -> list[Measured]:
    """Return the speed of the rebuild by workers."""
    shape = lake.Shape(hits, 30 * MONTHS, 10_000, 8, date(2026, 10, 1))
    data = lake.generate(folder, shape).data
    rates: dict[str, list[float]] = {name: [] for name in WORKERS}
    for _ in range(runs):
        for name, options in WORKERS.items():
            began = time.perf_counter()
            _run(data, environ, "rebuild", *options)
            rates[name].append(hits / (time.perf_counter() - began))
    assert _status(data, "doctor") == 0
    return [Measured(f"rebuild, {name}", "hits/s", each) for name, each in rates.items()]


def _ratios(figures: list[Measured]) -> list[Measured]:
    by_name = {each.name.partition(", ")[2]: each for each in figures}
    command = figures[0].name.partition(",")[0]
    pairs = [(f"ray, {count}", f"local, {count}") for count in (1, 2)] + [
        ("ray, 2", "ray, 1"),
        ("local, 2", "local, 1"),
    ]
    return [ratio(f"{command}: {above} / {below}", by_name[above], by_name[below]) for above, below in pairs]


def _result_with_a_kill(log: Path, environ: Mapping[str, str]) -> str:
    """Return the result of an import during which a process of the cluster was killed."""
    killed: list[int] = []
    ended = threading.Event()
    thread = threading.Thread(target=_kill_one, args=(environ["RAY_AUTH_TOKEN"], killed, ended))
    thread.start()
    try:
        with _imported(log, environ, WORKERS["ray, 2"]) as (data, _):
            ended.set()
            thread.join()
            assert killed, "no process was killed"
            return _result(data)
    finally:
        ended.set()
        thread.join()


def _kill_one(token: str, killed: list[int], ended: threading.Event) -> None:
    """Kill the first process of the cluster with this token that runs a task, KILL_AFTER_S after it was seen."""
    while not killed and not ended.wait(0.05):
        for process in Path("/proc").glob("[0-9]*"):
            if _is_task(process, token) and not ended.wait(KILL_AFTER_S) and _is_task(process, token):
                os.kill(int(process.name), signal.SIGKILL)
                killed.append(int(process.name))
                return


def _is_task(process: Path, token: str) -> bool:
    try:
        is_running = (process / "cmdline").read_bytes().startswith(TASK)
        return is_running and token.encode() in (process / "environ").read_bytes()
    except OSError:  # the process has ended, or belongs to another user
        return False


@contextmanager
def _imported(log: Path, environ: Mapping[str, str], options: tuple[str, ...]) -> Iterator[tuple[Path, float]]:
    """Import the log into a new data folder; yield the folder, and the seconds of the command."""
    with tempfile.TemporaryDirectory(prefix="readership-bench-", dir=log.parent) as folder:
        data = Path(folder)
        _run(data, environ, "project", "create", PROJECT)
        began = time.perf_counter()
        _run(data, environ, "import", PROJECT, str(log), *options)
        yield data, time.perf_counter() - began


def _result(data: Path) -> str:
    """Return the number of hits and their hash; the data has no fault."""
    assert _status(data, "doctor") == 0
    rows: list[dict[str, Any]] = json.loads(_run(data, {}, "sql", HITS, "--format", "json"))
    return str(rows)


def _run(data: Path, environ: Mapping[str, str], *arguments: str) -> str:
    command = [COMMAND, "--data", str(data), *arguments]
    done = subprocess.run(command, env={**os.environ, **environ}, check=True, capture_output=True, text=True)
    return done.stdout


def _status(data: Path, *arguments: str) -> int:
    return subprocess.run([COMMAND, "--data", str(data), *arguments], check=False, capture_output=True).returncode


if __name__ == "__main__":
    main(*sys.argv[1:])
