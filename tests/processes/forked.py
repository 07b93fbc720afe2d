"""Processes that are forked from a process that has imported the program, for tests.

`readership serve` takes 1.2 s of processor time until it answers, of which 1.0 s is the import of its modules. Here one
process per test run imports the modules, and each new process is a fork of it, which answers after 0.16 s. A fork runs
the same code as a process that was started by its command, and it can be killed at any point. The start by the command
itself has tests of its own, such as those of `tests/api/test_logs.py`.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
PROGRAM = "from api.cli.main import run; run()"
"""Source of the console script `readership`."""
COMMANDS = ("serve", "worker", "import")
"""Commands whose modules the parent process imports."""
MODULES = tuple(f"warehouse.maintenance.{name}" for name in ("compact", "erase", "load", "reclassification.reclassify"))
"""Further modules that the parent process imports."""
IMPORT_TIME_PREFIXES = ("PYTHON", "LD_", "MALLOC_", "ARROW_", "PROMETHEUS_")
"""Prefixes of environment variables that have an effect only before the modules are imported."""
UNBUFFERED = "PYTHONUNBUFFERED"
"""Variable with which Python does not buffer standard output and error. The process that is forked is without it."""
BUFFERED = (UNBUFFERED, "")
"""Value that has the effect of no value."""


class Forked:
    """A forked process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, parent: "_Parent", pid: int) -> None:
        self._parent, self.pid, self.returncode = parent, pid, None
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self.returncode is None and wait([self._handle], 0):
            self.returncode = self._parent.ask({"wait": self.pid})
            os.close(self._handle)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended, and return its exit status.

        Raises:
            subprocess.TimeoutExpired
        """
        if self.returncode is None and not wait([self._handle], timeout):
            raise subprocess.TimeoutExpired(["readership"], timeout or 0)
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    source: str,
    arguments: Sequence[object],
    environ: Mapping[str, str] | None = None,
    log: Path | None = None,
    output: Path | None = None,
) -> Forked:
    """Run Python source in a forked process that leads a new session.

    `environ` is the whole environment; by default it is that of this process. `log` receives the standard error, and
    `output` the standard output; without such a file it is lost. Standard input is empty.
    """
    request = {
        "source": source,
        "arguments": list(map(str, arguments)),
        "environ": dict(os.environ if environ is None else environ),
        "log": str(log or os.devnull),
        "output": str(output or os.devnull),
    }
    parent = _parent()
    return Forked(parent, parent.ask(request))


def can_fork(environ: Mapping[str, str]) -> bool:
    """Return whether these variables have the same effect in a forked process as in one that is started."""
    return not any(
        name.startswith(IMPORT_TIME_PREFIXES) for name, value in environ.items() if (name, value) != BUFFERED
    )


class _Parent:
    """The process that is forked. Safe for use by several threads."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            script = f"from tests.processes import forked; forked.serve({theirs.fileno()})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", script],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name != UNBUFFERED},
                pass_fds=(theirs.fileno(),),
            )
        self._socket, self._lock, self._file = ours, threading.Lock(), ours.makefile("rw")
        atexit.register(self._close)

    def ask(self, request: Mapping[str, Any]) -> int:
        """Send a request, and return the response: the id of a new process, or an exit status."""
        with self._lock:
            self._file.write(json.dumps(request) + "\n")
            self._file.flush()
            return int(self._file.readline())

    def _close(self) -> None:
        self._file.close()
        self._socket.close()
        self._process.wait()


@cache
def _parent() -> _Parent:
    return _Parent()


def serve(control: int) -> None:
    """Import the program, and fork a process for each request on the control socket, until the socket ends."""
    main = import_module("api.cli.main").main
    for name in COMMANDS:
        main.get_command(None, name)
    for name in MODULES:
        import_module(name)
    gc.collect()
    gc.freeze()  # else the collector of each child writes to, and thereby copies, the memory that it shares
    with socket.socket(fileno=control) as connection, connection.makefile("rw") as file:
        for line in iter(file.readline, ""):
            request = json.loads(line)
            if "wait" in request:
                answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
            else:
                answer = _fork(request, connection)
            file.write(f"{answer}\n")
            file.flush()
    os._exit(0)  # at a usual end, the bindings of DuckDB print the objects that were frozen as leaks


def _fork(request: Mapping[str, Any], connection: socket.socket) -> int:
    """Return the id of a new process, which runs the source of a request and leads its session already."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(connection.detach())
        os.close(reading)
        os.setsid()
        os.close(writing)
        _run(request)
    os.close(writing)
    os.read(reading, 1)  # returns at the end of the pipe
    os.close(reading)
    return pid


def _run(request: Mapping[str, Any]) -> NoReturn:
    """Run the source of a request as the main program of this process."""
    for name, stream in (("log", sys.stderr), ("output", sys.stdout)):
        file = os.open(request[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(file, stream.fileno())
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    atexit.register(gc.unfreeze)  # else, at the end, the bindings of DuckDB print the frozen objects as leaks
    sys.argv = ["readership", *request["arguments"]]
    exec(request["source"], {"__name__": "__main__"})
    raise SystemExit
