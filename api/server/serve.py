"""The processes of a running service: one, or a supervisor with several server processes that share a socket.

The supervisor serves nothing, so this module does not import the app, which takes 0.8 s.
"""

import multiprocessing
import os
import resource
import shutil
import socket
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from api.errors import AddressInUse
from api.http.rate_limit import RateLimit
from api.server.service_lock import ServiceLock
from api.server.supervisor import Supervisor
from api.settings import Settings

BACKLOG = 2048
"""Maximum number of connections that wait to be accepted."""
ALL_INTERFACES = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # compared, not bound
"""Addresses that mean all interfaces, each with the address that a browser on this machine uses."""
COUNTER_TYPES = ("counter", "histogram")
"""Types of shared metrics. Gauges are computed at each scrape: the gauge of a dead process is meaningless."""
COUNTER_BYTES = 1 << 20
"""Size of a file of counters, in bytes. A series takes about 200 bytes, and there are fewer than 4,000 series."""
DESCRIPTORS_MAX = 16_384
"""Soft limit of file descriptors that a process sets, if its hard limit allows."""


def import_app(processes: int) -> None:
    """Import the app if this process will serve it: before the service is announced, because the import takes time."""
    if processes == 1:
        import_module("api.server.http_server")


def serve(settings: Settings, listener: socket.socket, processes: int, lock: ServiceLock) -> None:
    """Serve until SIGTERM or SIGINT; then answer the requests in flight, load the hot log, and return.

    Raises:
        SystemExit: no server process could start, or a server process did not end and was killed.
    """
    _raise_descriptor_limit()
    _forget_limits(settings.limits)
    # Created before the processes start: two processes that create a SQLite file at once get "database is locked".
    RateLimit(settings.limits, settings.beacons_per_minute, settings.run_secret).close()
    if processes == 1:
        from api.server import http_server  # noqa: PLC0415  # see the module's docstring

        http_server.run(partial(http_server.process_app, settings), listener, settings, lock.mark_ending)
        status = 0
    else:
        counters = settings.run / "metrics"
        create_counters(counters, processes)
        started, reports = multiprocessing.Pipe(duplex=False)
        os.set_blocking(reports.fileno(), False)  # the reports are never read: a full pipe must not block a process
        arguments = (counters, listener, lock, reports, settings)
        supervisor = Supervisor(run_process, arguments, processes, has_started=started.poll)
        status = supervisor.run(lock.mark_ending)
    _forget_limits(settings.limits)
    if status:
        sys.exit(status)


def run_process(
    number: int, counters: Path, listener: socket.socket, lock: ServiceLock, reports: Connection, settings: Settings
) -> None:
    """Serve HTTP until SIGTERM in a process of the supervisor, which owns a share of the lock until it ends.

    `reports` is a non-blocking pipe, into which the process sends one message when it has started.
    """
    join_counters(counters, number)
    from api.server import http_server  # noqa: PLC0415  # imports `api.metrics`: after `join_counters`

    def report() -> None:
        with suppress(BlockingIOError):  # the pipe is full of messages of earlier processes
            reports.send_bytes(b".")

    http_server.run(partial(http_server.process_app, settings), listener, settings, on_start=report)


def create_counters(folder: Path, processes: int) -> None:
    """Create empty files for the counters, which each process reads to answer `/metrics` for all of them.

    prometheus_client writes the files through mmap. A write to a block that a full disk cannot provide kills the
    process (SIGBUS), so all blocks are allocated now. A file belongs to the number of a server process, not to its
    process id: a restarted process continues the counts of the dead one. Files of an earlier service are deleted.

    Raises:
        OSError: the disk has no space for the files.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(processes):
        for each in COUNTER_TYPES:
            with (folder / f"{each}_{number}.db").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, COUNTER_BYTES)


def join_counters(folder: Path, number: int) -> None:
    """Make this process count in the files of process `number`. Must be called before `api.metrics` is imported."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    from prometheus_client import values  # noqa: PLC0415  # the module reads the variable when it is imported

    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]  # has no types


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at host and port; port 0 is any free port. Raises AddressInUse."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise AddressInUse(
            f"cannot listen at {host}:{port}: {error.strerror}; choose another with --host and --port"
        ) from None
    listener.listen(BACKLOG)
    listener.set_inheritable(True)
    return listener


def url(listener: socket.socket) -> str:
    """Return the URL of the listener for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    shown = ALL_INTERFACES.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


def described_url(listener: socket.socket) -> str:
    """Return the URL of the listener for a message.

    For a listener on all interfaces the message has an address that other machines can use, if there is one.
    """
    host, port = listener.getsockname()[:2]
    if host not in ALL_INTERFACES:
        return url(listener)
    address = _outward_address(listener.family)
    if address is None:
        return f"{url(listener)}, on all interfaces"
    shown = f"[{address}]" if ":" in address else address
    return f"http://{shown}:{port}, on all interfaces, on this machine at {url(listener)}"


def _outward_address(family: int) -> str | None:
    """Return the address from which this machine would send to other networks, or None without a route.

    No packet is sent: connecting a UDP socket only selects the route.
    """
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1", 9))
        except OSError:
            return None
        address: str = probe.getsockname()[0]
        return address


def _raise_descriptor_limit() -> None:
    """Raise the soft limit of open files of this process towards the hard limit. Child processes inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _forget_limits(file: Path) -> None:
    """Delete the counts of beacons: each run of a service begins with new counts."""
    for each in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        each.unlink(missing_ok=True)
