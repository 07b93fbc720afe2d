"""A process that is forked in place of a start of Python has what a started one would have."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from tests.processes import command_line
from tests.running import Running
from tests.waiting import server_processes, started_processes

STATUS = 7
_SPAWN = multiprocessing.get_context("spawn")


def describe(connection: Connection) -> None:
    """Send what this process has, and end with STATUS."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    description = {
        "parents": (os.getppid(), parent.pid),
        "group and session": (os.getpgrp(), os.getsid(0)),
        "folder": str(Path.cwd()),
        "environment": {**os.environ},
        "files": sorted(each.name for each in Path("/proc/self/fd").iterdir() if each.exists()),
        "errors": str(Path("/proc/self/fd/2").readlink()),
        "signals": [signal.getsignal(number) == signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGINT)],
        "arguments": sys.argv,
    }
    connection.send(description)
    sys.exit(STATUS)


def described() -> dict[str, Any]:
    """Return what a spawned process has, which must end with STATUS."""
    ours, theirs = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=describe, args=(theirs,))
    process.start()
    theirs.close()
    description: dict[str, Any] = ours.recv()
    process.join()
    assert process.exitcode == STATUS
    return description


def command_line_of(process: SpawnProcess) -> bytes:
    assert process.pid is not None
    return command_line(process.pid)


def wait_for_end(connection: Connection) -> None:
    connection.recv()


def test_spawned_process_is_forked_and_has_what_a_started_one_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOR_A_CHILD", "its value")
    environment = {**os.environ}
    as_forked = described()
    monkeypatch.setenv("PYTHONUTF8", "1")  # with such a variable Python is started
    started = described()
    for description in (as_forked, started):
        assert environment.items() <= description.pop("environment").items()
    assert as_forked == started
    assert as_forked["parents"] == (os.getpid(), os.getpid())


def test_killed_spawned_process_has_its_signal_as_status() -> None:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=wait_for_end, args=(theirs,))
    process.start()
    assert b"tests import forked" in command_line_of(process)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    ours.close()
    theirs.close()


def test_server_processes_are_forked_and_are_children_of_the_supervisor(start: Callable[..., Running]) -> None:
    service = start(processes=2)
    assert service.process is not None
    pids = started_processes(service)
    assert pids == server_processes(service.process.pid)
    assert all(b"tests import forked" in command_line(pid) for pid in pids)
    os.kill(pids[0], signal.SIGKILL)
    assert service.stop() == 0
