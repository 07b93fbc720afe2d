"""The access log: one line per request, in the format of `api.logs`.

A line has no query string, no body and no token of a link. Of the headers, a line has only the request id, if it is
valid, and the origin of a rejected beacon.
"""

import asyncio
import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from select import PIPE_BUF

import msgspec
from starlette.types import Scope

from api import metrics
from api.http import problems
from api.http.problems import Problem
from api.logs import IS_TERMINAL

DETAIL_CHARACTERS_MAX = 300
PATH_BYTES_MAX = 2_000
"""Maximum size of a path in a line, as JSON. Longer ones are cut, because the client chooses them."""
FIELDS = metrics.FIELDS | {"dateFrom", "dateTo", "limit", "offset", "prompt"}
"""Names of fields and parameters that a line may contain. Any other name is `other`, because the client chooses it."""
SECRET_PATHS = ("/welcome/", "/shared/")
"""Paths of pages whose next part is a secret: the token of a one-time link or a share link."""
LOG = logging.getLogger("readership.access")
_LINES = bytearray()
"""Lines that are not written yet."""
_ENCODER = msgspec.json.Encoder()


class AccessLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One request in the access log."""

    time: datetime
    level: str
    logger: str
    method: str
    path: str
    status: int
    ms: float
    request_id: str
    problem: str | None = None
    """Kind of the problem in the response."""
    fields: list[str] | None = None
    """Invalid fields and parameters, each one of FIELDS or `other`."""
    detail: str | None = None


def write(scope: Scope, status: int, seconds: float) -> None:
    """Write one line to standard error in the next iteration of the event loop, together with those of other requests.

    A write releases the GIL, for which other threads wait: a write for each request took 12 % of the processor time of
    a post. A write has at most PIPE_BUF bytes, so that lines of several processes do not mix in a pipe. The logging
    module takes as long as a whole small request.
    """
    if not LOG.isEnabledFor(logging.INFO):
        return
    problem = scope["state"].get("problem")
    line = AccessLine(
        datetime.now(UTC),
        "info",
        LOG.name,
        scope["method"],
        _shown(scope["path"]),
        status,
        round(seconds * 1000, 2),
        scope["state"]["request_id"],
        *(_problem_fields(problem) if problem else ()),
    )
    text = _text(line) if IS_TERMINAL else _ENCODER.encode(line) + b"\n"
    if len(_LINES) + len(text) > PIPE_BUF:
        _flush()
    if not _LINES:
        asyncio.get_running_loop().call_soon(_flush)
    _LINES.extend(text)


def _flush() -> None:
    if _LINES:
        with suppress(OSError):  # on a full disk the lines are lost, and the connections stay open
            os.write(sys.stderr.fileno(), _LINES)
        _LINES.clear()


def _shown(path: str) -> str:
    """Return the start of a path, without the token of a link."""
    path = path[:PATH_BYTES_MAX]
    while (size := len(_ENCODER.encode(path)) - 2) > PATH_BYTES_MAX:
        path = path[: len(path) * PATH_BYTES_MAX // size]
    if not path.startswith(SECRET_PATHS):
        return path
    parts = path.split("/")
    return "/".join([*parts[:2], "***", *parts[3:]])


def _problem_fields(problem: Problem) -> tuple[str, list[str] | None, str | None]:
    """Return a problem's kind, fields and detail, without text that the client chose, except its origin and path."""
    names = [fault.parameter or (fault.pointer or "").rpartition("/")[2] for fault in problem.faults]
    fields = sorted({name if name in FIELDS else "other" for name in names})
    detail = problem.detail[:DETAIL_CHARACTERS_MAX] if problem.kind in problems.DETAILS_LOGGED else None
    return problem.kind, fields or None, detail


def _text(line: AccessLine) -> bytes:
    """Return the line for a terminal. Control characters in a path or an origin are escaped."""
    problem = f" {line.problem} {line.detail or ' '.join(line.fields or ())}" if line.problem else ""
    path, problem = (text.encode("unicode_escape").decode() for text in (line.path, problem))
    return f"{line.time:%H:%M:%S} {line.status} {line.method} {path} {line.ms:.1f} ms{problem}\n".encode()
