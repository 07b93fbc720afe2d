"""The HTTP server of one process."""

import gc
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from api import app, logs
from api.server import connections, memory
from api.settings import Settings

DRAIN_S = 10
"""Timeout for the requests in flight of a stopping server process, in seconds. By default Docker kills after 10 s, and
systemd after 90 s."""
GC_THRESHOLD = (10_000, 20, 50)
"""Thresholds of Python's garbage collector, above its defaults because requests create few cyclic objects."""


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
        if self.should_exit:  # the signal arrived while the app started
            self._stop_claiming()
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server, and stop claiming queued turns of agent jobs at once.

        The app's lifespan stops the worker of agent jobs too, but only after the last response.
        """
        self._on_end()
        if self.started:
            self._stop_claiming()
        super().handle_exit(sig, frame)

    def _stop_claiming(self) -> None:
        if state := self.lifespan.state.get("running"):
            state.background.agents.stop_claiming()


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
