"""SIGKILL of a worker at each git step: another worker can continue."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.git_job import BRANCH, Job, job_of, site
from tests.agent.servers.git_server import GitServer
from tests.processes.waiting import until

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.agent.git_job import job_of
job = job_of(Path(sys.argv[1]), sys.argv[2])
job.check_out()
(job.tree / "a").write_text("1")
commit_id = job.commit()
Path(sys.argv[3]).write_text(commit_id)
if sys.argv[4] == "push":
    job.push(commit_id)
os.kill(os.getpid(), signal.SIGKILL)
"""


def start(job: Job, commit_file: Path, step: str) -> subprocess.Popen[bytes]:
    """Start a process that runs the job's git steps up to `step` and then kills itself."""
    return subprocess.Popen([sys.executable, "-c", KILLED, job.workspace.folder, job.remote.url, commit_file, step])


@pytest.mark.long
@pytest.mark.parametrize("step", ["commit", "push"])
def test_last_step_of_a_killed_worker_is_recognised_and_repeatable(
    server: GitServer, tmp_path: Path, step: str
) -> None:
    job = job_of(tmp_path / "job", site(server))
    with start(job, tmp_path / "commit", step) as worker:
        assert worker.wait(60) == -signal.SIGKILL
    commit_id = (tmp_path / "commit").read_text()
    assert job.is_pushed(commit_id) == (step == "push")
    if step == "commit":
        assert job.commit() == commit_id
    job.push(commit_id)
    assert server.log("team/site", BRANCH) == ["Do it", "First"]


@pytest.mark.long
def test_push_can_be_repeated_while_the_server_still_runs_the_first_one(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    began, may_end = tmp_path / "began", tmp_path / "may-end"
    server.hook("team/site", f"touch {began}; until [ -e {may_end} ]; do sleep 0.05; done")
    with start(job, tmp_path / "commit", "push") as worker:
        until(began.exists)
        worker.kill()
        worker.wait(60)
    may_end.touch()
    commit_id = (tmp_path / "commit").read_text()
    job.push(commit_id)
    assert server.tip("team/site", BRANCH) == commit_id
    assert server.log("team/site", BRANCH) == ["Do it", "First"]


def test_lock_files_of_a_killed_git_do_not_stop_a_commit_or_a_check_out(job: Job) -> None:
    (job.tree / "a").write_text("1")
    (job.workspace.git / "index.lock").touch()
    assert job.commit() is not None
    (job.workspace.git / "index.lock").touch()
    (job.workspace.git / "shallow.lock").touch()
    (job.workspace.git / "HEAD.lock").touch()
    job.check_out()
