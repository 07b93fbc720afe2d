"""Whatever is killed: every job ends, no step is done twice at once, and no job has two pull requests."""

import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agent.jobs import journal, store
from agent.jobs.queue import WORN_OUT
from tests.agent.site import END_S, SECRETS, Site, command, configured, site
from tests.agent.tools import require_sandbox
from tests.postgresql import new_database
from tests.running import COMMAND, PROJECT, Running
from tests.waiting import until
from warehouse.control import database

KILLS = 20
AT_ONCE = 3
LEASE_S = 2
ALONE = 'flock -n /home/agent/lock sh -c "sleep 0.7; cat > page.md" || touch /home/agent/twice'
"""An agent that tells whether another of its job is at work: its home is the same for all of them."""
WRITE_PAGE = "cat > page.md"


@contextmanager
def worker(running: Running) -> Iterator[subprocess.Popen[bytes]]:
    """`readership worker` beside the service."""
    with (
        running.log.open("ab") as log,
        subprocess.Popen(
            [COMMAND, "--data", running.data, "worker"],
            stderr=log,
            env={**os.environ, **running.environ},
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_at_work(process: subprocess.Popen[bytes]) -> bool:
    """Whether a program of a turn runs in the process now."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    return any(task.read_text() for task in tasks)


@pytest.mark.timeout(900)
def test_twenty_kills_of_servers_and_workers_leave_each_job_with_one_pull_request(
    database_url: str, tmp_path: Path
) -> None:
    require_sandbox()
    chance = random.Random(20261121)
    environ = {"READERSHIP_DATABASE_URL": database_url, "READERSHIP_JOB_LEASE_S": str(LEASE_S), **SECRETS}
    with site(tmp_path) as made, ExitStack() as stack:
        made.running = Running(tmp_path / "data", environ=environ)
        made.running.start()
        stack.callback(made.running.kill)
        made.begin(*command("sh", "-c", ALONE))
        workers = [stack.enter_context(worker(made.running)) for _ in range(2)]
        jobs: list[str] = []
        for kill in range(KILLS):
            _keep_busy(made, jobs)
            victim = ("server", "busy", "idle")[kill % 3]
            threading.Event().wait(chance.random() / 2)  # to some random moment of what goes on
            if victim == "server":
                made.running.kill()
                made.running.start()
                continue
            until(lambda: any(map(_is_at_work, workers)) or not made.active(), END_S)
            wanted = [each for each in workers if _is_at_work(each) == (victim == "busy")] or workers
            chosen = chance.choice(wanted)
            _kill(chosen)
            workers[workers.index(chosen)] = stack.enter_context(worker(made.running))
        _check(made, jobs)


def test_a_job_goes_on_on_another_machine_and_has_one_pull_request(postgresql: str, tmp_path: Path) -> None:
    """Two folders over one database: what was not pushed is begun again there, and what was is not."""
    require_sandbox()
    url = new_database(postgresql)
    environ = {"READERSHIP_DATABASE_URL": url, "READERSHIP_JOB_LEASE_S": str(LEASE_S), **SECRETS}
    first, second = (Running(tmp_path / name, environ=environ) for name in ("first", "second"))
    engine = database.connect(url)
    with site(tmp_path) as made, ExitStack() as stack:
        stack.callback(engine.dispose)
        program = tmp_path / "programs" / "agent"
        program.parent.mkdir()
        program.write_text("echo at work; sleep 1000")
        configured(engine, made, "sh", str(program), is_sandboxed=True, readable=(str(program.parent),))

        def told(id: str) -> str:
            return "".join(f"{entry.text}\n" for entry in journal.read(engine, id).entries)

        def completed(id: str) -> str | None:
            until(lambda: store.find(engine, PROJECT, id).status != "active", END_S)
            assert store.find(engine, PROJECT, id).status == "completed", told(id)
            return store.find(engine, PROJECT, id).pull_request

        dies = stack.enter_context(worker(first))
        id = store.create(engine, PROJECT, "Write a page", None, 1).job.id
        until(lambda: "at work" in told(id), END_S)
        program.write_text(WRITE_PAGE)
        _kill(dies)
        dies = stack.enter_context(worker(second))
        assert completed(id) == made.forge.link(made.pulls(id)[0])
        assert "begins again, attempt 2" in told(id)
        assert (len(made.pulls(id)), made.pushed(id)) == (1, ["First", "Write a page"])

        def kill() -> None:
            made.forge.before_create = lambda: None
            _kill(dies)

        made.forge.before_create = kill  # the pull request is made, and nobody hears of it
        id = store.create(engine, PROJECT, "Another", None, 2).job.id
        until(lambda: made.pulls(id), END_S)
        stack.enter_context(worker(first))
        assert completed(id) == made.forge.link(made.pulls(id)[0])
        assert (len(made.pulls(id)), made.pushed(id)) == (1, ["First", "Another"])
        assert (told(id).count("command has finished"), told(id).count("begins")) == (1, 2)


def _keep_busy(made: Site, jobs: list[str]) -> None:
    """AT_ONCE jobs that are not done, some of them with a follow-up."""
    while made.active() < AT_ONCE:
        jobs.append(made.create(f"Write page {len(jobs)}"))
        if len(jobs) % 3 == 0:
            made.message(jobs[-1], "And another")


def _check(made: Site, jobs: list[str]) -> None:
    ends = {id: made.ended(id) for id in jobs}
    for number, (id, job) in enumerate(ends.items()):
        log, home = made.log(id), made.running.data / "jobs" / id / "home"
        assert not (home / "twice").exists(), f"two agents at once\n{log}"
        prompts = [f"Write page {number}", "And another"][: 2 if number % 3 == 2 else 1]
        assert job["status"] == "completed" or WORN_OUT in log, log
        pushed = made.pushed(id)[1:]
        assert pushed == prompts or (WORN_OUT in log and pushed in ([], prompts[:1], prompts[1:])), log
        assert [made.forge.link(pull) for pull in made.pulls(id)] == ([job["prLink"]] if job["prLink"] else [])
        assert bool(job["prLink"]) == bool(pushed) or WORN_OUT in log, log  # it may end between push and request
    assert sum(job["status"] == "completed" for job in ends.values()) > len(jobs) // 2
    assert "begins again, attempt 2" in "".join(map(made.log, jobs))
