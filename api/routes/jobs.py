"""Agent jobs over HTTP: get, list, cancel and archive."""

import base64
import time
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent.errors import JobNotFound
from agent.jobs import job_json, quota, store
from agent.jobs.job import Job, Status, check_id
from agent.jobs.job_json import AgentJob
from agent.jobs.quota import USES_MAX, WINDOW_S, Quota
from agent.jobs.store import Position
from api.accounts.keys import Scope
from api.http import auth
from api.http.operation import JSON, HasMore, Operation, Parameter, Success, paging
from api.http.parameters import Values, shown, single
from api.state import state_of
from warehouse.database.pool import Pool


class JobList(msgspec.Struct, frozen=True, rename="camel"):
    """One page of a project's jobs."""

    jobs: Annotated[list[AgentJob], Meta(description="The jobs, newest first.")]
    has_more: HasMore
    next_cursor: Annotated[str | None, Meta(description="The `cursor` of the next page; null if there is none.")]


async def get(request: Request) -> Response:
    return await _respond(request, "read", lambda control, project, job, _: store.find(control, project, job))


async def cancel(request: Request) -> Response:
    return await _respond(request, "write", store.cancel)


async def archive(request: Request) -> Response:
    return await _respond(request, "write", store.archive)


async def list_all(request: Request) -> Response:
    project, control = await authorise(request, "read"), state_of(request).control
    values = Values(request, [each.name for each in _PAGE])
    status, limit, _ = map(values.parsed, _PAGE)
    after = _position(values)
    values.require_valid()
    chosen = Status(status) if status else None
    jobs, has_more = await run_in_threadpool(store.list_page, control, project, chosen, limit, after=after)
    last = Position(jobs[-1].created_us, jobs[-1].id) if has_more else None
    page = JobList([job_json.from_job(job) for job in jobs], has_more, last and _cursor(last))
    return Response(msgspec.json.encode(page), 200, await all_quota_headers(request, project), JSON)


def _cursor(position: Position) -> str:
    """Return the cursor of the page that begins after a position."""
    return base64.urlsafe_b64encode(f"{position.created_us} {position.id}".encode()).decode().rstrip("=")


def _position(values: Values) -> Position | None:
    text = values.texts.get("cursor")
    if text is None:
        return None
    try:
        created_us, id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split(" ")
        position = Position(int(created_us), check_id(id))
        if _cursor(position) == text and 0 <= position.created_us < 2**63:
            return position
    except (ValueError, JobNotFound):
        pass
    values.add_fault("cursor", f"must be the `nextCursor` of an earlier page, not {shown(text)}")
    return None


def job_id(request: Request) -> str:
    """Return the id of the job in the path. Raises JobNotFound if the text is not a valid id."""
    id: str = request.path_params["id"]
    return check_id(id)


async def authorise(request: Request, scope: Scope) -> str:
    """Return the id of the project in the path. Raises Problem: see `auth.key_for`."""
    project: str = request.path_params["projectId"]
    await auth.key_for(request, state_of(request).keyring, project, scope)
    return project


async def _respond(request: Request, scope: Scope, change: Callable[[Pool, str, str, int], Job]) -> Response:
    project, control = await authorise(request, scope), state_of(request).control
    single(request, ())
    job = await run_in_threadpool(change, control, project, job_id(request), now_us())
    return response(job, 200, await all_quota_headers(request, project))


async def all_quota_headers(request: Request, project: str) -> dict[str, str]:
    control = state_of(request).control
    return quota_headers(await run_in_threadpool(quota.quotas, control, project, now_us()))


def quota_headers(quotas: list[Quota]) -> dict[str, str]:
    """Return the headers of https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/"""
    return {
        "RateLimit-Policy": ", ".join(f'"{each.operation}";q={USES_MAX};w={WINDOW_S}' for each in quotas),
        "RateLimit": ", ".join(f'"{each.operation}";r={each.remaining};t={each.reset_s}' for each in quotas),
    }


def response(job: Job, status: int, headers: dict[str, str]) -> Response:
    return Response(msgspec.json.encode(job_json.from_job(job)), status, headers, JSON)


def now_us() -> int:
    return time.time_ns() // 1_000


QUOTA_HEADERS = ("RateLimit-Policy", "RateLimit")
REQUEST_PROBLEMS = "invalid-parameter unauthenticated forbidden overloaded"
PATH = "/v2/agent/{projectId}/job"
_PAGE = (
    Parameter("status", "Only jobs with this status.", {"enum": list(Status)}),
    paging("Jobs")[0],
    Parameter("cursor", "`nextCursor` of the page before; its jobs stay the same while others are created."),
)
_RESPONSES = (Success(200, "The job.", {JSON: AgentJob}, QUOTA_HEADERS),)
_FOUND = f"{REQUEST_PROBLEMS} not-found"
OPERATIONS = (
    Operation(
        "listJobs",
        "GET",
        f"{PATH}s",
        list_all,
        "Jobs",
        (Success(200, "A page of the jobs.", {JSON: JobList}, QUOTA_HEADERS),),
        REQUEST_PROBLEMS,
        parameters=_PAGE,
    ),
    Operation("getJob", "GET", f"{PATH}/{{id}}", get, "Jobs", _RESPONSES, _FOUND),
    Operation("cancelJob", "POST", f"{PATH}/{{id}}/cancel", cancel, "Jobs", _RESPONSES, f"{_FOUND} job-not-active"),
    Operation("archiveJob", "POST", f"{PATH}/{{id}}/archive", archive, "Jobs", _RESPONSES, f"{_FOUND} job-not-idle"),
)
