"""The prompts of an agent job over HTTP, with their times."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent.jobs import job_json, journal, store
from agent.jobs.journal import Turn
from api.http import parameters
from api.http.operation import JSON, OFFSET_MAX, HasMore, Operation, Success, paging
from api.routes import jobs
from api.state import state_of

PROMPTS_MAX = 50
"""Maximum number of prompts on a page; each has at most 64 KiB."""


class SentPrompt(msgspec.Struct, frozen=True, rename="camel"):
    """A prompt of a job. The time of something that has not happened is null."""

    prompt: Annotated[str, Meta(description="The instruction.")]
    status: Annotated[
        Literal["queued", "running", "completed", "failed", "cancelled"],
        Meta(description="State of the agent's work on the prompt."),
    ]
    created_at: Annotated[str, Meta(description="Time at which the prompt was sent.")]
    started_at: Annotated[str | None, Meta(description="Time at which the work on it began.")]
    ended_at: Annotated[str | None, Meta(description="Time at which the work on it ended.")]


class PromptList(msgspec.Struct, frozen=True, rename="camel"):
    """One page of a job's prompts."""

    prompts: Annotated[list[SentPrompt], Meta(description="The prompts, oldest first.")]
    has_more: HasMore


async def list_all(request: Request) -> Response:
    """Respond to GET /v2/agent/{projectId}/job/{id}/prompts."""
    project, engine = await jobs.authorise(request, "read"), state_of(request).control
    limit, offset = parameters.parsed(request, _PAGE)
    job = await run_in_threadpool(store.find, engine, project, jobs.job_id(request))
    turns = await run_in_threadpool(journal.turns, engine, job.id, limit + 1, offset, has_entries=False)
    page = PromptList([_prompt(turn) for turn in turns[:limit]], len(turns) > limit)
    return Response(msgspec.json.encode(page), 200, await jobs.all_quota_headers(request, project), JSON)


def _prompt(turn: Turn) -> SentPrompt:
    times = (None if us is None else job_json.timestamp(us) for us in (turn.started_us, turn.ended_us))
    status = "completed" if turn.state == "done" else turn.state
    return SentPrompt(turn.prompt, status, job_json.timestamp(turn.created_us), *times)


_PAGE = paging("Prompts", PROMPTS_MAX, PROMPTS_MAX, maximum=OFFSET_MAX)
OPERATIONS = (
    Operation(
        "listPrompts",
        "GET",
        f"{jobs.PATH}/{{id}}/prompts",
        list_all,
        "Jobs",
        parameters=_PAGE,
        responses=(Success(200, "A page of the prompts.", {JSON: PromptList}, jobs.QUOTA_HEADERS),),
        problems=f"{jobs.REQUEST_PROBLEMS} not-found",
    ),
)
