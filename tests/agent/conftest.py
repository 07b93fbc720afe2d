"""Fixtures: a control database with a project, a job in a sandbox, and the folder of a coding agent."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.jobs import configuration
from agent.jobs.configuration import Configuration
from tests.agent.clock import Clock
from tests.agent.job_folder import Job
from tests.agent.tools import require_sandbox
from tests.programs import skip
from tests.stores import postgresql
from warehouse.control import database, projects
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url

PROJECT = "site"
on_sqlite = pytest.mark.parametrize("control_url", ["sqlite"], indirect=True)
"""Mark of a test whose subject is not the database: other tests run its statements on PostgreSQL, too."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Yield a folder that a sandbox can show. The folders of other tests may be in /dev, which a sandbox replaces."""
    with tempfile.TemporaryDirectory(prefix="readership-") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def control_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a control database without content, on SQLite and on PostgreSQL in turn."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path_factory.mktemp("control") / "control.sqlite")
    folder = request.getfixturevalue("postgresql")
    return postgresql.new_database(folder, postgresql.control_template(folder))


@pytest.fixture
def engine(control_url: str) -> Iterator[Pool]:
    engine = database.connect(control_url)
    projects.create(engine, PROJECT, (), 0)
    settings = {"repository": "https://git.example/docs", "ref": "main", "model": "a-model"}
    configuration.store(engine, PROJECT, configuration.changed(Configuration(repository=""), settings))
    yield engine
    engine.close()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Return the folders of a job whose coding agent runs in a real sandbox."""
    require_sandbox()
    return Job(tmp_path / "data")


@pytest.fixture(scope="session")
def opencode() -> Path:
    """Return the folder of opencode: node_modules in READERSHIP_TEST_AGENTS, or the folder of the installed program."""
    if folder := os.environ.get("READERSHIP_TEST_AGENTS"):
        return Path(folder) / "node_modules"
    program = shutil.which("opencode")
    if program is None:
        skip("opencode", "export READERSHIP_TEST_AGENTS=$(.ci/agent)")
    return Path(program).resolve().parent
