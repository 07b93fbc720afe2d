"""Errors as RFC 9457 problems (https://www.rfc-editor.org/rfc/rfc9457): the only module that maps errors to statuses.

Any error whose class is not in TABLE is a 500 with the request's id, and its text is only in the log. Only the errors
of `refusal_of` are a 503.
"""

import errno
import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agent import errors as agent
from ingest import errors as ingest
from warehouse import errors as warehouse
from warehouse.database.pool import PoolError
from warehouse.database.postgresql import ServerError
from warehouse.database_errors import Cause, cause_of, is_temporary, reason_of

RETRY_AFTER_S = 5
MEDIA_TYPE = "application/problem+json"
INTERNAL = "an error of the service"
STORE_UNREACHABLE = "the object store of the lake does not answer"
OUT_OF_MEMORY = "the reports that run now need more memory than they may use"
DISK_FAILED = "a disk of the service cannot be read or written"
LOG = logging.getLogger("readership.error")


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault of a request: in a query parameter, or at a JSON pointer of its body."""

    detail: Annotated[str, Meta(description="The fault.")]
    parameter: Annotated[str | None, Meta(description="The invalid query parameter.")] = None
    pointer: Annotated[str | None, Meta(description="JSON pointer to the place in the body.")] = None


@dataclass
class Problem(Exception):
    """An error response. `kind` is a key of KINDS, and `detail` is for the sender of the request."""

    kind: str
    detail: str
    faults: list[Fault] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: its status, title and advice."""

    status: int
    title: str
    advice: str


KINDS = {
    "invalid-parameter": Kind(400, "Invalid parameter", "Correct the query parameters in `errors`."),
    "invalid-body": Kind(
        400, "Invalid body", "Correct the body as `detail` and `errors` describe; nothing was stored."
    ),
    "invalid-header": Kind(400, "Invalid header", "Correct the header in `detail`; nothing was stored."),
    "unauthenticated": Kind(401, "API key required", "Send `Authorization: Bearer <API key>` with a valid key."),
    "forbidden": Kind(403, "Not allowed", "Use a key of this project with the scope that the operation requires."),
    "origin-not-allowed": Kind(403, "Origin not allowed", "Allow it: `readership project origins PROJECT ORIGIN...`."),
    "not-found": Kind(404, "Not found", "See the reference for all paths."),
    "method-not-allowed": Kind(405, "Method not allowed", "Use a method in the `Allow` header."),
    "not-acceptable": Kind(406, "Not acceptable", "Accept one of the media types in `detail`."),
    "body-too-slow": Kind(408, "Body too slow", "Send the body faster and without long pauses; nothing was stored."),
    "moment-expired": Kind(410, "Moment expired", "Start again with the first page, without `asOf`."),
    "body-too-large": Kind(413, "Body too large", "Send fewer hits per request; nothing was stored."),
    "unsupported-media-type": Kind(415, "Unsupported media type", "Send a media type in `detail`."),
    "head-too-large": Kind(431, "Request head too large", "Send a shorter URL, or fewer and shorter header fields."),
    "idempotency-mismatch": Kind(422, "Idempotency-Key reused", "Send a new key with a new body."),
    "not-configured": Kind(409, "Not configured", "The operator must configure the setting in `detail`."),
    "job-archived": Kind(409, "Job archived", "Create another job."),
    "job-not-idle": Kind(409, "Job active", "Cancel the job, or wait until it has ended."),
    "job-not-active": Kind(409, "Job not active", "Only an active job can be cancelled."),
    "rate-limited": Kind(429, "Too many requests", "Wait for `Retry-After` seconds."),
    "overloaded": Kind(
        503,
        "Overloaded",
        "Send the request again after `Retry-After` seconds, with the same `Idempotency-Key` or event ids: if the"
        " connection to a database was lost, the first request may be stored.",
    ),
    "data-incomplete": Kind(
        503,
        "Data incomplete",
        "Do not retry: the operator must restore the data in `detail`. `readership doctor` lists every fault.",
    ),
    "internal": Kind(500, "Internal error", "Report the `requestId` to the operator; the log has the details."),
}


DETAILS_LOGGED = frozenset(
    "origin-not-allowed not-found body-too-slow body-too-large invalid-header rate-limited overloaded data-incomplete"
    " internal".split()
)
"""Kinds whose detail is in the access log. The details of other kinds may quote a query, a body or a header."""


def pointer(*names: str | int) -> str:
    """Return the JSON pointer (https://www.rfc-editor.org/rfc/rfc6901) of a place in the body."""
    return "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


def _from_invalid_field(error: ingest.InvalidField | warehouse.InvalidGoal) -> Problem:
    fault = Fault(error.reason, pointer=pointer(error.field))
    return Problem("invalid-body", str(error), [fault])


def _from_invalid_parameter(name: str) -> Callable[[Exception], Problem]:
    return lambda error: Problem("invalid-parameter", f"{name}: {error}", [Fault(str(error), parameter=name)])


