"""The middleware around the app: request ids, metrics, the access log, and a response to any uncaught error."""

import asyncio
import itertools
import re
import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import metrics
from api.http import access_log, problems
from api.http.problems import Problem
from api.logs import ERRORS, Outages
from warehouse.errors import WarehouseError

CLIENT_CLOSED = 499
"""Status in the log and in metrics, as in nginx, for a client that disconnects before the response."""
CUT_SHORT = "the service stopped before it could respond: the request may or may not have taken effect"
NO_HOST = Problem("invalid-header", "the request must have exactly one Host header")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that metrics have a label for. Any other method is `other`, because the client chooses its name."""
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PROCESS = secrets.token_hex(6)
_NUMBERS = itertools.count(1)


class RequestMiddleware:
    """ASGI middleware that gives each request an id, counts it, logs it, and responds to any uncaught error."""

    def __init__(self, app: ASGIApp, routes: Mapping[Any, str], base_url: str = "") -> None:
        """Wrap an app. `routes` maps endpoints to path patterns, the labels of metrics; `base_url` is the prefix of
        problem types."""
        self._app = app
        self._routes = routes
        self._base_url = base_url
        self._outages = Outages()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._run_lifespan(scope, receive, send)
            return
        began = time.perf_counter()
        request_id, has_host = _read_head(scope)
        app = self._app if has_host else partial(self._respond, NO_HOST)
        shared = {"base_url": self._base_url, "outages": self._outages}
        scope["state"] = {**scope.get("state", {}), "request_id": request_id, **shared}
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = CLIENT_CLOSED
        except asyncio.CancelledError:  # the server is stopping, and the time for requests in flight is over
            if not status:
                await self._respond(Problem("internal", CUT_SHORT), scope, receive, send_with_id)
        except Exception as error:  # noqa: BLE001  # the outermost handler: the error is logged here, once
            if (refusal := problems.refusal_of(error)) is not None:
                self._outages.refuse(refusal, type(error).__name__, request_id)
            else:
                fields = {"requestId": request_id}
                ERRORS.error("%r", type(error).__name__, exc_info=error, extra={"fields": fields})
            if not status:
                await self._respond(Problem("internal", problems.INTERNAL), scope, receive, send_with_id)
        seconds = time.perf_counter() - began
        method = scope["method"] if scope["method"] in METHODS else "other"
        metrics.count_request(self._routes.get(scope.get("endpoint"), "none"), method, status, seconds)
        access_log.write(scope, status, seconds)

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the lifespan. An error of a store at the start is sent as its message, in place of its traceback."""
        failures: list[Message] = []

        async def send_or_wait(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":
                failures.append(message)
            else:
                await send(message)

        try:
            await self._app(scope, receive, send_or_wait)
        except Exception as error:
            for failure in failures:
                await send({**failure, "message": str(error)} if isinstance(error, WarehouseError) else failure)
            raise

    async def _respond(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["problem"] = problem
        await problems.response(problem, scope["state"]["request_id"], self._base_url)(scope, receive, send)


def _read_head(scope: Scope) -> tuple[str, bool]:
    """Return the request's id, and whether the request has exactly one Host, which HTTP/1.0 does not require.

    The id is the client's X-Request-Id if it is valid, or else a random prefix of the process and a counter.
    """
    request_id, hosts = "", 0
    for name, value in scope["headers"]:
        if name == b"host":
            hosts += 1
        elif name == b"x-request-id" and not request_id and REQUEST_ID.fullmatch(text := value.decode("latin-1")):
            request_id = text
    has_host = hosts == 1 or (hosts == 0 and scope["http_version"] == "1.0")
    return request_id or f"{_PROCESS}-{next(_NUMBERS):x}", has_host
