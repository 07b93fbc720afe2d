"""Server processes are replaced when they die in any state, and end with the service."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from uvicorn.config import STARTUP_FAILURE

from api.server import supervisor
from api.server.supervisor import Supervisor, Timeouts
from tests.agent.tools import require_sandbox
from tests.api.server.supervised import (
    cannot_start,
    ends_at_once,
    never_ends,
    second_fails_first,
    started,
    stops_itself,
)
from tests.processes.running import COMMAND, Running, new_key
from tests.processes.state import children
from tests.processes.waiting import killed_on_failure, server_processes, until
from tests.warehouse.site import ROOT

REPLACED_S = 30
"""Maximum time until a dead server process is replaced, in seconds: below that until a silent one is."""
ENDED_S = 60
"""Maximum time until the service has ended, in seconds. Its status is 1 if a server process had to be killed."""
SILENT_S = 60
"""Time without a heartbeat after which a server process is killed, in seconds: no start takes as long."""
NEWER_VERSION = 999
"""Schema version that no server process opens."""


def restarts(log: Path) -> list[dict[str, Any]]:
    lines = [line for line in log.read_text().splitlines() if '"readership.supervisor"' in line]
    return [json.loads(line) for line in lines]


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Yield a service with two server processes that has just been started, and its log."""
    data, log = tmp_path / "data", tmp_path / "log"
    new_key(data)
    argv = [COMMAND, "--data", data, "serve", "--port", "0", "--workers", "2"]
    with log.open("wb") as output, subprocess.Popen(argv, stderr=output, start_new_session=True) as process:
        yield process, log
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.long
def test_process_killed_while_it_starts_is_replaced_at_once(starting: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, log = starting
    first = until(lambda: server_processes(process.pid))[0]
    os.kill(first, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    until(lambda: len({*server_processes(process.pid)} - {first}) == 2, within_s=REPLACED_S)
    assert restarts(log)[0]["signal"] == "SIGKILL"
    assert restarts(log)[0]["pid"] == first
    process.terminate()
    assert process.wait(ENDED_S) == 0


@pytest.mark.long
def test_sigterm_while_processes_start_ends_the_service(starting: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, log = starting
    until(lambda: len(server_processes(process.pid)) == 2)
    os.kill(server_processes(process.pid)[1], signal.SIGKILL)
    process.terminate()
    assert process.wait(ENDED_S) == 0
    assert "Traceback" not in log.read_text()


@pytest.mark.long
def test_process_killed_while_it_serves_is_replaced_and_logged_with_its_signal(start: Callable[..., Running]) -> None:
    service = start(processes=2)
    assert service.process is not None
    parent = service.process.pid
    first, second = until(lambda: pids if len(pids := server_processes(parent)) == 2 else None)
    os.kill(second, signal.SIGSEGV)
    until(lambda: len({*server_processes(parent)} - {second}) == 2, within_s=REPLACED_S)
    (line,) = restarts(service.log)
    assert (line["level"], line["worker"], line["pid"], line["signal"]) == ("error", 1, second, "SIGSEGV")
    os.kill(first, signal.SIGSTOP)
    until(lambda: httpx.get(f"{service.url}/healthz", timeout=60).status_code == 200)
    os.kill(first, signal.SIGCONT)
    assert service.stop() == 0


@pytest.mark.long
def test_modules_in_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    """Check that a package `api` of somebody else does not end the service: `python -c` finds it first."""
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").write_text("raise SystemExit('not the package of the program')")
    data, log = tmp_path / "data", tmp_path / "log"
    argv = [COMMAND, "--data", data, "serve", "--port", "0", "--workers", "2"]
    with (
        log.open("wb") as output,
        subprocess.Popen(argv, stderr=output, cwd=tmp_path) as process,
        killed_on_failure(process),
    ):
        until(lambda: len(server_processes(process.pid)) == 2)
        process.terminate()
        assert process.wait(ENDED_S) == 0
    assert restarts(log) == []


@pytest.mark.long
def test_service_that_can_write_to_its_data_folder_only_ends_without_an_error(tmp_path: Path) -> None:
    """Run it without a folder for temporary files, as in a container whose root is read-only."""
    require_sandbox()
    (data := tmp_path / "data").mkdir()
    read_only = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", data, data, "--chdir", "/"]
    argv = [*read_only, COMMAND, "--data", data, "serve", "--port", "0", "--workers", "2"]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process, killed_on_failure(process):
        until(lambda: (pids := children(process.pid)) and len(server_processes(pids[0])) == 2)
        os.kill(children(process.pid)[0], signal.SIGTERM)
        assert process.wait(ENDED_S) == 0


@pytest.mark.long
def test_ctrl_c_while_a_server_process_starts_ends_the_service_without_a_traceback() -> None:
    program = (
        "import sys; from api.server.supervisor import Supervisor; from tests.api.server import interrupting;"
        "sys.exit(Supervisor(interrupting.never_ends, (), 1).run())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=ENDED_S,
        check=False,
        start_new_session=True,  # the process group that gets the signal
    )
    assert (done.returncode, done.stderr) == (0, "")


def set_schema_version(hot_log: Path, version: int) -> int:
    """Set the schema version of a hot log; return the version that it had."""
    with closing(sqlite3.connect(hot_log, timeout=60)) as connection:
        (old_version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version={version}")
        return int(old_version)


@pytest.mark.long
def test_start_that_fails_beside_a_started_process_is_retried(starting: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, log = starting
    first = until(lambda: pids if len(pids := server_processes(process.pid)) == 2 else None)
    os.kill(first[1], signal.SIGSTOP)
    url = until(lambda: re.findall(r"listens at (http://[^,]+)", log.read_text()))[0]
    assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200, "the other process has started"
    hot_log = log.parent / "data" / "hot.sqlite"
    version = set_schema_version(hot_log, NEWER_VERSION)
    os.kill(first[1], signal.SIGCONT)
    until(lambda: first[1] not in server_processes(process.pid))
    set_schema_version(hot_log, version)
    until(lambda: restarts(log))
    assert (restarts(log)[0]["worker"], restarts(log)[0]["exitStatus"]) == (1, STARTUP_FAILURE)
    until(lambda: len(server_processes(process.pid)) == 2, within_s=REPLACED_S)
    process.terminate()
    assert process.wait(ENDED_S) == 0


def end_this_process_after(is_due: Callable[[], object]) -> threading.Thread:
    def end() -> None:
        until(is_due)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=end)
    thread.start()
    return thread


def test_server_process_that_ignores_the_end_is_killed_and_the_status_is_1(tmp_path: Path) -> None:
    thread = end_this_process_after(partial(started, tmp_path))
    ends: list[None] = []
    status = Supervisor(never_ends, (tmp_path,), 1, Timeouts(end_s=0.2)).run(lambda: ends.append(None))
    thread.join()
    assert (status, len(ends), len(started(tmp_path))) == (1, 1, 1)


@pytest.mark.long
def test_process_that_ends_by_itself_is_restarted_by_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert Supervisor(ends_at_once, (tmp_path,), 1).run() == 0
    assert [record.getMessage() for record in caplog.records] == [
        "server process 0 ended with exit status 1; it is restarted in 0 s",
        f"server process 0 ended with exit status {STARTUP_FAILURE}; it is restarted in 0.5 s",
    ]
    assert [line.split()[0] for line in started(tmp_path)] == ["0", "0", "0"]
    assert len({line.split()[1] for line in started(tmp_path)}) == 3


def test_server_process_that_cannot_start_ends_the_service(tmp_path: Path) -> None:
    assert Supervisor(cannot_start, (tmp_path,), 1).run() == STARTUP_FAILURE
    assert len(started(tmp_path)) == 1


@pytest.mark.long
def test_server_process_without_a_heartbeat_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert Supervisor(stops_itself, (tmp_path,), 1, Timeouts(silent_s=5)).run() == 0
    assert caplog.messages[0] == "server process 0 is killed: no heartbeat for 5 s"
    assert len({line.split()[1] for line in started(tmp_path)}) >= 2


@pytest.mark.long
def test_process_whose_heartbeats_waited_for_a_paused_supervisor_is_not_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused_s = [0.0]

    def pause() -> bool:
        """Move the clock until the heartbeat of the process 0, which waits in the pipe, is overdue."""
        first = tested._workers[0].running
        assert first is not None
        assert first[1].poll(SILENT_S)
        paused_s[0] += 2 * SILENT_S
        return True

    monkeypatch.setattr(supervisor, "HEARTBEATS", 1_000)
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + paused_s[0]))
    tested = Supervisor(second_fails_first, (tmp_path,), 2, Timeouts(SILENT_S), pause)
    assert tested.run() == 0
    assert paused_s[0] > 0
    assert [text for text in caplog.messages if "is killed" in text] == []
    assert sorted(line.split()[0] for line in started(tmp_path)) == ["0", "1", "1"]
