"""Request ids, and a line a request: JSON where the output is piped, short text on a terminal.

A line has no query string, no body, and of the headers only the origin of a refused beacon.
"""

import asyncio
import itertools
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import metrics
from api.http import problems
from api.http.problems import Problem
from api.logs import ERRORS, IS_TERMINAL

CLIENT_CLOSED = 499
"""What nginx logs for a client that went away before its answer."""
CUT_SHORT = "the service ended before it could answer: what was sent may be stored or not"
DETAIL_CHARACTERS_MAX = 300
FIELDS = metrics.FIELDS | {"dateFrom", "dateTo", "limit", "offset", "prompt"}
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
ACCESS = logging.getLogger("readership.access")
_ENCODER = msgspec.json.Encoder()
_PROCESS = secrets.token_hex(6)
_NUMBERS = itertools.count(1)


class RequestLog:
    """Around the whole app: gives each request its id, counts and logs it, and answers what nobody caught."""

    def __init__(self, app: ASGIApp, routes: Mapping[Any, str], base_url: str = "") -> None:
        """`routes` gives the path pattern of each endpoint, under which its requests are counted; `base_url` begins the
        type of each problem."""
        self._app = app
        self._routes = routes
        self._base_url = base_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _request_id(scope)
        scope["state"] = {**scope.get("state", {}), "request_id": request_id, "base_url": self._base_url}
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = CLIENT_CLOSED
        except asyncio.CancelledError:  # the server ends, and this took too long
            if not status:
                await self._fail(CUT_SHORT, scope, receive, send_with_id)
        except Exception as error:  # noqa: BLE001  # the last door: what no table of problems names is logged, once
            ERRORS.error("%r", type(error).__name__, exc_info=error, extra={"fields": {"requestId": request_id}})
            if not status:
                await self._fail(problems.INTERNAL, scope, receive, send_with_id)
        route = self._routes.get(scope.get("endpoint"), "none")
        _note(scope, route, status, time.perf_counter() - began, request_id)

    async def _fail(self, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem of the kind `internal`."""
        problem = scope["state"]["problem"] = Problem("internal", detail)
        await problems.response(problem, scope["state"]["request_id"], self._base_url)(scope, receive, send)


def _request_id(scope: Scope) -> str:
    """The client's X-Request-Id if it is a plain word, else a new one: random for the process, then counted."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(given := value.decode("latin-1")):
            return str(given)
    return f"{_PROCESS}-{next(_NUMBERS):x}"


class AccessLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One request in the access log. It is written without `logging`, which takes as long as a whole small request."""

    time: datetime
    level: str
    logger: str
    method: str
    path: str
    status: int
    ms: float
    request_id: str
    problem: str | None = None
    """Kind of the problem that the request was answered with."""
    fields: list[str] | None = None
    """Fields at fault; those that are no field of a hit or parameter are `other`, because the client chose the name."""
    detail: str | None = None


def _note(scope: Scope, route: str, status: int, seconds: float, request_id: str) -> None:
    metrics.count_request(route, _method(scope), status, seconds)
    if not ACCESS.isEnabledFor(logging.INFO):
        return
    problem = scope["state"].get("problem")
    line = AccessLine(
        datetime.now(UTC),
        "info",
        ACCESS.name,
        scope["method"],
        scope["path"],
        status,
        round(seconds * 1000, 2),
        request_id,
        *(_explained(problem) if problem else ()),
    )
    with suppress(OSError):  # a full disk: the request was answered, and its connection stays
        os.write(sys.stderr.fileno(), _shown(line) if IS_TERMINAL else _ENCODER.encode(line) + b"\n")


def _explained(problem: Problem) -> tuple[str, list[str] | None, str | None]:
    """Return a problem's kind, fields and detail, without what a client sent but its origin and its path."""
    names = [fault.parameter or (fault.pointer or "").rpartition("/")[2] for fault in problem.faults]
    fields = sorted({name if name in FIELDS else "other" for name in names})
    detail = problem.detail[:DETAIL_CHARACTERS_MAX] if problem.kind in problems.DETAILS_LOGGED else None
    return problem.kind, fields or None, detail


def _method(scope: Scope) -> str:
    """The method, if it is one of HTTP's own: whatever a client makes up is not a metric's label."""
    return scope["method"] if scope["method"] in METHODS else "other"


def _shown(line: AccessLine) -> bytes:
    why = f" {line.problem} {line.detail or ' '.join(line.fields or ())}" if line.problem else ""
    # A line end or an escape in a path or an origin is not the terminal's.
    path, why = (each.encode("unicode_escape").decode() for each in (line.path, why))
    return f"{line.time:%H:%M:%S} {line.status} {line.method} {path} {line.ms:.1f} ms{why}\n".encode()
