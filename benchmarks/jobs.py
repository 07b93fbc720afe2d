"""Agent jobs: milliseconds from a create to the worker's start, goal 100; leases until another takes over, goal 2."""

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
from typing import Any, TypeVar

import httpx
import sqlalchemy as sa

from agent.jobs import configuration, store
from agent.jobs.configuration import Configuration
from agent.jobs.tables import TURNS
from api import settings
from api.server import serve
from benchmarks import server
from benchmarks.measure import RUNS, Measured, record
from benchmarks.server import PROJECT, Server
from warehouse.control import database

COMMAND = str(Path(sys.executable).parent / "readership")
JOBS = 15
"""Of a run; the limit of an hour is 100."""
LEASE_S = settings.Settings.job_lease_s
POLL_S = 0.01

Found = TypeVar("Found")


def main() -> None:
    silent = serve.listen("127.0.0.1", 0)  # a repository's server that never answers: a turn lasts until it is ended
    with server.running() as made:
        engine = _engine(made.data, serve.url(silent))
        starts = [statistics.median(_start_ms(made, engine) for _ in range(JOBS)) for _ in range(RUNS)]
        engine.dispose()
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        take_overs = _take_overs(Path(scratch) / "data", serve.url(silent))
    record(
        "jobs",
        [
            Measured(f"create to start, median of {JOBS}", "ms", starts),
            Measured(f"kill of a worker to take-over, leases of {LEASE_S} s", "leases", take_overs),
        ],
    )


def _engine(data: Path, repository: str) -> sa.Engine:
    engine = database.connect(settings.read({}, data).database_url)
    given = {"repository": f"{repository}/silent.git", "preset": "command", "command": ("true",)}
    configuration.store(engine, PROJECT, configuration.changed(Configuration(repository=""), given))
    return engine


def _start_ms(made: Server, engine: sa.Engine) -> float:
    """From before the request was sent to what the worker noted as its start."""
    jobs = f"{made.url}/v2/agent/{PROJECT}/job"
    began_us = time.time_ns() // 1_000
    id = httpx.post(jobs, json={"prompt": "x"}, headers=made.auth).json()["id"]
    started_us = _once(lambda: _turn(engine, id).started_us)
    httpx.post(f"{jobs}/{id}/cancel", headers=made.auth)
    time.sleep(2)  # until the worker, which learns of it by its heartbeat, is free again
    return float(started_us - began_us) / 1_000


def _take_overs(data: Path, repository: str) -> list[float]:
    """Of a turn whose worker is killed, and which another takes over; a new job each time."""
    server.key_of(data)
    engine = _engine(data, repository)
    found = [_take_over(data, engine) for _ in range(RUNS)]
    engine.dispose()
    return found


def _take_over(data: Path, engine: sa.Engine) -> float:
    with _worker(data) as one, _worker(data) as other:
        id = store.create(engine, PROJECT, "x", None, time.time_ns() // 1_000).job.id
        owner = _once(lambda: _turn(engine, id).owner)
        victim = one if f"-{one.pid}-" in owner else other
        killed_s = time.time()
        os.killpg(victim.pid, signal.SIGKILL)
        _once(lambda: _turn(engine, id).attempt == 2)
        took_s = time.time() - killed_s
        store.cancel(engine, PROJECT, id, time.time_ns() // 1_000)
        return took_s / LEASE_S


@contextmanager
def _worker(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [COMMAND, "--data", str(data), "worker"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            time.sleep(3)  # until it looks at the queue
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _turn(engine: sa.Engine, job: str) -> sa.Row[Any]:
    with engine.connect() as connection:
        return connection.execute(TURNS.select().where(TURNS.c.job_id == job)).one()


def _once(condition: Callable[[], Found]) -> Found:
    """Its first true answer."""
    while not (found := condition()):
        time.sleep(POLL_S)
    return found
