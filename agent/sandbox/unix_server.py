"""HTTP server on a Unix socket, in a thread, for an untrusted client: its connections and its memory are limited.

A client that sends slowly, or does not read, uses up only its own connections, until the end of its turn.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MAX = 32
"""Maximum number of connections at once. Each uses a file descriptor; coding agents open one to ten."""
HEAD_BYTES_MAX = 64 * 1024
"""Maximum size of an incomplete head (request line and headers), in bytes. A complete head may be larger by one read of
asyncio, 256 KiB."""
IDLE_S = 60
"""Time after a response until its connection is closed, in seconds."""
END_S = 5.0
"""Time that the end of the server may take, in seconds: the look-up of a host name cannot be interrupted."""
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"


class _Connection(H11Protocol):
    """Connection that is refused beyond CONNECTIONS_MAX. uvicorn's limit would count open connections at a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.write(BUSY)
            transport.close()


class _Server(uvicorn.Server):
    """Server that ends at once, also if it has open connections: a process that outlives the agent may have some."""

    def __init__(self, config: uvicorn.Config, on_end: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._on_end = on_end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)
        await self._on_end()


@contextmanager
def serving(app: ASGIApp, path: Path, on_end: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Serve the app at the Unix socket `path` inside the `with` block; call `on_end` after its last request."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",  # the client could fill the log
        access_log=False,
        server_header=False,
        date_header=False,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=0,
    )
    server = _Server(config, on_end)
    thread = threading.Thread(target=server.run, args=([listener],), name="gateway", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(END_S)
