"""The processes of a running service: one, or a supervisor with several server processes that share a socket."""

import gc
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from api import app, logs
from api.errors import AddressInUse
from api.http.rate_limit import RateLimit
from api.server import connections, memory, server_process, shared_counters
from api.server.service_lock import ServiceLock
from api.server.supervisor import Supervisor
from api.settings import Settings

DRAIN_S = 10
"""Timeout for the requests in flight of a stopping server process, in seconds. By default Docker kills after 10 s, and
systemd after 90 s."""
BACKLOG = 2048
"""Maximum number of connections that wait to be accepted."""
ALL_INTERFACES = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # compared, not bound
"""Addresses that mean all interfaces, each with the address that a browser on this machine uses."""
GC_THRESHOLD = (10_000, 20, 50)
"""Thresholds of Python's garbage collector, above its defaults because requests create few cyclic objects."""


def serve(settings: Settings, listener: socket.socket, processes: int, lock: ServiceLock) -> None:
    """Serve until SIGTERM or SIGINT; then answer the requests in flight, load the hot log, and return.

    Raises:
        SystemExit: no server process could start, or a server process did not end and was killed.
    """
    connections.raise_descriptor_limit()
    _forget_limits(settings.limits)
    # Created before the processes start: two processes that create a SQLite file at once get "database is locked".
    RateLimit(settings.limits, settings.beacons_per_minute, settings.run_secret).close()
    if processes == 1:
        run(partial(process_app, settings), listener, settings, lock.mark_ending)
        status = 0
    else:
        counters = settings.run / "metrics"
        shared_counters.create(counters, processes)
        started, reports = multiprocessing.Pipe(duplex=False)
        os.set_blocking(reports.fileno(), False)  # the reports are never read: a full pipe must not block a process
        arguments = (counters, listener, lock, reports, settings)
        status = Supervisor(server_process.main, arguments, processes, has_started=started.poll).run(lock.mark_ending)
    _forget_limits(settings.limits)
    if status:
        sys.exit(status)


def run(
    factory: Callable[[], ASGIApp],
    listener: socket.socket,
    settings: Settings,
    on_end: Callable[[], None] = lambda: None,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve the app that `factory` creates in this process, until a signal ends the process.

    `on_start` is called once the server accepts connections, and `on_end` by the signal's handler.
    """
    server = _Server(_config(factory, settings), on_end, on_start)
    for number in (signal.SIGTERM, signal.SIGINT):
        # Handles a signal that arrives before uvicorn sets the same handler. uvicorn raises the signal again at its
        # end, and because of this handler the exit status is 0.
        signal.signal(number, server.handle_exit)
    try:
        server.run(sockets=[listener])
    finally:
        gc.unfreeze()  # otherwise DuckDB's bindings print the objects that `configure_process` froze as leaks


class _Server(uvicorn.Server):
    """Server that calls `on_start` when it accepts connections, and `on_end` at the signal that ends it."""

    def __init__(self, config: uvicorn.Config, on_end: Callable[[], None], on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_end, self._on_start = on_end, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server, and stop claiming queued turns of agent jobs at once.

        The app's lifespan stops the worker of agent jobs too, but only after the last response.
        """
        self._on_end()
        if self.started and (state := self.lifespan.state.get("running")):
            state.agents.stop_claiming()
        super().handle_exit(sig, frame)


def _config(factory: Callable[[], ASGIApp], settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        factory,
        factory=True,
        loop="uvloop",
        http=connections.with_base_url(settings.base_url),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=DRAIN_S,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at host and port; port 0 is any free port.

    Raises:
        AddressInUse: the address cannot be bound.
    """
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


def process_app(settings: Settings) -> ASGIApp:
    """Return the app of one server process."""
    configure_process(settings.log_level)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True, name="parent").start()
    return app.create(settings)


def configure_process(log_level: str) -> None:
    """Configure the log, the garbage collection and the allocators of a server process.

    Imported objects live as long as the process. They are frozen, so that the collector does not visit them: with
    Python's defaults, the collector took a third of the processor time of a small post.
    """
    logs.configure(log_level)
    memory.limit_heaps()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)


def _end_with(sentinel: int) -> None:
    """Wait until the parent process has ended, also by SIGKILL, and then send SIGTERM to this process."""
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _forget_limits(file: Path) -> None:
    """Delete the counts of beacons: each run of a service begins with new counts."""
    for each in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        each.unlink(missing_ok=True)
