"""Every error as an RFC 9457 problem (https://www.rfc-editor.org/rfc/rfc9457), from one table.

An exception that is not in the table is a bare 500 with the request's id: its text is for the log alone.
"""

import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agent import errors as agent
from ingest import errors as ingest
from warehouse import errors as warehouse
from warehouse.database_errors import Cause, cause_of, is_temporary, reason_of

RETRY_AFTER_S = 5
MEDIA_TYPE = "application/problem+json"
INTERNAL = "an error of ours"
LOG = logging.getLogger("readership.error")


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault of a request: in a query parameter, or at a JSON pointer of its body."""

    detail: str
    parameter: str | None = None
    pointer: str | None = None


@dataclass
class Problem(Exception):
    """An error with its kind from KINDS, for the person who sent the request."""

    kind: str
    detail: str
    faults: list[Fault] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kind:
    """A status, a title, and the sentence of the reference that says what to do."""

    status: int
    title: str
    advice: str


KINDS = {
    "invalid-parameter": Kind(400, "Invalid parameter", "Mend the query parameters that `errors` names."),
    "invalid-body": Kind(400, "Invalid body", "Mend the body as `detail` and `errors` say; nothing was kept."),
    "invalid-header": Kind(400, "Invalid header", "Mend the header that `detail` names; nothing was kept."),
    "unauthenticated": Kind(401, "API key needed", "Send `Authorization: Bearer <API key>` with a key that is good."),
    "forbidden": Kind(403, "Not allowed", "Use a key of this project with the scope that the operation needs."),
    "origin-not-allowed": Kind(403, "Origin not allowed", "Allow it: `readership project origins PROJECT ORIGIN...`."),
    "not-found": Kind(404, "Not found", "See the reference for the paths there are."),
    "method-not-allowed": Kind(405, "Method not allowed", "Use a method that the `Allow` header names."),
    "not-acceptable": Kind(406, "Not acceptable", "Accept one of the media types that `detail` names."),
    "body-too-slow": Kind(408, "Body too slow", "Send the body faster and without long pauses; nothing was stored."),
    "body-too-large": Kind(413, "Body too large", "Send fewer hits at once; nothing was kept."),
    "unsupported-media-type": Kind(415, "Unsupported media type", "Send a media type that `detail` names."),
    "idempotency-mismatch": Kind(422, "Idempotency-Key reused", "Send a new key with a new body."),
    "not-configured": Kind(409, "Not configured", "Have the operator set what `detail` names."),
    "job-archived": Kind(409, "Job archived", "Create another job."),
    "job-not-idle": Kind(409, "Job active", "Cancel the job, or wait until it has ended."),
    "job-not-active": Kind(409, "Job not active", "Only an active job can be cancelled."),
    "rate-limited": Kind(429, "Too many requests", "Wait as long as `Retry-After` says."),
    "overloaded": Kind(503, "Overloaded", "Nothing was kept: send it again after `Retry-After` seconds."),
    "data-incomplete": Kind(
        503,
        "Data incomplete",
        "Do not retry: the operator must restore what `detail` names. `readership doctor` lists every fault.",
    ),
    "internal": Kind(500, "Internal error", "Tell the operator the `requestId`; the log has the rest."),
}


DETAILS_LOGGED = frozenset(
    "origin-not-allowed not-found body-too-slow body-too-large invalid-header rate-limited overloaded data-incomplete"
    " internal".split()
)
"""Kinds whose detail the access log has. Those of other kinds may quote a query, a body or a header."""


def pointer(*names: str | int) -> str:
    """The JSON pointer (https://www.rfc-editor.org/rfc/rfc6901) to a place in the body."""
    return "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


def of_invalid_body(error: Exception) -> Problem:
    return Problem("invalid-body", str(error))


def of_invalid_field(error: ingest.InvalidField) -> Problem:
    fault = Fault(error.reason, pointer=pointer(error.field))
    return Problem("invalid-body", str(error), [fault])


def of_overload(error: ingest.Overloaded) -> Problem:
    return Problem("overloaded", str(error), headers={"Retry-After": str(error.retry_after_s)})


def of_database_error(error: sa.exc.SQLAlchemyError | sqlite3.Error) -> Problem:
    database = "hot log" if isinstance(error, sqlite3.Error) else "control database"
    details = {
        Cause.UNAVAILABLE: f"the {database} does not answer",
        Cause.DISK_FULL: f"the disk of the {database} is full",
    }
    detail = details.get(cause_of(error))
    if detail is None:
        return Problem("internal", INTERNAL)
    return Problem("overloaded", detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def of_http_exception(error: HTTPException) -> Problem:
    """Starlette's own: no such path, or not with this method."""
    kinds = {404: "not-found", 405: "method-not-allowed", 400: "invalid-body"}
    detail = {404: "there is nothing at this path", 405: "the path does not take this method"}
    return Problem(
        kinds.get(error.status_code, "internal"),
        detail.get(error.status_code, error.detail),
        headers=error.headers or {},
    )


TABLE: dict[type[Exception], Callable[[Any], Problem]] = {
    Problem: lambda error: error,
    ingest.InvalidBody: of_invalid_body,
    ingest.InvalidField: of_invalid_field,
    ingest.BodyTooLarge: lambda error: Problem("body-too-large", str(error)),
    ingest.IdempotencyMismatch: lambda error: Problem("idempotency-mismatch", str(error)),
    ingest.Overloaded: of_overload,
    sa.exc.DBAPIError: of_database_error,
    sa.exc.TimeoutError: of_database_error,  # of waiting for a connection of the pool
    sqlite3.Error: of_database_error,
    warehouse.DataIncomplete: lambda error: Problem("data-incomplete", str(error)),
    warehouse.ProjectNotFound: lambda error: Problem("not-found", str(error)),
    agent.JobNotFound: lambda error: Problem("not-found", str(error)),
    agent.NotConfigured: lambda error: Problem("not-configured", str(error)),
    agent.JobArchived: lambda error: Problem("job-archived", str(error)),
    agent.JobStillActive: lambda error: Problem("job-not-idle", str(error)),
    agent.JobNotActive: lambda error: Problem("job-not-active", str(error)),
    agent.IdempotencyMismatch: lambda error: Problem("idempotency-mismatch", str(error)),
    HTTPException: of_http_exception,
    Exception: lambda error: Problem("internal", INTERNAL),
}


async def answer(request: Request, error: Exception) -> Response:
    """The response to a request that ended in an exception of TABLE."""
    made = next(TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)
    if made is of_database_error:
        _log(error, request.state.request_id)
    problem = request.state.problem = made(error)
    answered = response(problem, request.state.request_id, getattr(request.state, "base_url", ""))
    answered.headers.update(getattr(request.state, "headers", {}))
    return answered


def _log(error: Exception, request_id: str) -> None:
    """Write a database error to the log, with its traceback unless it is temporary."""
    traceback = None if is_temporary(error) else error
    fields = {"requestId": request_id}
    LOG.error("%s: %s", type(error).__name__, reason_of(error), exc_info=traceback, extra={"fields": fields})


def response(problem: Problem, request_id: str, base_url: str = "") -> Response:
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
