"""`readership worker` loads the lake and runs agent jobs, and starts nothing that serves HTTP."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.cli.console import FIREFOX, in_background
from tests.processes.running import COMMAND, Running, new_key
from tests.processes.waiting import killed_on_failure, until

IMPORT = re.compile(r"^import time: .*\| +([\w.]+)", re.MULTILINE)


@pytest.mark.long
def test_worker_imports_neither_the_app_nor_its_server(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    log = tmp_path / "log"
    command = [sys.executable, "-X", "importtime", COMMAND, "--data", tmp_path / "data", "worker"]
    environ = {**os.environ, "READERSHIP_JOBS_AT_ONCE": "1"}
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stderr=errors, env=environ) as process,
        killed_on_failure(process),
    ):
        until(lambda: "The worker runs" in log.read_text(), within_s=120)
        process.terminate()
        assert process.wait(60) == 0
    imported = set(IMPORT.findall(log.read_text()))
    assert {"duckdb", "click"} <= imported
    assert not imported & {"api.app", "httptools", "uvloop"}


@pytest.mark.long
def test_worker_loads_the_hot_log_of_a_killed_service(start: Callable[..., Running]) -> None:
    service = start()
    assert service.post({"path": "/a", "userAgent": FIREFOX, "timestamp": "2025-03-01T12:00:00Z"}).status_code == 202
    service.kill()
    day = service.data / "lake" / "hits" / "date=2025-03-01"
    assert not day.exists()
    environ = {**os.environ, "READERSHIP_LOAD_EVERY_S": "1"}
    with in_background("--data", service.data, "worker", env=environ) as runs:
        until(lambda: runs() and list(day.glob("*.parquet")))
    service.start()
    assert service.get()["totals"]["total"] == 1
