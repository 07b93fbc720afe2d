"""Worker in a child process of a service: its start, its end with the parent, and its restart after a crash."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from agent.worker.child_process import ChildProcess
from agent.worker.threads import WorkerConfig
from tests.agent.service.site import SECRETS, Site, command, make_site
from tests.processes.running import PROJECT, Running, new_job, new_key
from tests.processes.state import children, command_line, is_running
from tests.processes.waiting import until
from tests.stores import sql
from tests.warehouse.site import ROOT
from warehouse.control import database
from warehouse.folder import sqlite_url

Start = Callable[..., Running]
KILL_S = 30
"""Seconds within which a worker that does not end must be killed; its own deadline is much earlier."""


@pytest.fixture
def site(start: Start, tmp_path: Path) -> Iterator[Site]:
    """Run a service whose project has a coding agent without a sandbox; these tests need no bubblewrap."""
    with make_site(tmp_path) as site:
        site.running = start(READERSHIP_JOB_LEASE_S="2", **SECRETS)
        site.set_up("--no-sandbox", *command("sh", "-c", "cat > page.md"))
        yield site


def workers(running: Running) -> list[int]:
    """Return the process ids of the workers that a service has started."""
    assert running.process is not None
    return [pid for pid in children(running.process.pid) if b"agent.worker.child_main" in command_line(pid)]


@pytest.mark.long
def test_killed_worker_is_restarted_and_the_worker_of_a_killed_service_ends_and_puts_its_turn_back(site: Site) -> None:
    assert workers(site.running) == [], "no job needs one"
    site.configure(*command("sh", "-c", "echo at work; sleep 1000"))
    id = site.create()
    until(lambda: "  | at work" in site.log(id))
    [killed] = workers(site.running)
    assert site.running.process is not None
    assert children(site.running.process.pid) == [killed], "the programs of a turn are children of the worker"
    assert any(b"sleep" in command_line(pid) or b"init.py" in command_line(pid) for pid in children(killed))
    os.kill(killed, signal.SIGKILL)
    until(lambda: "begins again, attempt 2" in site.log(id))
    [worker] = until(lambda: [each for each in workers(site.running) if each != killed and children(each)])
    logged = [json.loads(line) for line in site.running.log.read_text().splitlines() if line.startswith("{")]
    assert "the worker of agent jobs ended with status -9; restarting it" in [line.get("message") for line in logged]
    agents = children(worker)
    site.running.process.kill()
    site.running.process.wait()
    until(lambda: not any(map(command_line, [worker, *agents])))
    engine = database.connect(sqlite_url(site.running.data / "control.sqlite"))
    assert sql.rows(engine, "SELECT state, attempt FROM turns") == [("queued", 1)]
    engine.close()


@pytest.mark.long
def test_service_counts_the_turns_of_its_worker_and_logs_its_warnings(site: Site) -> None:
    site.configure("--webhook", "http://127.0.0.1:1/", "--webhook-secret", "env:HOOK")
    site.completed(site.create())
    counts = (
        'readership_job_turn_seconds_count{outcome="succeeded"} 1.0',
        'readership_webhook_deliveries_total{outcome="failed"} 1.0',
    )
    until(lambda: all(count in httpx.get(f"{site.running.url}/metrics").text for count in counts))
    lines = [json.loads(line) for line in site.running.log.read_text().splitlines() if line.startswith("{")]
    [warning] = [line for line in lines if line["level"] == "warning" and line["logger"] == "readership.agent"]
    assert f"to the webhook of project {PROJECT}: env:HOOK is not set" in warning["message"]


@pytest.mark.long
def test_service_without_slots_starts_no_worker(service: Running) -> None:
    project = "without-slots"
    key = {"Authorization": f"Bearer {new_key(service.data, project)}"}
    id = new_job(service.data, project)
    job = f"{service.url}/v2/agent/{project}/job/{id}"
    assert httpx.post(f"{job}/message", json={"prompt": "x"}, headers=key).status_code == 200
    assert workers(service) == []


def test_control_database_that_does_not_answer_is_a_warning_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = sql.opened("postgresql://127.0.0.1:1/none")  # nothing listens at this port
    process = ChildProcess(WorkerConfig(engine, tmp_path, {}, 1, 15))
    process.start()
    record = until(lambda: next((each for each in caplog.records if each.name == "readership.agent"), None))
    process.close()
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert "port 1 failed" in record.getMessage()


def test_worker_that_does_not_end_in_time_is_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    new_key(tmp_path)
    new_job(tmp_path)
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    process = ChildProcess(WorkerConfig(engine, tmp_path / "jobs", {}, 1, 15), end_s=0.1)
    process.start()
    [worker] = until(lambda: [pid for pid in children(os.getpid()) if b"child_main" in command_line(pid)])
    environ = Path(f"/proc/{worker}/environ").read_bytes().decode().split("\0")
    os.kill(worker, signal.SIGSTOP)
    killed_by_test = threading.Timer(KILL_S, os.kill, (worker, signal.SIGKILL))
    killed_by_test.start()
    process.close()
    assert killed_by_test.is_alive(), f"the worker was not killed within {KILL_S} s"
    killed_by_test.cancel()
    engine.close()
    assert not is_running(worker)
    assert worker not in children(os.getpid()), "its end is awaited"
    assert "the worker of agent jobs did not end within 0.1 s and is killed" in caplog.messages
    assert [each for each in environ if each.startswith(f"PYTHONPATH={ROOT}")], "it imports the same packages"
