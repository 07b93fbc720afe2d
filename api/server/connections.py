"""Limits on HTTP connections, so that idle ones never use up a process's file descriptors.

uvicorn's own timeout for idle connections begins after the first response, and its `limit_concurrency` refuses new
requests while idle connections stay. libuv resets each new connection once no descriptor is left.
"""

import asyncio
import resource
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from api.http import problems
from api.http.middleware import RequestMiddleware
from api.http.problems import RETRY_AFTER_S, Problem
from api.http.rate_limit import unmapped

HEAD_S = 30.0
"""Timeout for the whole head of a request, in seconds, from the connection's start or the end of the last response."""
CONNECTIONS_MAX = 10_000
"""Maximum number of connections of one process; an idle connection takes about 7 KiB."""
DESCRIPTORS_MAX = 16_384
"""Soft limit of file descriptors that a process sets, if its hard limit allows."""
DESCRIPTORS_RESERVED = 256
"""File descriptors for everything but connections: databases, Parquet files, threads, agent jobs."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files of this process towards the hard limit. Child processes inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_max() -> int:
    """Return the maximum number of connections under the soft limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return min(CONNECTIONS_MAX, soft - min(DESCRIPTORS_RESERVED, soft // 2))


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"Retry-After": str(RETRY_AFTER_S), "Connection": "close"}
    problem = Problem("overloaded", "the service has as many connections as it can serve", headers=headers)
    state = scope["state"]
    await problems.response(problem, state["request_id"], state["base_url"])(scope, receive, send)


class Connection(HttpToolsProtocol):
    """An HTTP connection with a timeout for the head of each request.

    Above the maximum number, a new connection replaces the one that has waited longest for a request. If no connection
    waits for a request, the request of the new one is answered 503.
    """

    head_s: ClassVar[float] = HEAD_S
    maximum = staticmethod(connections_max)
    refusal: ClassVar[RequestMiddleware] = RequestMiddleware(_refuse, {})
    _of_server: ClassVar[WeakKeyDictionary[ServerState, "dict[Connection, float]"]] = WeakKeyDictionary()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._waiting = self._of_server.setdefault(server_state, {})
        """Connections that wait for a request, longest first, with the loop's time when the wait began."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if self.client:  # the lists of trusted proxies, and the limits per client, have IPv4 addresses in this form
            self.client = (unmapped(self.client[0]), self.client[1])
        if len(self.connections) > self.maximum():
            longest = next(iter(self._waiting), None)
            if longest is None:
                self.app = self.refusal
            else:
                longest.end()
        self._waiting[self] = self.loop.time()
        self._timer = self.loop.call_later(self.head_s, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.pop(self, None)
        self._timer.cancel()
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        self._waiting.pop(self, None)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():  # else a pipelined request is next
            self._waiting[self] = self.loop.time()

    def end(self) -> None:
        """Close the connection at once."""
        self._waiting.pop(self, None)
        self.transport.abort()

    def _check(self) -> None:
        """Close the connection if the head of its request is late.

        One timer runs for the whole connection, so that requests neither start nor stop timers.
        """
        now_s = self.loop.time()
        left_s = self._waiting.get(self, now_s) + self.head_s - now_s
        if left_s <= 0:
            self.end()
        else:
            self._timer = self.loop.call_later(left_s, self._check)


def with_base_url(base_url: str) -> type[Connection]:
    """Return a class of connections whose 503 responses have problem types that begin with `base_url`."""

    class WithBaseUrl(Connection):
        refusal = RequestMiddleware(_refuse, {}, base_url)

    return WithBaseUrl
