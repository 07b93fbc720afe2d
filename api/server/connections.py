"""Limits on HTTP connections, so that no client uses up the memory or the file descriptors of a process.

uvicorn limits neither the size of a head nor the number of pipelined requests, and has no timeout for a client that
does not read. Its timeout for idle connections begins after the first response, and its `limit_concurrency` refuses new
requests while idle connections stay. libuv resets each new connection once no descriptor is left.
"""

import asyncio
import fcntl
import math
import resource
import sys
import termios
from contextlib import suppress
from itertools import chain
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from starlette.types import Receive, Scope, Send
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from api import metrics
from api.client_address import unmapped
from api.http import problems
from api.http.middleware import RequestMiddleware
from api.http.problems import RETRY_AFTER_S, Problem
from api.server.response_writer import ResponseWriter

CLIENT_S = 30.0
"""Timeout in seconds for the head of a request, from the connection's start or the end of the last response, and for
READ_BYTES_MIN of a response."""
READ_BYTES_MIN = 30 * 1024
"""Minimum number of bytes of a response that a client reads in CLIENT_S, or fewer at its end: 1 KiB/s."""
HEAD_BYTES_MAX, FIELDS_MAX = 64 * 1024, 100
"""Maximum size of a head in bytes, and of its fields, whose objects take more memory than their bytes. Apache also
allows 100 fields: https://httpd.apache.org/docs/2.4/mod/core.html#limitrequestfields"""
PIPELINED_MAX = 16
"""Maximum number of pipelined requests that wait for the response before theirs. Each takes about 3 KiB."""
UNREAD_BYTES_MAX = 128 * 1024 * 1024
"""Maximum size of the responses that the clients of a process have not read, without the buffers of the kernel."""
CONNECTIONS_MAX = 10_000
"""Maximum number of connections of one process; an idle connection takes about 7 KiB."""
DESCRIPTORS_RESERVED = 256
"""File descriptors for everything but connections: databases, Parquet files, threads, agent jobs."""


def connections_max() -> int:
    """Return the maximum number of connections under the soft limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return min(CONNECTIONS_MAX, soft - min(DESCRIPTORS_RESERVED, soft // 2))


def _refusal(problem: Problem, base_url: str = "") -> RequestMiddleware:
    """Return an app that responds to each request with a problem, and closes the connection."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        response = problems.response(problem, scope["state"]["request_id"], base_url)
        response.headers["Connection"] = "close"
        scope["state"]["problem"] = problem
        await response(scope, receive, send)

    return RequestMiddleware(refuse, {}, base_url)


_RETRY = {"Retry-After": str(RETRY_AFTER_S)}
_FULL = Problem("overloaded", "the service has as many connections as it can serve", headers=_RETRY)
_LARGE_HEAD = Problem(
    "head-too-large", f"the request line and the header have more than {HEAD_BYTES_MAX} bytes or {FIELDS_MAX} fields"
)


class _Clients:
    """Connections of a server that wait for their clients, the longest wait first."""

    def __init__(self) -> None:
        self.waiting: dict[Connection, float] = {}
        """Loop time at which each connection began to wait for a request, or for its client to read."""
        self.sending: dict[Connection, None] = {}
        """Connections whose clients send a body, in the order in which they began."""
        self.unread: dict[Connection, int] = {}
        """Unread bytes of each connection at the moment its client stopped reading."""
        self.unread_bytes = 0

    def add_unread(self, connection: "Connection", size: int) -> None:
        """Add the unread bytes of a connection, and close those that have waited longest if there are too many."""
        self.unread[connection] = size
        self.unread_bytes += size
        while self.unread_bytes > UNREAD_BYTES_MAX and len(self.unread) > 1:
            next(iter(self.unread)).end()

    def end_wait(self, connection: "Connection") -> None:
        self.waiting.pop(connection, None)
        self.unread_bytes -= self.unread.pop(connection, 0)

    def remove(self, connection: "Connection") -> None:
        self.end_wait(connection)
        self.sending.pop(connection, None)


