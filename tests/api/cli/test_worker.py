"""`readership worker` loads the lake and runs agent jobs, and starts nothing that serves HTTP."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.running import COMMAND, new_key
from tests.waiting import until

IMPORT = re.compile(r"^import time: .*\| +(\w+)", re.MULTILINE)


def test_worker_imports_neither_the_app_nor_its_server(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    log = tmp_path / "log"
    command = [sys.executable, "-X", "importtime", COMMAND, "--data", tmp_path / "data", "worker"]
    environ = {**os.environ, "READERSHIP_JOBS_AT_ONCE": "1"}
    with log.open("wb") as errors, subprocess.Popen(command, stderr=errors, env=environ) as process:
        until(lambda: "The worker runs" in log.read_text())
        process.terminate()
        assert process.wait(60) == 0
    imported = set(IMPORT.findall(log.read_text()))
    assert {"duckdb", "sqlalchemy", "click"} <= imported
    assert not imported & {"starlette", "uvicorn", "httptools"}
