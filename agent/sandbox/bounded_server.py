"""HTTP server on a Unix socket for an untrusted client, with limits on connections, bytes and time.

The client cannot use up the threads, file descriptors or memory of the server's process.
"""

import io
import socket
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

CONNECTIONS_MAX = 32
"""Maximum number of connections at once. Each uses a thread and a file descriptor; coding agents open one to ten."""
HEAD_BYTES_MAX = 64 * 1024
"""Maximum size of the request line and headers, in bytes."""
HEAD_S = 60.0
"""Deadline for the head of a request, in seconds after the end of the previous request. It also closes idle
connections."""
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
UNQUOTED = str.maketrans({'"': "'", "\\": "/"})


class RequestTooLarge(Exception):
    """A request exceeds its size limit."""


class Incoming(io.RawIOBase):
    """Reading side of a connection, with a byte limit and a deadline. Reading is refused before the first `allow`.

    A timeout of the socket starts again with each byte, so a client that sends one byte at a time would never exceed
    it.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left_bytes = 0
        self._deadline_s = 0.0

    def allow(self, size_bytes: int, limit_s: float) -> None:
        """Allow `size_bytes` more bytes, which must arrive within `limit_s` seconds."""
        self._left_bytes = size_bytes
        self._deadline_s = time.monotonic() + limit_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read available bytes into the buffer. Return their number, 0 at the end of the connection.

        Raises:
            RequestTooLarge: more bytes arrived than are allowed.
            TimeoutError: the deadline has passed.
        """
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the deadline has passed")
        self._connection.settimeout(left_s)
        size = self._connection.recv_into(buffer)
        self._left_bytes -= size
        if self._left_bytes < 0:
            raise RequestTooLarge
        return size


class BoundedServer(ThreadingMixIn, UnixStreamServer):
    """Server with a thread for each connection. Connections beyond CONNECTIONS_MAX are answered with 503."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, path: str, handler: type["BoundedHandler"]) -> None:
        super().__init__(path, handler)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._open) >= CONNECTIONS_MAX:  # only this thread adds connections
            with suppress(OSError):
                request.settimeout(0)
                request.sendall(BUSY)
            self.shutdown_request(request)
            return
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Close all connections too: without a sandbox, a process that outlives the agent may have some."""
        super().server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing if a client disconnects during a response."""


class BoundedHandler(BaseHTTPRequestHandler):
    """Handler of a connection. A subclass responds to each request in `forward`, and calls `incoming.allow` before it
    reads the body.
    """

    protocol_version = "HTTP/1.1"
    request_version, requestline = "HTTP/1.1", ""  # until the request line is parsed

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.incoming = Incoming(self.connection)
        self.rfile = io.BufferedReader(self.incoming)

    def handle_one_request(self) -> None:
        """Respond to a request, or close the connection if no complete head arrives within HEAD_S."""
        self.incoming.allow(HEAD_BYTES_MAX, HEAD_S)
        try:
            super().handle_one_request()
        except RequestTooLarge:
            self.refuse(431, f"the head of a request is limited to {HEAD_BYTES_MAX} bytes")

    def do_GET(self) -> None:
        self.forward()

    def do_POST(self) -> None:
        self.forward()

    do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_PUT = do_POST  # noqa: N815  # looked up by these names

    def forward(self) -> None:
        raise NotImplementedError

    def log_message(self, format: str, *args: object) -> None:
        pass

    def address_string(self) -> str:
        return "client"

    def refuse(self, status: int, reason: str) -> None:
        """Respond with an error in the JSON form of model servers, and close the connection."""
        self.close_connection = True
        body = f'{{"error": {{"message": "{reason.translate(UNQUOTED)}"}}}}'.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