class Connection(HttpToolsProtocol):
    """An HTTP connection with limits on the head of each request, and with timeouts for its client.

    Above the maximum number, a new connection replaces another: the connection that has waited longest for a request or
    a reader, else for the rest of a body, else one with pipelined requests, which browsers do not send. If there is
    none, the new request is answered 503.
    """

    client_s: ClassVar[float] = CLIENT_S
    maximum = staticmethod(connections_max)
    full: ClassVar[RequestMiddleware] = _refusal(_FULL)
    large_head: ClassVar[RequestMiddleware] = _refusal(_LARGE_HEAD)
    _of_server: ClassVar[WeakKeyDictionary[ServerState, _Clients]] = WeakKeyDictionary()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._clients = self._of_server.setdefault(server_state, _Clients())
        self._unread_bytes: float = math.inf
        """Unread bytes when the wait began, or at the last check; infinite before the first check."""
        self._open_bytes = 0
        """Received bytes since the last head, or piece of a body, was complete."""
        self._answered: RequestResponseCycle | None = None
        """The request that is answered now, or was answered last."""
        self._delayed: tuple[RequestResponseCycle, ASGI3Application] | None = None
        """The request that is answered once the client has read the response before it."""
        self._is_refused = False
        """Whether all further requests of the connection are ignored."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._responses = ResponseWriter(transport)
        if self.client:  # the lists of trusted proxies, and the limits per client, have IPv4 addresses in this form
            self.client = (unmapped(self.client[0]), self.client[1])
        if len(self.connections) > self.maximum():
            pipelining = (each for each in self.connections if isinstance(each, Connection) and each.pipeline)
            replaced = next(chain(self._clients.waiting, self._clients.sending, pipelining), None)
            if replaced is None:
                self.app = self.full
            else:
                replaced.end()
        self._wait()
        self._timer = self.loop.call_later(self.client_s, self._check)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if self.flow.write_paused:
            self._delayed = cycle, app
            return
        self._answered, self._delayed = cycle, None
        cycle.transport = self._responses  # type: ignore[assignment]  # has the methods that a cycle calls
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clients.remove(self)
        self._timer.cancel()
        if self._answered is not None:  # uvicorn sets this only for the last request, which may be a pipelined one
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data piece by piece: libuv reads up to 250 KiB at once."""
        for start in range(0, len(data), HEAD_BYTES_MAX):
            if self._is_refused or self.transport.is_closing():
                return
            piece = data[start : start + HEAD_BYTES_MAX]
            self._open_bytes += len(piece)
            super().data_received(piece)
            if not self._is_refused and self._is_open_part_too_large():
                self._refuse_rest()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_open_head:
            super().on_header(name, value)
        else:  # a field after the body is not one of the head: https://www.rfc-editor.org/rfc/rfc9110#section-6.5.1
            metrics.TRAILERS.inc()

    def on_headers_complete(self) -> None:
        if self._is_refused:
            return
        if len(self.pipeline) >= PIPELINED_MAX:  # the client repeats the requests without a response
            self.pipeline[0][0].keep_alive, self._is_refused = False, True
            return
        if not self.flow.write_paused:
            self._clients.end_wait(self)
        if self._is_head_too_large():
            self._refuse_head()
        self._open_bytes = 0
        self._clients.sending[self] = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._clients.sending.pop(self, None)
        super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._open_bytes = 0
        if not self._is_refused:
            super().on_body(body)

    def on_response_complete(self) -> None:
        self._responses.end()
        super().on_response_complete()
        if self.cycle.response_complete or self.transport.is_closing():  # else a pipelined request is next
            self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait()
        self._unread_bytes = self._unread()
        self._clients.add_unread(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._clients.end_wait(self)
        if self.cycle.response_complete or self.transport.is_closing():
            self._wait()
        elif self._delayed is not None:
            self._start_asgi_task(*self._delayed)

    def end(self) -> None:
        """Close the connection at once."""
        self._clients.remove(self)
        self.transport.abort()

    @property
    def _has_open_head(self) -> bool:
        return self.scope is not None and "method" not in self.scope

    def _is_open_part_too_large(self) -> bool:
        """Return whether an incomplete head, or an incomplete rest of a body, is too large."""
        return self._open_bytes > HEAD_BYTES_MAX or (self._has_open_head and len(self.headers) > FIELDS_MAX)

    def _is_head_too_large(self) -> bool:
        """Return whether a complete head is too large. `_open_bytes` may also have a part of the body."""
        if self._open_bytes <= HEAD_BYTES_MAX:
            return len(self.headers) > FIELDS_MAX
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES_MAX

    def _refuse_rest(self) -> None:
        """Respond 431 to an incomplete head; close the connection if the fields after a body are too large."""
        if not self._has_open_head:
            self.end()
            return
        self._refuse_head()
        self.url = b"/"  # an incomplete one cannot be parsed
        super().on_headers_complete()

    def _refuse_head(self) -> None:
        """Answer the request of the last head with 431, without its fields, and no further one."""
        self.app, self.headers[:] = self.large_head, [(b"host", b"")]
        self._is_refused = self._responses.is_refusal = True

    def _wait(self) -> None:
        """Begin to wait for the client, unless the connection waits already."""
        if self not in self._clients.waiting:
            self._clients.waiting[self] = self.loop.time()
            self._unread_bytes = math.inf

    def _unread(self) -> int:
        """Return the number of bytes of responses that the client has not acknowledged, also those in the kernel.

        Without the kernel's buffer of up to 4 MiB, a client that reads slowly looks like one that does not read.
        """
        sent = b""
        with suppress(OSError):  # macOS does not know the number
            sent = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return self.transport.get_write_buffer_size() + int.from_bytes(sent, sys.byteorder)

    def _check(self) -> None:
        """Close the connection if a head is late or the client reads too slowly. Requests start and stop no timers."""
        now_s = self.loop.time()
        left_s = self._clients.waiting.get(self, now_s) + self.client_s - now_s
        if left_s <= 0:
            unread = self._unread()
            if not 0 < unread <= self._unread_bytes - READ_BYTES_MIN:
                self.end()
                return
            del self._clients.waiting[self]
            self._wait()
            self._unread_bytes, left_s = unread, self.client_s
        self._timer = self.loop.call_later(left_s, self._check)


def with_base_url(base_url: str) -> type[Connection]:
    """Return a class of connections whose problems have types that begin with `base_url`."""

    class WithBaseUrl(Connection):
        full, large_head = _refusal(_FULL, base_url), _refusal(_LARGE_HEAD, base_url)

    return WithBaseUrl
