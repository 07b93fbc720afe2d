"""The worker in a child process, without a service: its reports, and the commands that it gets."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.jobs import configuration, store
from agent.jobs.configuration import Configuration
from agent.worker import child_main, threads
from agent.worker.child_process import STOP_CLAIMING, ChildProcess
from agent.worker.threads import WorkerConfig
from tests.processes.waiting import until
from tests.stores import sql
from tests.warehouse.site import ROOT
from warehouse.control import database, projects
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url

PROJECT = "site"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Pool]:
    """Yield a control database with a project whose turns fail at once, because their secret is missing."""
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    projects.create(engine, PROJECT, (), 0)
    values = {"repository": "https://git.example/docs", "git_token": "env:NOT_SET"}
    chosen = configuration.changed(Configuration(repository=""), {**values, "preset": "command", "command": ("true",)})
    configuration.store(engine, PROJECT, chosen)
    yield engine
    engine.close()


NOT_UTF8 = b"caf\xe9".decode(errors="surrogateescape")


@pytest.mark.long
def test_log_record_arrives_with_its_traceback(engine: Pool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Let the database lack a column, so that the child logs an error; the environment is not UTF-8."""
    with engine.transaction() as connection:
        connection.execute("ALTER TABLE webhook_deliveries RENAME COLUMN due_us TO lost")
    store.create(engine, PROJECT, "Write a page", None, 1)
    child = ChildProcess(WorkerConfig(engine, tmp_path / "jobs", {"NAME": NOT_UTF8}, 1, 15))
    child.start()
    text = "cannot send webhooks of agent jobs; retrying"
    record = until(lambda: next((each for each in caplog.records if each.getMessage() == text), None))
    child.close()
    assert (record.name, record.levelname) == ("readership.agent", "ERROR")
    assert str(record.exc_text).startswith("Traceback (most recent call last):")
    assert record.__dict__["fields"] == {"traceback": record.exc_text}


@pytest.mark.long
def test_child_reports_its_turns_and_claims_none_after_the_command(engine: Pool, tmp_path: Path) -> None:
    turns: list[tuple[float, bool]] = []
    config = WorkerConfig(engine, tmp_path / "jobs", {}, 1, 15, on_turn=lambda *turn: turns.append(turn))
    child = ChildProcess(config)

    def stays_queued() -> bool:
        """Create a job, and return whether its turn waits for longer than the child pauses between two polls."""
        id = store.create(engine, PROJECT, "Write a page", None, 1).job.id
        threading.Event().wait(10 * threads.POLL_S)
        return store.find(engine, PROJECT, id).status == "active"

    store.create(engine, PROJECT, "Write a page", None, 1)
    began_s = time.monotonic()
    with closing(child):
        child.start()
        [(seconds, succeeded)] = until(lambda: turns)
        assert not succeeded
        assert 0 < seconds < time.monotonic() - began_s
        assert not stays_queued()
        child.stop_claiming()
        until(stays_queued)


class NoReports(logging.NullHandler):
    def send(self, name: str, *arguments: object) -> None:
        """Send nothing: the child is this process."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_child_that_gets_a_signal_while_it_starts_claims_no_turn(
    engine: Pool, tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = store.create(engine, PROJECT, "Write a page", None, 1).job.id

    def interrupted(reports: object) -> WorkerConfig:
        signal.raise_signal(number)
        return WorkerConfig(database.connect(engine.url), tmp_path / "jobs", {}, 1, 15)

    monkeypatch.setattr(child_main, "_read_config", interrupted)
    monkeypatch.setattr(child_main, "Reports", NoReports)
    handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    received, sent = os.pipe()
    try:
        child_main.main(received)
    finally:
        for each, handler in zip((signal.SIGTERM, signal.SIGINT), handlers, strict=True):
            signal.signal(each, handler)
        os.close(received)
        os.close(sent)
    assert sql.rows(engine, "SELECT state, started_us FROM turns WHERE job_id = :id", id=job) == [("queued", None)]


@pytest.mark.parametrize("command", [STOP_CLAIMING, b""])
def test_command_that_was_sent_while_the_child_started_comes_before_its_first_turn(
    engine: Pool, tmp_path: Path, command: bytes
) -> None:
    """Send the command and end the pipe before the child starts."""
    job = store.create(engine, PROJECT, "Write a page", None, 1).job.id
    received, sent = os.pipe()
    os.write(sent, command)
    os.close(sent)
    values = [engine.url, str(tmp_path / "jobs"), {}, 1, 15, 0, None]
    argv = [sys.executable, "-m", "agent.worker.child_main", str(received)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=[received], cwd=ROOT) as child:
        child.communicate(json.dumps(values).encode())
    os.close(received)
    assert child.returncode == 0
    assert sql.rows(engine, "SELECT state, started_us FROM turns WHERE job_id = :id", id=job) == [("queued", None)]
