"""Agent jobs over HTTP: create, follow up, read, list, cancel, archive, and a job's log."""

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent.errors import JobNotFound, QuotaExceeded
from agent.jobs import job_json, journal, quota, store
from agent.jobs.job import ID, PROMPT_BYTES_MAX, Job
from agent.jobs.job_json import AgentJob
from agent.jobs.quota import USES_MAX, WINDOW_S, Quota
from agent.jobs.store import QueuedPrompt
from api.http import auth, body, parameters
from api.http.headers import idempotency_key
from api.http.negotiation import accepted
from api.http.problems import Fault, Problem
from api.keys import Scope
from api.state import state_of
from ingest.hits.json_errors import explain

JSON, NDJSON, TEXT = "application/json", "application/x-ndjson", "text/plain"
BODY_BYTES_MAX = 512 * 1024
"""Of a prompt's JSON: each of its bytes may be escaped."""


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a create and of a message."""

    prompt: Annotated[str, msgspec.Meta(min_length=1)]


class JobList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of a project's jobs, newest first."""

    jobs: list[AgentJob]
    has_more: bool


class LogEntry(msgspec.Struct, frozen=True):
    """A line of a job's log. `turn` counts its prompts from 1."""

    at: str
    turn: int
    kind: journal.EntryKind
    text: str


class LogPage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of a job's log, the oldest entry first."""

    entries: list[LogEntry]
    has_more: bool


_PROMPT = msgspec.json.Decoder(Prompt)


async def create(request: Request) -> Response:
    """POST /v2/agent/{projectId}/job"""
    project = await _authorised(request, "write")
    prompt, key = await _prompt(request), idempotency_key(request)
    await _authorised(request, "write")  # the project may have been deleted while the prompt arrived
    taken = await _taken(lambda: store.create(state_of(request).control, project, prompt, key, _now_us()))
    state_of(request).agents.wake()
    location = f"{state_of(request).settings.base_url}/v2/agent/{project}/job/{taken.job.id}"
    return _job(taken.job, 201, {"Location": location, **_quota_headers([taken.quota])})


async def message(request: Request) -> Response:
    """POST /v2/agent/{projectId}/job/{id}/message"""
    project = await _authorised(request, "write")
    prompt, key, id = await _prompt(request), idempotency_key(request), _id(request)
    await _authorised(request, "write")  # as in `create`
    taken = await _taken(lambda: store.message(state_of(request).control, project, id, prompt, key, _now_us()))
    state_of(request).agents.wake()
    return _job(taken.job, 200, _quota_headers([taken.quota]))


async def read(request: Request) -> Response:
    """GET /v2/agent/{projectId}/job/{id}"""
    return await _answer(request, "read", lambda engine, project, job, _: store.find(engine, project, job))


async def cancel(request: Request) -> Response:
    """POST /v2/agent/{projectId}/job/{id}/cancel"""
    return await _answer(request, "write", store.cancel)


async def archive(request: Request) -> Response:
    """POST /v2/agent/{projectId}/job/{id}/archive"""
    return await _answer(request, "write", store.archive)


async def every(request: Request) -> Response:
    """GET /v2/agent/{projectId}/jobs"""
    project, engine = await _authorised(request, "read"), state_of(request).control
    query = parameters.jobs_query(request)
    found, has_more = await run_in_threadpool(store.list_page, engine, project, query.status, query.limit, query.offset)
    listed = JobList([job_json.from_job(job) for job in found], has_more)
    return Response(msgspec.json.encode(listed), 200, await _left(request, project), JSON)


async def log(request: Request) -> Response:
    """GET /v2/agent/{projectId}/job/{id}/log: a page of it as text for a person, NDJSON or JSON."""
    project, engine = await _authorised(request, "read"), state_of(request).control
    query = parameters.log_query(request)
    kind = accepted(request, (TEXT, NDJSON, JSON), "the log")
    job = await run_in_threadpool(store.find, engine, project, _id(request))
    found = await run_in_threadpool(journal.read, engine, job.id, query.limit, query.offset)
    entries = [LogEntry(job_json.timestamp(each.at_us), each.turn, each.kind, each.text) for each in found.entries]
    headers = {**await _left(request, project), "Vary": "Accept, Authorization"}
    rest = f"?limit={query.limit}&offset={query.offset + query.limit}" if found.has_more else None
    if rest is not None:
        headers["Link"] = f'<{rest}>; rel="next"'
    return Response(_log_content(kind, entries, rest), 200, headers, f"{TEXT}; charset=utf-8" if kind == TEXT else kind)


