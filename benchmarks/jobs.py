"""Agent jobs: time from a create to the start of its turn (goal: 100 ms), and to a take-over (goal: 2 leases)."""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from agent.jobs import configuration, store
from agent.jobs.configuration import Configuration
from api import settings
from api.server import serve
from benchmarks.measure import RUNS, Measured, record
from benchmarks.service import server
from benchmarks.service.server import PROJECT, Server
from warehouse.control import database
from warehouse.database.pool import Pool

COMMAND = str(Path(sys.executable).parent / "readership")
JOBS = 15
"""Jobs of a run. The quota is 100 an hour."""
LEASE_S = settings.Settings.job_lease_s
POLL_S = 0.01

Result = TypeVar("Result")


def main() -> None:
    silent = serve.listen("127.0.0.1", 0)  # a forge that never responds: a turn lasts until it is cancelled
    with server.running() as running:
        engine = _engine(running.data, serve.url(silent))
        starts = [statistics.median(_start_ms(running, engine) for _ in range(JOBS)) for _ in range(RUNS)]
        engine.close()
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        take_overs = _take_overs(Path(scratch) / "data", serve.url(silent))
    record(
        "jobs",
        [
            Measured(f"create to start, median of {JOBS}", "ms", starts),
            Measured(f"kill of a worker to take-over, leases of {LEASE_S} s", "leases", take_overs),
        ],
    )


def _engine(data: Path, repository: str) -> Pool:
    engine = database.connect(settings.read({}, data).database_url)
    settings_of_jobs: configuration.Changes = {
        "repository": f"{repository}/silent.git",
        "preset": "command",
        "command": ("true",),
    }
    configuration.store(engine, PROJECT, configuration.changed(Configuration(repository=""), settings_of_jobs))
    return engine


def _start_ms(running: Server, engine: Pool) -> float:
    """Return the time from before the request to the start of the turn that the worker recorded, in ms."""
    jobs = f"{running.url}/v2/agent/{PROJECT}/job"
    began_us = time.time_ns() // 1_000
    id = httpx.post(jobs, json={"prompt": "x"}, headers=running.auth).json()["id"]
    started_us = _wait_for(lambda: _turn(engine, id)[2])
    httpx.post(f"{jobs}/{id}/cancel", headers=running.auth)
    time.sleep(2)  # the worker learns of the cancellation by its next heartbeat
    return float(started_us - began_us) / 1_000


def _take_overs(data: Path, repository: str) -> list[float]:
    """Return the time from the kill of a worker to the take-over of its turn, in leases, for each of RUNS new jobs."""
    server.create_key(data)
    engine = _engine(data, repository)
    take_overs = [_take_over(data, engine) for _ in range(RUNS)]
    engine.close()
    return take_overs


def _take_over(data: Path, engine: Pool) -> float:
    with _worker(data) as one, _worker(data) as other:
        id = store.create(engine, PROJECT, "x", None, time.time_ns() // 1_000).job.id
        owner = _wait_for(lambda: _turn(engine, id)[0])
        victim = one if f"-{one.pid}-" in owner else other
        killed_s = time.time()
        os.killpg(victim.pid, signal.SIGKILL)
        _wait_for(lambda: _turn(engine, id)[1] == 2)
        took_s = time.time() - killed_s
        store.cancel(engine, PROJECT, id, time.time_ns() // 1_000)
        return took_s / LEASE_S


@contextmanager
def _worker(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [COMMAND, "--data", str(data), "worker"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            time.sleep(3)  # until the worker polls the queue
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _turn(engine: Pool, job: str) -> tuple[str, int, int]:
    """Return the owner, the attempt and the time of the start of a job's turn."""
    with engine.connect() as connection:
        row: tuple[str, int, int] = connection.execute(
            "SELECT owner, attempt, started_us FROM turns WHERE job_id = :job", {"job": job}
        ).fetchone()
    return row


def _wait_for(condition: Callable[[], Result]) -> Result:
    """Wait for the first true result of `condition`, and return it."""
    while not (result := condition()):
        time.sleep(POLL_S)
    return result
