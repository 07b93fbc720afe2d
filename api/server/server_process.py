"""The entry point of a server process, which the supervisor starts."""

import socket
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from api.server import shared_counters
from api.server.service_lock import ServiceLock
from api.settings import Settings


def main(
    number: int, counters: Path, listener: socket.socket, lock: ServiceLock, reports: Connection, settings: Settings
) -> None:
    """Serve HTTP until SIGTERM. The process owns a share of the lock until it ends.

    `reports` is a non-blocking pipe, into which the process sends one message when it has started.
    """
    shared_counters.join(counters, number)
    from api.server import http_server  # noqa: PLC0415  # imports `api.metrics`: after `join`, and after the fork

    def report() -> None:
        with suppress(BlockingIOError):  # the pipe is full of messages of earlier processes
            reports.send_bytes(b".")

    http_server.run(partial(http_server.process_app, settings), listener, settings, on_start=report)
