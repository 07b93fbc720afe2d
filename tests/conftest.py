"""Fixtures that several tests share. Everything is real: files, SQLite, Delta, DuckDB, processes and sockets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.running import Running


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One running service for tests that can share it: each uses paths, days or projects of its own."""
    running = Running(tmp_path_factory.mktemp("shared") / "data", environ={"READERSHIP_BEACONS_PER_MINUTE": "1000000"})
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts a service of its own for a test: `start(workers=4, READERSHIP_LOAD_EVERY_S="1")`."""
    started: list[Running] = []

    def make(workers: int = 1, **environ: str) -> Running:
        running = Running(tmp_path / f"data{len(started)}", workers, environ)
        started.append(running)
        return running.start()

    yield make
    for running in started:
        if running.process is not None and running.process.poll() is None:
            running.kill()
