"""SIGKILL of servers and workers: every job ends, no step runs twice at once, and no job has two pull requests."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agent.jobs import journal, store
from agent.jobs.queue import TOO_MANY_ATTEMPTS
from tests.agent.service.site import END_S, SECRETS, Site, command, make_site, store_configuration
from tests.agent.tools import require_sandbox
from tests.processes import forked
from tests.processes.forked import Forked
from tests.processes.running import PROJECT, Running
from tests.processes.state import children
from tests.processes.waiting import until
from tests.rounds import rounds, seeded
from tests.stores import sql
from tests.stores.postgresql import new_database
from warehouse.control import database
from warehouse.database.pool import Pool

pytestmark = pytest.mark.long

KILLS = max(3, rounds(12))
AT_ONCE = 3
LEASE_S = 2
ALONE = 'flock -n /home/agent/lock sh -c "sleep 0.7; cat > page.md" || touch /home/agent/twice'
"""Coding agent that detects another one of its job at work, by a lock in their common home folder."""
WRITE_PAGE = "cat > page.md"


@contextmanager
def worker(running: Running) -> Iterator[Forked]:
    """Run `readership worker` beside the service."""
    environ = {**os.environ, **running.environ}
    process = forked.start(forked.PROGRAM, ["--data", running.data, "worker"], environ, running.log)
    try:
        yield process
    finally:
        _kill(process)


def _kill(process: Forked) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _stopped_in_a_turn(engine: Pool, workers: list[Forked]) -> Forked | None:
    """Stop the processes of a worker that runs a turn, and return it; None if none of the workers does."""
    for each in workers:
        os.killpg(each.pid, signal.SIGSTOP)
        owners = sql.column(engine, "SELECT owner FROM turns WHERE state = 'running'")
        if any(f"-{each.pid}-" in owner for owner in owners):
            return each
        os.killpg(each.pid, signal.SIGCONT)
    return None


def _is_at_work(process: Forked) -> bool:
    """Return whether the process has a child, which is a program of a turn."""
    return children(process.pid) != []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.night)], indirect=True)
def test_kills_of_servers_and_workers_leave_each_job_with_one_pull_request(database_url: str, tmp_path: Path) -> None:
    require_sandbox()
    chance = seeded(20261121)
    environ = {"READERSHIP_DATABASE_URL": database_url, "READERSHIP_JOB_LEASE_S": str(LEASE_S), **SECRETS}
    with make_site(tmp_path) as site, ExitStack() as stack:
        site.running = Running(tmp_path / "data", environ=environ)
        site.running.start()
        stack.callback(site.running.kill)
        site.set_up(*command("sh", "-c", ALONE))
        workers = [stack.enter_context(worker(site.running)) for _ in range(2)]
        jobs: list[str] = []
        engine = database.connect(database_url)
        stack.callback(engine.close)

        def stopped_in_a_turn() -> Forked | None:
            _fill_slots(site, jobs)
            return _stopped_in_a_turn(engine, workers)

        for kill in range(KILLS):
            _fill_slots(site, jobs)
            target = ("server", "busy", "idle")[kill % 3]
            threading.Event().wait(chance.random() / 2)  # a random moment of the turns
            if target == "server":
                site.running.kill()
                site.running.start()
                continue
            if target == "busy":
                chosen = until(stopped_in_a_turn, END_S)
            else:
                chosen = chance.choice([each for each in workers if not _is_at_work(each)] or workers)
            _kill(chosen)
            workers[workers.index(chosen)] = stack.enter_context(worker(site.running))
        _check(site, jobs)


def test_job_continues_on_another_machine_and_has_one_pull_request(postgresql: str, tmp_path: Path) -> None:
    """Run two data folders on one database: unpushed work is repeated on the other machine, pushed work is not."""
    require_sandbox()
    url = new_database(postgresql)
    environ = {"READERSHIP_DATABASE_URL": url, "READERSHIP_JOB_LEASE_S": str(LEASE_S), **SECRETS}
    first, second = (Running(tmp_path / name, environ=environ) for name in ("first", "second"))
    engine = database.connect(url)
    with make_site(tmp_path) as site, ExitStack() as stack:
        stack.callback(engine.close)
        program = tmp_path / "programs" / "agent"
        program.parent.mkdir()
        program.write_text("echo at work; sleep 1000")
        store_configuration(engine, site, "sh", str(program), is_sandboxed=True, readable=(str(program.parent),))

        def log(id: str) -> str:
            return "".join(f"{entry.text}\n" for entry in journal.read(engine, id)[0])

        def completed(id: str) -> str | None:
            until(lambda: store.find(engine, PROJECT, id).status != "active", END_S)
            assert store.find(engine, PROJECT, id).status == "completed", log(id)
            return store.find(engine, PROJECT, id).pull_request

        killed = stack.enter_context(worker(first))
        id = store.create(engine, PROJECT, "Write a page", None, 1).job.id
        until(lambda: "at work" in log(id), END_S)
        program.write_text(WRITE_PAGE)
        _kill(killed)
        second.data.mkdir()
        (second.data / "lake").symlink_to(first.data / "lake")
        killed = stack.enter_context(worker(second))
        assert completed(id) == site.forge.link(site.pulls(id)[0])
        assert "begins again, attempt 2" in log(id)
        assert (len(site.pulls(id)), site.pushed(id)) == (1, ["First", "Write a page"])

        def kill() -> None:
            site.forge.before_create = lambda: None
            _kill(killed)

        site.forge.before_create = kill  # the worker dies before it gets the response to the creation
        id = store.create(engine, PROJECT, "Another", None, 2).job.id
        until(lambda: site.pulls(id), END_S)
        stack.enter_context(worker(first))
        assert completed(id) == site.forge.link(site.pulls(id)[0])
        assert (len(site.pulls(id)), site.pushed(id)) == (1, ["First", "Another"])
        assert (log(id).count("command has finished"), log(id).count("begins")) == (1, 2)


def _fill_slots(site: Site, jobs: list[str]) -> None:
    """Create jobs until AT_ONCE are active; every third one gets a follow-up."""
    for _ in range(AT_ONCE):
        if site.active() >= AT_ONCE:
            break
        jobs.append(site.create(f"Write page {len(jobs)}"))
        if len(jobs) % 3 == 0:
            site.message(jobs[-1], "And another")


def _check(site: Site, jobs: list[str]) -> None:
    ends = {id: site.ended(id) for id in jobs}
    for number, (id, job) in enumerate(ends.items()):
        log, home = site.log(id), site.running.data / "jobs" / id / "home"
        assert not (home / "twice").exists(), f"two agents at once\n{log}"
        prompts = [f"Write page {number}", "And another"][: 2 if number % 3 == 2 else 1]
        gave_up = TOO_MANY_ATTEMPTS in log
        assert job["status"] == "completed" or gave_up, log
        pushed = site.pushed(id)[1:]
        assert pushed == prompts or (gave_up and pushed in ([], prompts[:1], prompts[1:])), log
        assert [site.forge.link(pull) for pull in site.pulls(id)] == ([job["prLink"]] if job["prLink"] else [])
        assert bool(job["prLink"]) == bool(pushed) or gave_up, log  # the last attempt may have died after the push
    assert sum(job["status"] == "completed" for job in ends.values()) > len(jobs) // 2
    assert "begins again, attempt 2" in "".join(map(site.log, jobs))