def _from_database_error(error: PoolError | sqlite3.Error | ServerError) -> Problem:
    database = "control database" if isinstance(error, PoolError) else "hot log"
    details = {
        Cause.UNAVAILABLE: f"the {database} does not answer",
        Cause.DISK_FULL: f"the disk of the {database} is full",
        Cause.DISK_FAILED: f"the disk of the {database} cannot be read or written",
    }
    detail = details.get(cause_of(error))
    if detail is None:
        return Problem("internal", INTERNAL)
    return _unavailable(detail)


def _from_other_error(error: Exception) -> Problem:
    detail = refusal_of(error)
    return Problem("internal", INTERNAL) if detail is None else _unavailable(detail)


def refusal_of(error: Exception) -> str | None:
    """Return the reason why a request with this error is answered 503; None if the error is a fault of the program."""
    if warehouse.is_unreachable(error):
        return STORE_UNREACHABLE
    if isinstance(error, warehouse.SpillFull):
        return str(error)
    if isinstance(error, OSError) and error.errno == errno.EIO:
        return DISK_FAILED
    return OUT_OF_MEMORY if warehouse.is_out_of_memory(error) else None


def _unavailable(detail: str, retry_after_s: int = RETRY_AFTER_S) -> Problem:
    return Problem("overloaded", detail, headers={"Retry-After": str(retry_after_s)})


def _from_http_exception(error: HTTPException) -> Problem:
    """Return the problem of an error of Starlette: an unknown path, or an unknown method of a path."""
    kinds = {404: "not-found", 405: "method-not-allowed", 400: "invalid-body"}
    detail = {404: "there is nothing at this path", 405: "the path does not support this method"}
    kind, text = kinds.get(error.status_code, "internal"), detail.get(error.status_code, error.detail)
    return Problem(kind, text, headers=error.headers or {})


TABLE: dict[type[Exception], str | Callable[[Any], Problem]] = {
    Problem: lambda error: error,
    ingest.InvalidBody: "invalid-body",
    ingest.InvalidField: _from_invalid_field,
    ingest.BodyTooLarge: "body-too-large",
    ingest.IdempotencyMismatch: "idempotency-mismatch",
    ingest.Overloaded: lambda error: _unavailable(str(error), error.retry_after_s),
    PoolError: _from_database_error,  # of the control database
    sqlite3.Error: _from_database_error,
    ServerError: _from_database_error,  # of a hot log in PostgreSQL
    warehouse.DataIncomplete: "data-incomplete",
    warehouse.LakeUnreachable: _from_other_error,
    warehouse.SpillFull: _from_other_error,
    warehouse.InvalidMoment: _from_invalid_parameter("asOf"),
    warehouse.TooManyBuckets: _from_invalid_parameter("interval"),
    warehouse.TooManyViews: _from_invalid_parameter("dateFrom"),
    warehouse.MomentExpired: lambda error: Problem(
        "moment-expired", f"{error}; start again with the first page, without asOf"
    ),
    warehouse.ProjectNotFound: "not-found",
    warehouse.GoalNotFound: "not-found",
    warehouse.InvalidGoal: _from_invalid_field,
    agent.JobNotFound: "not-found",
    agent.NotConfigured: "not-configured",
    agent.JobArchived: "job-archived",
    agent.JobStillActive: "job-not-idle",
    agent.JobNotActive: "job-not-active",
    agent.IdempotencyMismatch: "idempotency-mismatch",
    HTTPException: _from_http_exception,
    Exception: _from_other_error,
}
"""Kind of the problem of an error, or the function that returns the problem."""


async def handle(request: Request, error: Exception) -> Response:
    """Return the response to a request that raised an exception of TABLE."""
    problem = of(request, error)
    result = response(problem, request.state.request_id, getattr(request.state, "base_url", ""))
    result.headers.update(getattr(request.state, "headers", {}))
    return result


def of(request: Request, error: Exception) -> Problem:
    """Return the problem of an exception of TABLE, for the response and the access log. A database error is logged."""
    convert = next(TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)
    problem = Problem(convert, str(error)) if isinstance(convert, str) else convert(error)
    if convert is _from_database_error:
        _log(request, error, problem)
    request.state.problem = problem
    return problem


def _log(request: Request, error: Exception, problem: Problem) -> None:
    """Write a database error to the log: with its traceback, or once for all requests of an outage."""
    state, reason = request.state, f"{type(error).__name__}: {reason_of(error)}"
    if is_temporary(error):
        state.outages.refuse(problem.detail, reason, state.request_id)
    else:
        LOG.error("%s", reason, exc_info=error, extra={"fields": {"requestId": state.request_id}})


def response(problem: Problem, request_id: str, base_url: str = "") -> Response:
    """Return a problem as a response. `base_url` is the prefix of its type."""
    kind = KINDS[problem.kind]
    body: dict[str, object] = {
        "type": f"{base_url}/docs#{problem.kind}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "requestId": request_id,
        **problem.members,
    }
    if problem.faults:
        body["errors"] = problem.faults
    return Response(msgspec.json.encode(body), kind.status, dict(problem.headers), MEDIA_TYPE)
