"""A run of pytest leaves no process: not after a failed test, and not if the run itself is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.forked import ROOT
from tests.processes.state import is_running
from tests.processes.waiting import until

CONFTEST = "from tests.conftest import *\n"
LEFT = """
import os, subprocess, time
from pathlib import Path
from tests.processes.running import Running

def test_fails(tmp_path):
    running = Running(tmp_path / "data").start()
    other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    Path("left").write_text(f"{running.process.pid} {other.pid}")
    Path("left").rename("pids")
    assert os.environ.get("FAILS") is None
    time.sleep(1000)

def test_service_has_ended():
    service = int(Path("pids").read_text().split()[0])
    assert not Path(f"/proc/{service}").exists()
"""


def begin(folder: Path, **environ: str) -> subprocess.Popen[bytes]:
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\nmarkers = needs\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_left.py").write_text(LEFT)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--import-mode=importlib"]
    return subprocess.Popen(argv, cwd=folder, env={**os.environ, **environ}, stdout=subprocess.PIPE)


def left(folder: Path) -> list[int]:
    """Return the ids of the processes of the failed test that still run."""
    return [pid for pid in map(int, (folder / "pids").read_text().split()) if is_running(pid)]


@pytest.mark.night
def test_service_of_a_failed_test_ends_with_it_and_everything_else_with_the_run(tmp_path: Path) -> None:
    run = begin(tmp_path, FAILS="1")
    output = run.communicate(timeout=120)[0].decode()
    assert "1 failed, 1 passed" in output
    until(lambda: not left(tmp_path))


@pytest.mark.night
def test_killed_run_leaves_no_process(tmp_path: Path) -> None:
    with begin(tmp_path) as run:
        until((tmp_path / "pids").exists)
        assert len(left(tmp_path)) == 2
        run.send_signal(signal.SIGKILL)
    until(lambda: not left(tmp_path))
