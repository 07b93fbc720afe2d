"""An HTTP server on a Unix socket for a client that is not trusted: connections, bytes and time are bounded.

One client cannot use up the threads, descriptors or memory of the process that the server is in.
"""

import io
import socket
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

CONNECTIONS_MAX = 32
"""Maximum number of connections at once. Each takes a thread and a descriptor; coding agents use one to ten."""
HEAD_BYTES_MAX = 64 * 1024
HEAD_S = 60.0
"""Deadline for the head of a request, in seconds from the end of the previous one. It ends idle connections too."""
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
UNQUOTED = str.maketrans({'"': "'", "\\": "/"})


class TooMuch(Exception):
    """More bytes came than are allowed."""


class Incoming(io.RawIOBase):
    """The reading side of a connected socket, with a limit of bytes and a deadline. Nothing is allowed at first.

    A socket's own timeout begins again with each byte: a client that sends one now and then would never meet it.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left_bytes = 0
        self._deadline_s = 0.0

    def allow(self, size_bytes: int, limit_s: float) -> None:
        """Allow so many bytes from now on, all of which must come within `limit_s` seconds."""
        self._left_bytes = size_bytes
        self._deadline_s = time.monotonic() + limit_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has come, at most as much as the buffer takes; 0 at the end.

        Raises:
            TooMuch: more has come than is allowed.
            TimeoutError: the deadline is over.
        """
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the deadline is over")
        self._connection.settimeout(left_s)
        size = self._connection.recv_into(buffer)
        self._left_bytes -= size
        if self._left_bytes < 0:
            raise TooMuch
        return size


class BoundedServer(ThreadingMixIn, UnixStreamServer):
    """A thread for each connection, and at most CONNECTIONS_MAX of them; one more is answered 503 and closed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, path: str, handler: type["BoundedHandler"]) -> None:
        super().__init__(path, handler)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._open) >= CONNECTIONS_MAX:  # no other thread adds to it
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
        """Close the connections too: a process that an agent without a box left behind may have some."""
        super().server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing if a client disconnects in the middle of an answer."""


class BoundedHandler(BaseHTTPRequestHandler):
    """A connection, whose requests a subclass answers in `forward`.

    Call `incoming.allow` before a body is read.
    """

    protocol_version = "HTTP/1.1"
    request_version, requestline = "HTTP/1.1", ""  # until a request line is read

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.incoming = Incoming(self.connection)
        self.rfile = io.BufferedReader(self.incoming)

    def handle_one_request(self) -> None:
        """Answer a request, or close a connection on which no head comes within HEAD_S."""
        self.incoming.allow(HEAD_BYTES_MAX, HEAD_S)
        try:
            super().handle_one_request()
        except TooMuch:
            self.refuse(431, f"a request's head has at most {HEAD_BYTES_MAX} bytes")

    def do_GET(self) -> None:
        self.forward()

    def do_POST(self) -> None:
        self.forward()

    def do_DELETE(self) -> None:
        self.forward()

    def forward(self) -> None:
        raise NotImplementedError

    def log_message(self, format: str, *args: object) -> None:
        pass

    def address_string(self) -> str:
        return "client"

    def refuse(self, status: int, reason: str) -> None:
        """Answer an error as the model servers do, and close the connection."""
        self.close_connection = True
        body = f'{{"error": {{"message": "{reason.translate(UNQUOTED)}"}}}}'.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
