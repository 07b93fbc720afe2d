"""Processes end with the block of a test that fails."""

import signal
import subprocess

import pytest

from tests.processes.waiting import killed_on_failure


def test_process_of_a_block_that_fails_is_killed() -> None:
    failure = pytest.raises(AssertionError, match="not so")
    with failure, subprocess.Popen(["sleep", "1000"]) as process, killed_on_failure(process):
        raise AssertionError("not so")
    assert process.returncode == -signal.SIGKILL
