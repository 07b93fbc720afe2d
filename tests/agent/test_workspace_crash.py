"""A worker that is killed at any step leaves what another one can go on with."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.git_job import BRANCH, Job, job_of, site
from tests.agent.git_server import GitServer, serving
from tests.waiting import until

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.agent.git_job import job_of
job = job_of(Path(sys.argv[1]), sys.argv[2])
job.check_out()
(job.tree / "a").write_text("1")
made = job.commit()
Path(sys.argv[3]).write_text(made)
if sys.argv[4] == "push":
    job.push(made)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serving(tmp_path / "server") as running:
        yield running


def start(job: Job, made: Path, step: str) -> subprocess.Popen[bytes]:
    """A worker that takes the job to a step, and is killed or kills itself."""
    return subprocess.Popen([sys.executable, "-c", KILLED, job.workspace.folder, job.remote.url, made, step])


def test_between_commit_and_push(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    with start(job, tmp_path / "made", "commit") as worker:
        assert worker.wait(60) == -signal.SIGKILL
    made = (tmp_path / "made").read_text()
    assert not job.is_pushed(made)
    assert job.commit() == made
    job.push(made)
    assert server.log("team/site", BRANCH) == ["Do it", "First"]


def test_after_the_push_and_before_it_is_noted(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    with start(job, tmp_path / "made", "push") as worker:
        assert worker.wait(60) == -signal.SIGKILL
    made = (tmp_path / "made").read_text()
    assert job.is_pushed(made)
    job.push(made)
    assert server.log("team/site", BRANCH) == ["Do it", "First"]


def test_during_the_push(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    server.hook("team/site", f"touch {began}; until [ -e {go_on} ]; do sleep 0.05; done")
    with start(job, tmp_path / "made", "push") as worker:
        until(began.exists, within_s=60)
        worker.kill()
        worker.wait(60)
    go_on.touch()
    made = (tmp_path / "made").read_text()
    job.push(made)
    assert server.tip("team/site", BRANCH) == made
    assert server.log("team/site", BRANCH) == ["Do it", "First"]


def test_during_the_commit_and_the_check_out(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    (job.workspace.git / "index.lock").touch()
    assert job.commit() is not None
    (job.workspace.git / "index.lock").touch()
    (job.workspace.git / "shallow.lock").touch()
    (job.workspace.git / "HEAD.lock").touch()
    job.check_out()
