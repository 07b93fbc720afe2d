"""Processes that `multiprocessing` spawns, forked from a process that has imported their modules, for tests.

A server process takes 1.9 s of processor time until it answers, of which 1.5 s is the import of its modules. A fork
takes 0.4 s. It runs the same code as a process that Python was started for: from `spawn_main` on, and with the same
parent, process group, environment, folder, files and signals. `tests/test_forked.py` compares the two.
"""

import ctypes
import fcntl
import multiprocessing.util
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

from api.server import memory

IMPORT_TIME_PREFIXES = ("PYTHON", "LD_", "MALLOC_", "ARROW_", "PROMETHEUS_")
"""Prefixes of environment variables that have an effect only before the modules are imported."""
UNBUFFERED = "PYTHONUNBUFFERED"
"""Variable with which Python does not buffer standard output and error. The process that is forked is without it."""
FLAGS = {"-B"}
"""Options of Python that have no effect on imported modules."""
SPAWN_MAIN = "spawn_main"
"""Function that a spawned process calls, and name of a forked one in /proc/PID/comm."""
_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_PR_SET_CHILD_SUBREAPER = 36
"""Option of prctl(2) with which a process becomes the parent of descendants whose parent has ended."""
_start_python = multiprocessing.util.spawnv_passfds


def spawn_by(ask: Callable[[Mapping[str, Any], Sequence[int]], int]) -> None:
    """Fork the processes that `multiprocessing` spawns from this process on, but not those of its forks.

    `ask` sends a request with file descriptors to a descendant that calls `fork_for_parent`, and returns the result.
    Python is started if its options or the variables that it reads at its start are others now.
    """
    owner, environ, lock = os.getpid(), _import_time_environ(), Lock()

    def spawn(path: bytes, args: Sequence[str | bytes], handles: Sequence[int]) -> int:
        texts = [os.fsdecode(each) for each in args]
        place = texts.index("-c")
        if os.getpid() != owner or _import_time_environ() != environ or not {*texts[1:place]} <= FLAGS:
            return _start_python(path, args, handles)
        numbers = sorted({0, 1, 2, *map(int, handles)})
        request = {
            "source": texts[place + 1],
            "arguments": texts[place + 2 :],
            "environ": dict(os.environ),
            "folder": str(Path.cwd()),
            "numbers": numbers,
        }
        with lock, _subreaper():
            return ask(request, numbers)

    multiprocessing.util.spawnv_passfds = spawn


def fork_for_parent(
    request: Mapping[str, Any],
    handles: Sequence[int],
    connection: socket.socket,
    execute: Callable[[Mapping[str, Any]], NoReturn],
) -> int:
    """Fork a child process of the process at the other end of the connection, and return its id.

    That process adopts it when the process between them ends, and then it begins.
    """
    begin, open_end = os.pipe()
    ids, send_id = os.pipe()
    between = os.fork()
    if between == 0:
        if (child := os.fork()) != 0:
            os.write(send_id, str(child).encode())
            os._exit(0)
        os.close(open_end)
        os.read(begin, 1)  # returns at the end of the pipe
        os.close(connection.detach())
        _run(request, handles, execute)
    os.waitpid(between, 0)
    for handle in (begin, open_end, send_id):
        os.close(handle)
    with os.fdopen(ids) as file:
        return int(file.read())


def ignore_signals() -> None:
    """Ignore the signals that end a service, without an effect on the processes that this one forks."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _import_time_environ() -> dict[str, str]:
    """Return the variables that Python and the modules read at their start, except those of the allocators."""
    names = [name for name in os.environ if name.startswith(IMPORT_TIME_PREFIXES)]
    return {name: os.environ[name] for name in names if name not in {*memory.CHOICES, UNBUFFERED}}


@contextmanager
def _subreaper() -> Iterator[None]:
    """Adopt a descendant whose parent ends in the block."""
    prctl = ctypes.CDLL(None).prctl
    assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _run(
    request: Mapping[str, Any], handles: Sequence[int], execute: Callable[[Mapping[str, Any]], NoReturn]
) -> NoReturn:
    """Execute a request in this process, with only the files of the request, at their numbers."""
    numbers: list[int] = request["numbers"]
    above = max([*numbers, *handles]) + 1
    moved = [fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, above) for handle in handles]
    for handle, number in zip(moved, numbers, strict=True):
        os.dup2(handle, number)
    for handle in {int(each.name) for each in Path("/proc/self/fd").iterdir()} - {*numbers}:
        with suppress(OSError):  # the descriptor with which the folder was listed
            os.close(handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.chdir(request["folder"])
    if SPAWN_MAIN in request["source"]:
        Path("/proc/self/comm").write_text(SPAWN_MAIN)
    execute(request)
