"""A new git server, and a job whose repository is checked out, for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.git_job import Job, job_of, site
from tests.agent.servers.git_server import GitServer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serving(tmp_path / "server") as running:
        yield running


@pytest.fixture
def job(server: GitServer, tmp_path: Path) -> Job:
    checked_out = job_of(tmp_path / "job", site(server))
    checked_out.check_out()
    return checked_out
