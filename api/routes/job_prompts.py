"""The prompts of an agent job over HTTP, with their times."""

from typing import Annotated, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent.jobs import job_json, journal, store
from agent.jobs.journal import Turn
from api.http import parameters
from api.http.operation import JSON, KEY_OPTION, HasMore, Operation, Success, json_content, paging
from api.routes import jobs
from api.state import state_of

PROMPTS_MAX = 50
"""Maximum number of prompts on a page; each has at most 64 KiB."""


class SentPrompt(msgspec.Struct, frozen=True, rename="camel"):
    """A prompt of a job. The time of something that has not happened is null."""

    prompt: Annotated[str, msgspec.Meta(description="The instruction.")]
    status: Annotated[
        Literal["queued", "running", "completed", "failed", "cancelled"],
        msgspec.Meta(description="State of the agent's work on the prompt."),
    ]
    created_at: Annotated[str, msgspec.Meta(description="Time at which the prompt was sent.")]
    started_at: Annotated[str | None, msgspec.Meta(description="Time at which the work on it began.")]
    ended_at: Annotated[str | None, msgspec.Meta(description="Time at which the work on it ended.")]


class PromptList(msgspec.Struct, frozen=True, rename="camel"):
    """One page of a job's prompts."""

    prompts: Annotated[list[SentPrompt], msgspec.Meta(description="The prompts, oldest first.")]
    has_more: HasMore


async def list_all(request: Request) -> Response:
    """Respond to GET /v2/agent/{projectId}/job/{id}/prompts."""
    project, engine = await jobs.authorise(request, "read"), state_of(request).control
    query = parameters.log_query(request, PROMPTS_MAX)
    job = await run_in_threadpool(store.find, engine, project, jobs.job_id(request))
    turns = await run_in_threadpool(journal.turns, engine, job.id, query.limit + 1, query.offset, has_entries=False)
    page = PromptList([_prompt(turn) for turn in turns[: query.limit]], len(turns) > query.limit)
    return Response(msgspec.json.encode(page), 200, await jobs.all_quota_headers(request, project), JSON)


def _prompt(turn: Turn) -> SentPrompt:
    times = (None if us is None else job_json.timestamp(us) for us in (turn.started_us, turn.ended_us))
    status = "completed" if turn.state == "done" else turn.state
    return SentPrompt(turn.prompt, status, job_json.timestamp(turn.created_us), *times)


_EXAMPLE = SentPrompt(
    "Explain the retry settings on the page about timeouts.",
    "completed",
    "2026-09-01T12:00:00.000Z",
    "2026-09-01T12:00:00.150Z",
    "2026-09-01T12:04:10.000Z",
)
OPERATIONS = (
    Operation(
        id="listPrompts",
        method="GET",
        path=f"{jobs.PATH}/{{id}}/prompts",
        handler=list_all,
        tag="Jobs",
        summary="List a job's prompts",
        description="The prompt that created the job, and its follow-ups.",
        samples={"": f"curl {jobs.SAMPLE}/$JOB/prompts {KEY_OPTION}"},
        parameters=paging("Prompts", PROMPTS_MAX, PROMPTS_MAX, maximum=parameters.OFFSET_MAX),
        responses=(
            Success(
                200,
                "A page of the prompts.",
                json_content(PromptList([_EXAMPLE], has_more=False)),
                jobs.QUOTA_HEADERS,
            ),
        ),
        problems=f"{jobs.REQUEST_PROBLEMS} not-found",
    ),
)
