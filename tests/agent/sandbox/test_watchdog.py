"""Limits on the memory and disk space that all processes of a turn use together."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.sandbox import watchdog
from agent.sandbox.bubblewrap import MIB, Limits
from agent.sandbox.watchdog import Watchdog, memory_bytes
from tests.processes.waiting import until

ALLOCATE = "import sys; memory = b'x' * (128 << 20); print('ready', flush=True); sys.stdin.read()"
CHILD_OF_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ALLOCATE!r}])"
RENAMED = "import ctypes; ctypes.CDLL(None).prctl(15, b'\\xff', 0, 0, 0);" + ALLOCATE


def start(script: str) -> subprocess.Popen[bytes]:
    """Start a Python process that has allocated 128 MiB when this returns. It ends with its standard input."""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("script", [CHILD_OF_CHILD, RENAMED], ids=["grandchild", "any name"])
def test_memory_of_grandchildren_and_of_processes_with_any_name_is_measured(script: str) -> None:
    with ThreadPoolExecutor(1) as thread:  # of its own: another child of this one may use less memory meanwhile
        id, starting = thread.submit(threading.get_native_id), thread.submit(start, script)
        with starting.result() as process:
            assert memory_bytes(id.result()) >= 128 * MIB
            process.communicate()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_child_that_has_not_executed_its_program_has_not_the_memory_of_its_parent() -> None:
    (reader, writer), ended = os.pipe(), os.pipe()

    def wait_for_the_end() -> None:
        os.write(writer, b".")
        os.read(ended[0], 1)

    thread = threading.Thread(target=lambda: subprocess.run(["true"], check=True, preexec_fn=wait_for_the_end))
    thread.start()
    assert os.read(reader, 1) == b"."
    assert memory_bytes(thread.native_id or 0) == 0
    os.write(ended[1], b".")
    thread.join()
    for each in (*ended, reader, writer):
        os.close(each)


def test_too_much_memory_is_a_reason(tmp_path: Path) -> None:
    with Watchdog([tmp_path], Limits(memory_bytes=32 * MIB)) as watched, start(ALLOCATE) as process:
        assert until(lambda: watched.reason) == "the agent's processes used more than 0.03125 GiB of memory"
        process.communicate()


@pytest.mark.parametrize("reserve", ["MEMORY_RESERVE_BYTES", "DISK_RESERVE_BYTES"])
def test_too_little_memory_or_disk_space_of_the_machine_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reserve: str
) -> None:
    monkeypatch.setattr(watchdog, reserve, 1 << 60)
    with Watchdog([tmp_path], Limits()) as watched:
        assert f"less than {1 << 40} MiB" in (until(lambda: watched.reason) or "")
    assert watched.fills_disk == (reserve == "DISK_RESERVE_BYTES")


@pytest.mark.parametrize("sizes_mib", [{"tree": 3, "home": 3}, {"home": 6}], ids=["both", "one was removed"])
def test_files_of_all_folders_count_together_and_a_removed_one_is_no_reason(
    tmp_path: Path, sizes_mib: dict[str, int]
) -> None:
    """The files of a job are removed with its project, also while the watchdog of its turn still measures."""
    with Watchdog([tmp_path / "tree", tmp_path / "home"], Limits(disk_bytes=5 * MIB)) as watched:
        for name, size_mib in sizes_mib.items():
            (tmp_path / name / "deep").mkdir(parents=True)
            (tmp_path / name / "deep/file").write_bytes(b"x" * size_mib * MIB)
        reason = until(lambda: watched.reason)
    assert reason == "the agent wrote more than 0.00488281 GiB to its work tree and home"
