"""Worker in a child process of a service: its start, its end with the parent, and its restart after a crash."""

import json
import os
import signal
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
from warehouse.control import database
from warehouse.folder import sqlite_url

Start = Callable[..., Running]
ENDLESS = "echo at work; sleep 1000"


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


def start_endless_turn(site: Site) -> str:
    """Create a job whose coding agent never ends, wait until it runs, and return the job's id."""
    site.configure(*command("sh", "-c", ENDLESS))
    id = site.create()
    until(lambda: "  | at work" in site.log(id))
    return id


@pytest.mark.long
def test_programs_of_a_turn_are_not_children_of_the_serving_process(site: Site) -> None:
    start_endless_turn(site)
    assert site.running.process is not None
    [worker] = workers(site.running)
    assert children(site.running.process.pid) == [worker]
    assert any(b"sleep" in command_line(pid) or b"init.py" in command_line(pid) for pid in children(worker))


@pytest.mark.long
def test_killed_child_is_restarted_and_its_turn_begins_again(site: Site) -> None:
    id = start_endless_turn(site)
    [worker] = workers(site.running)
    os.kill(worker, signal.SIGKILL)
    until(lambda: "begins again, attempt 2" in site.log(id))
    until(lambda: workers(site.running) not in ([], [worker]))
    logged = [json.loads(line) for line in site.running.log.read_text().splitlines() if line.startswith("{")]
    assert "the worker of agent jobs ended with status -9; restarting it" in [line.get("message") for line in logged]


@pytest.mark.long
def test_child_of_a_killed_service_ends_and_puts_its_turn_back(site: Site) -> None:
    start_endless_turn(site)
    assert site.running.process is not None
    [worker] = workers(site.running)
    agents = children(worker)
    site.running.process.kill()
    site.running.process.wait()
    until(lambda: not any(map(command_line, [worker, *agents])))
    engine = database.connect(sqlite_url(site.running.data / "control.sqlite"))
    assert sql.rows(engine, "SELECT state, attempt FROM turns") == [("queued", 0)]
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
@pytest.mark.parametrize(("slots", "expected"), [("0", 0), ("1", 1)])
def test_worker_is_started_only_with_slots_and_a_job(start: Start, slots: str, expected: int) -> None:
    running = start(READERSHIP_JOBS_AT_ONCE=slots)
    assert workers(running) == []
    id = new_job(running.data)
    if expected:
        until(lambda: len(workers(running)) == expected)
    key = {"Authorization": f"Bearer {new_key(running.data)}"}
    answer = httpx.post(f"{running.url}/v2/agent/{PROJECT}/job/{id}/message", json={"prompt": "x"}, headers=key)
    assert answer.status_code == 200
    assert len(workers(running)) == expected
    assert running.stop() == 0


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
    os.kill(worker, signal.SIGSTOP)
    process.close()
    engine.close()
    assert not is_running(worker)
    assert "the worker of agent jobs did not end within 0.1 s and is killed" in caplog.messages
