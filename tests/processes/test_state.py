"""Functions of `tests.processes.state` over a process that has ended, also while a file of it was open."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import state


def test_process_that_ends_between_opening_and_reading_its_files_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert (state.is_running(child.pid), state.children(child.pid)) == (True, [])

    def read_after_the_end(file: Path) -> bytes:
        with file.open("rb", buffering=0) as opened:
            child.kill()
            child.wait()
            return opened.readall()

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read_after_the_end)
        assert not state.is_running(child.pid)
    assert child.stdin is not None
    child.stdin.close()
    assert (state.is_running(child.pid), state.command_line(child.pid)) == (False, b"")
    assert state.descendants(child.pid) == []
