"""Processes that are forked from a process that has imported the program, for tests.

`readership serve` takes 1.2 s of processor time until it answers, of which 1.0 s is the import of its modules. Here one
process per test run imports the modules, and each new process is a fork of it, which answers after 0.16 s. A fork runs
the same code as a process that was started by its command, and it can be killed at any point. The start by the command
itself has tests of its own, such as those of `tests/api/test_logs.py`.

The processes that `multiprocessing` spawns are forked, too: see `tests/spawned.py`.
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

from api.server import memory
from tests import spawned
from tests.spawned import IMPORT_TIME_PREFIXES, UNBUFFERED

ROOT = Path(__file__).parents[1]
PROGRAM = "from api.cli.main import run; run()"
"""Source of the console script `readership`."""
COMMANDS = ("serve", "worker", "import")
"""Commands whose modules the process that is forked imports."""
MAINTENANCE = tuple(f"warehouse.maintenance.{name}" for name in ("compact", "erase", "load", "reclassify", "recount"))
"""Further modules that this process imports."""
BEFORE_METRICS = (
    "agent.worker.child_process",
    "api.cli.main",
    "api.dashboard.accounts.sessions",
    "api.dashboard.charts.time_chart",
    "api.dashboard.web.assets",
    "api.dashboard.web.forms",
    "api.dashboard.web.locale",
    "api.data_folder",
    "api.http.auth",
    "api.routes.reports.reference",
    "api.server.server_process",
    "api.server.supervisor",
    "babel.dates",
    "ingest.classification.explain",
    "ingest.hotlog.writer",
    "ingest.imports.prepared.in_workers",
    "jinja2",
    "starlette.applications",
    "starlette.routing",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "warehouse.report.reports",
    *MAINTENANCE,
)
"""Modules that a process imports from which server processes of one service are forked. None of them imports
prometheus_client, which decides when it is imported whether it shares its counters with other processes."""
BUFFERED = (UNBUFFERED, "")
"""Value that has the effect of no value."""

WORKERS = "--workers"
"""Option of the number of server processes."""
REQUEST_BYTES_MAX, HANDLES_MAX = 200_000, 200
"""Maximum size of a request, and maximum number of the file descriptors that are sent with it."""


class Forked:
    """A forked process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, parent: "_Forking", pid: int) -> None:
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
    parent = _parent(BEFORE_METRICS if WORKERS in request["arguments"] else ())
    return Forked(parent, parent.ask(request))


def can_fork(environ: Mapping[str, str]) -> bool:
    """Return whether these variables have the same effect in a forked process as in one that is started."""
    return not any(
        name.startswith(IMPORT_TIME_PREFIXES) for name, value in environ.items() if (name, value) != BUFFERED
    )


def spawn_by_fork() -> None:
    """Fork the processes that `multiprocessing` spawns from this process on."""
    spawned.spawn_by(lambda request, handles: _parent(BEFORE_METRICS).ask(request, handles))


class _Forking:
    """A child process that can be forked. Safe for use by several threads."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._lock = connection, threading.Lock()

    def ask(self, request: Mapping[str, Any], handles: Sequence[int] = ()) -> int:
        """Send a request, and return the response: the id of a new process, or an exit status."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], handles)
            return int(self._socket.recv(REQUEST_BYTES_MAX))


@cache
def _parent(modules: Sequence[str]) -> _Forking:
    """Start a process that imports these modules, or those of the commands without any, and return it."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", f"from tests import forked; forked.serve({theirs.fileno()}, {modules})"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != UNBUFFERED},
            pass_fds=(theirs.fileno(),),
        )
    atexit.register(process.wait)
    atexit.register(ours.close)  # called first
    return _Forking(ours)


def serve(control: int, modules: Sequence[str]) -> None:
    """Import modules, and fork this process for each request on the control socket, until the socket ends."""
    if modules:
        memory.choose_allocators()
        for module in modules:
            import_module(module)
    else:
        main = import_module("api.cli.main").main
        for command in COMMANDS:
            main.get_command(None, command)
        for module in MAINTENANCE:
            import_module(module)
    gc.collect()
    gc.freeze()  # else the collector of each child writes to, and thereby copies, the memory that it shares
    with socket.socket(fileno=control) as connection:
        _respond(connection)
    os._exit(0)  # at a usual end, the bindings of DuckDB print the objects that were frozen as leaks


def _respond(connection: socket.socket) -> None:
    """Respond to the requests on a socket, until it ends."""
    while True:
        message, handles, *_ = socket.recv_fds(connection, REQUEST_BYTES_MAX, HANDLES_MAX)
        if not message:
            return
        request = json.loads(message)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        elif "numbers" in request:
            answer = spawned.fork_for_parent(request, handles, connection, _execute)
        else:
            answer = os.fork()
            if answer == 0:
                os.close(connection.detach())
                _run(request)
        for handle in handles:
            os.close(handle)
        connection.send(str(answer).encode())


def _run(request: Mapping[str, Any]) -> NoReturn:
    """Run the source of a request as the main program of this process."""
    os.setsid()
    for name, stream in (("log", sys.stderr), ("output", sys.stdout)):
        file = os.open(request[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(file, stream.fileno())
        os.close(file)
    if WORKERS in request["arguments"]:
        _fork_server_processes()
    _execute(request)


def _fork_server_processes() -> None:
    """Fork this process before it has threads; the fork forks the processes that this process spawns later."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        spawned.ignore_signals()
        _respond(theirs)
        os._exit(0)
    theirs.close()
    spawned.spawn_by(_Forking(ours).ask)


def _execute(request: Mapping[str, Any]) -> NoReturn:
    """Run the source of a request with its environment and its arguments."""
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    atexit.register(gc.unfreeze)  # else, at the end, the bindings of DuckDB print the frozen objects as leaks
    sys.argv = ["readership", *request["arguments"]]
    exec(request["source"], {"__name__": "__main__"})
    raise SystemExit
