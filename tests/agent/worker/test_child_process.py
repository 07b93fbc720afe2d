"""The worker of a service runs in a process of its own, beside the one that answers requests."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from agent.jobs.tables import TURNS
from agent.worker.child_process import ChildProcess
from agent.worker.worker import WorkerConfig
from tests.agent.site import SECRETS, Site, command, site
from tests.running import PROJECT, Running, new_job, new_key
from tests.waiting import until
from warehouse.control import database
from warehouse.folder import sqlite_url

Start = Callable[..., Running]
AT_WORK = "echo at work; sleep 1000"


@pytest.fixture
def made(start: Start, tmp_path: Path) -> Iterator[Site]:
    """A service with a project whose agent is not boxed, so that these tests need no bubblewrap."""
    with site(tmp_path) as found:
        found.running = start(READERSHIP_JOB_LEASE_S="2", **SECRETS)
        found.begin("--no-sandbox", *command("sh", "-c", "cat > page.md"))
        yield found


def children(parent: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # the thread has ended
            continue
    return found


def workers(running: Running) -> list[int]:
    """The child processes that work on agent jobs."""
    assert running.process is not None
    return [pid for pid in children(running.process.pid) if b"agent.worker.child_main" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def at_work(made: Site) -> str:
    """A job whose agent does not end."""
    made.configure(*command("sh", "-c", AT_WORK))
    id = made.create()
    until(lambda: "  | at work" in made.log(id))
    return id


def test_no_program_of_a_turn_is_a_child_of_the_process_that_answers(made: Site) -> None:
    at_work(made)
    assert made.running.process is not None
    [worker] = workers(made.running)
    assert children(made.running.process.pid) == [worker]
    assert any(b"sleep" in _command(pid) or b"inside.py" in _command(pid) for pid in children(worker))


def test_a_killed_worker_is_replaced_and_its_turn_begins_again(made: Site) -> None:
    id = at_work(made)
    [worker] = workers(made.running)
    os.kill(worker, signal.SIGKILL)
    until(lambda: "begins again, attempt 2" in made.log(id))
    until(lambda: workers(made.running) not in ([], [worker]))
    logged = [json.loads(line) for line in made.running.log.read_text().splitlines() if line.startswith("{")]
    assert "the process of the agent jobs ended with status -9; restarting it" in [
        line.get("message") for line in logged
    ]


def test_a_worker_ends_with_a_killed_service_and_puts_its_turn_back(made: Site) -> None:
    at_work(made)
    assert made.running.process is not None
    [worker] = workers(made.running)
    agents = children(worker)
    made.running.process.kill()
    made.running.process.wait()
    until(lambda: not any(map(_command, [worker, *agents])))
    engine = database.connect(sqlite_url(made.running.data / "control.sqlite"))
    with engine.connect() as connection:
        turn = connection.execute(TURNS.select()).one()
    engine.dispose()
    assert (turn.state, turn.attempt) == ("queued", 0)


def test_its_turns_are_counted_and_its_warnings_logged_by_the_service(made: Site) -> None:
    made.configure("--webhook", "http://127.0.0.1:1/", "--webhook-secret", "env:HOOK")
    made.completed(made.create())
    counts = (
        'readership_job_turn_seconds_count{outcome="succeeded"} 1.0',
        'readership_webhook_deliveries_total{outcome="failed"} 1.0',
    )
    until(lambda: all(count in httpx.get(f"{made.running.url}/metrics").text for count in counts))
    lines = [json.loads(line) for line in made.running.log.read_text().splitlines() if line.startswith("{")]
    [warning] = [line for line in lines if line["level"] == "warning"]
    assert warning["logger"] == "readership.agent"
    assert warning["message"].startswith(f"the webhook of project {PROJECT} did not take")


@pytest.mark.parametrize(("slots", "expected"), [("0", 0), ("1", 1)])
def test_only_a_service_that_works_on_jobs_and_has_one_starts_a_worker(start: Start, slots: str, expected: int) -> None:
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
    engine = sa.create_engine("postgresql+psycopg://127.0.0.1:1/none")  # nothing listens at this port
    process = ChildProcess(WorkerConfig(engine, tmp_path, {}, 1, 15))
    process.start()
    record = until(lambda: next((each for each in caplog.records if each.name == "readership.agent"), None))
    process.close()
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert "port 1 failed" in record.getMessage()
