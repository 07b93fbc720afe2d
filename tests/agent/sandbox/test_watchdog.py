"""Limits on the memory and disk space that all processes of a turn use together."""

import subprocess
import sys
import threading
from pathlib import Path

from agent.sandbox.bubblewrap import MIB, Limits
from agent.sandbox.watchdog import Watchdog, memory_bytes
from tests.processes.waiting import until

ALLOCATE = "import sys; memory = b'x' * (64 << 20); print('ready', flush=True); sys.stdin.read()"
CHILD_OF_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ALLOCATE!r}])"


def start(script: str) -> subprocess.Popen[bytes]:
    """Start a Python process that has allocated 64 MiB when this returns. It ends with its standard input."""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_memory_of_grandchildren_is_measured() -> None:
    before = memory_bytes(threading.get_native_id())
    with start(CHILD_OF_CHILD) as process:
        # Half of what the grandchild allocates, because another child of this process may use less memory meanwhile.
        assert memory_bytes(threading.get_native_id()) - before >= 32 * MIB
        process.communicate()


def test_too_much_memory_is_a_reason(tmp_path: Path) -> None:
    with Watchdog([tmp_path], Limits(memory_bytes=32 * MIB)) as watchdog, start(ALLOCATE) as process:
        assert until(lambda: watchdog.reason) == "the agent's processes used more than 0.03125 GiB of memory"
        process.communicate()


def test_files_of_all_folders_count_together(tmp_path: Path) -> None:
    for name in ("tree", "home"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep/file").write_bytes(b"x" * 3 * MIB)
    folders = [tmp_path / "tree", tmp_path / "home"]
    with Watchdog(folders, Limits(disk_bytes=5 * MIB)) as watchdog:
        reason = until(lambda: watchdog.reason)
    assert reason == "the agent wrote more than 0.00488281 GiB to its work tree and home"


def test_folder_that_is_removed_is_no_reason(tmp_path: Path) -> None:
    """The files of a job are removed with its project, also while the watchdog of its turn still measures."""
    tree, home = tmp_path / "tree", tmp_path / "home"
    home.mkdir()
    with Watchdog([tree, home], Limits(disk_bytes=5 * MIB)) as watchdog:
        (home / "file").write_bytes(b"x" * 6 * MIB)
        reason = until(lambda: watchdog.reason)
    assert reason == "the agent wrote more than 0.00488281 GiB to its work tree and home"


def test_process_with_any_name_is_measured() -> None:
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, b'\\xff', 0, 0, 0);"
    before = memory_bytes(threading.get_native_id())
    with start(rename + ALLOCATE) as process:
        assert memory_bytes(threading.get_native_id()) - before >= 32 * MIB
        process.communicate()
