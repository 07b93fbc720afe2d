"""The lake's lock excludes other processes, and ends with its block or its process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.warehouse.site import ROOT
from warehouse.errors import LakeBusy
from warehouse.lake.lock import write_lock

LOCK = """
import sys
from pathlib import Path
from warehouse.lake.lock import write_lock

with write_lock(Path(sys.argv[1]), 30):
    print("locked", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def other_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that locks the folder until it reads a line."""
    command = [sys.executable, "-c", LOCK, folder]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until_locked(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"


def refused(folder: Path) -> str:
    """Return the message with which a wait for the lock ends."""
    with pytest.raises(LakeBusy) as caught:
        write_lock(folder, 0.1).__enter__()
    return str(caught.value)


def test_locked_lake_is_busy_and_free_when_the_block_ends(tmp_path: Path) -> None:
    busy = f"the lock of {tmp_path} was not free within 0.1 s, because another task of this process has it"
    with write_lock(tmp_path, 0):
        assert refused(tmp_path).startswith(busy)
    with write_lock(tmp_path, 0):
        pass


def test_message_names_the_process_that_has_the_lock_and_its_machine_if_it_is_another(tmp_path: Path) -> None:
    with other_process(tmp_path) as process:
        wait_until_locked(process)
        assert f"because process {process.pid} has it" in refused(tmp_path)
        (tmp_path / ".lock").write_text("7 another-container".ljust(400))
        assert "because process 7 on another-container has it" in refused(tmp_path)
        (tmp_path / ".lock").write_text("")  # an older release writes nothing
        assert "because a process has it" in refused(tmp_path)


def test_block_that_raises_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), write_lock(tmp_path, 0):
        _ = 1 / 0
    with write_lock(tmp_path, 0):
        pass


def test_locks_of_two_folders_are_independent(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with write_lock(tmp_path, 0), write_lock(tmp_path / "other", 0):
        pass


def test_lock_of_another_process_is_waited_for(tmp_path: Path) -> None:
    with other_process(tmp_path) as process:
        wait_until_locked(process)
        with pytest.raises(LakeBusy):
            write_lock(tmp_path, 0).__enter__()
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        with write_lock(tmp_path, 30):
            pass


def test_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    with other_process(tmp_path) as process:
        wait_until_locked(process)
        process.kill()
        process.wait()
        with write_lock(tmp_path, 0):
            pass