def _log_content(kind: str, entries: list[LogEntry], rest: str | None) -> bytes:
    """Return a page of a log in one of its media types; `rest` is the query of the page after it."""
    if kind == NDJSON:
        return msgspec.json.Encoder().encode_lines(entries)
    if kind == JSON:
        return msgspec.json.encode(LogPage(entries, rest is not None))
    more = f"more entries: {rest}\n" if rest is not None else ""
    return ("".join(map(_line, entries)) + more).encode()


def _id(request: Request) -> str:
    """Raises JobNotFound for what cannot be the id of a job; not every database can be asked for it."""
    id: str = request.path_params["id"]
    if ID.fullmatch(id) is None:
        raise JobNotFound(f"the project has no job {id[:40]!r}")
    return id


async def _authorised(request: Request, scope: Scope) -> str:
    project: str = request.path_params["projectId"]
    await auth.key_for(request, state_of(request).keyring, project, scope)
    return project


async def _answer(request: Request, scope: Scope, do: Callable[[sa.Engine, str, str, int], Job]) -> Response:
    """A job, as `do` finds or leaves it."""
    project, engine = await _authorised(request, scope), state_of(request).control
    parameters.single(request, ())
    job = await run_in_threadpool(do, engine, project, _id(request), _now_us())
    return _job(job, 200, await _left(request, project))


async def _prompt(request: Request) -> str:
    """The body's prompt.

    Raises:
        Problem: `invalid-body` and the other kinds of `body.read`.
    """
    parameters.single(request, ())
    body.media_type(request, (JSON,))
    content = await body.read(request, BODY_BYTES_MAX)
    try:
        prompt = _PROMPT.decode(content).prompt
    except (ValueError, RecursionError) as error:
        raise _invalid(error) from None
    if len(prompt.encode()) > PROMPT_BYTES_MAX:
        raise _fault(f"has {len(prompt.encode())} bytes; at most {PROMPT_BYTES_MAX} are taken")
    if "\0" in prompt:
        raise _fault("has a NUL character")
    return prompt


def _invalid(error: Exception) -> Problem:
    field, reason = explain(error, Prompt)
    return _fault(reason, field) if field else Problem("invalid-body", f"the body is no prompt: {reason}")


def _fault(reason: str, field: str = "prompt") -> Problem:
    return Problem("invalid-body", f"{field} {reason}", [Fault(reason, pointer=f"/{field}")])


async def _taken(do: Callable[[], QueuedPrompt]) -> QueuedPrompt:
    """Raises Problem `rate-limited`, with what is left, beside what `do` raises."""
    try:
        return await run_in_threadpool(do)
    except QuotaExceeded as error:
        none = Quota(error.operation, 0, error.reset_s)
        headers = {"Retry-After": str(error.reset_s), **_quota_headers([none])}
        raise Problem("rate-limited", str(error), headers=headers) from None


async def _left(request: Request, project: str) -> dict[str, str]:
    engine = state_of(request).control
    return _quota_headers(await run_in_threadpool(quota.quotas, engine, project, _now_us()))


def _quota_headers(quotas: list[Quota]) -> dict[str, str]:
    """The headers of https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/"""
    return {
        "RateLimit-Policy": ", ".join(f'"{each.operation}";q={USES_MAX};w={WINDOW_S}' for each in quotas),
        "RateLimit": ", ".join(f'"{each.operation}";r={each.remaining};t={each.reset_s}' for each in quotas),
    }


def _job(job: Job, status: int, headers: dict[str, str]) -> Response:
    return Response(msgspec.json.encode(job_json.from_job(job)), status, headers, JSON)


def _line(entry: LogEntry) -> str:
    """An output is many lines of its own."""
    if entry.kind == "output":
        return "".join(f"  | {line}\n" for line in entry.text.splitlines())
    text = "\n    ".join(entry.text.splitlines())
    return f"{entry.at} turn {entry.turn} {entry.kind}: {text}\n"


def _now_us() -> int:
    return time.time_ns() // 1_000
