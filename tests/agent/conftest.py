"""What agents need on this machine. In CI a tool that is not there is a failure; elsewhere its tests are skipped."""

import os
import shutil
from pathlib import Path

import pytest

from agent import sandbox
from tests.agent.jobs import Job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job whose agent runs in a real box."""
    if reason := sandbox.missing():
        _lacking(reason)
    return Job(tmp_path / "data")


@pytest.fixture(scope="session")
def opencode() -> Path:
    """The folder that opencode is installed in: node_modules of READERSHIP_TEST_AGENTS, or that of the program."""
    if folder := os.environ.get("READERSHIP_TEST_AGENTS"):
        return Path(folder) / "node_modules"
    program = shutil.which("opencode")
    if program is None:
        _lacking("opencode is not installed: npm install --prefix FOLDER opencode-ai, READERSHIP_TEST_AGENTS=FOLDER")
    return Path(program).resolve().parent


def _lacking(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
