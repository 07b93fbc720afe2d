"""Prompts over HTTP: they create an agent job or continue it."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent.errors import QuotaExceeded
from agent.jobs import store
from agent.jobs.job import PROMPT_BYTES_MAX, prompt_fault
from agent.jobs.job_json import AgentJob
from agent.jobs.quota import Quota
from agent.jobs.store import QueuedPrompt
from api.http import body, operation, parameters
from api.http.headers import idempotency_key
from api.http.operation import JSON, Operation, Success
from api.http.problems import Fault, Problem
from api.routes import jobs
from api.routes.jobs import PATH, QUOTA_HEADERS, REQUEST_PROBLEMS
from api.state import state_of
from ingest.hits.json_errors import explain

BODY_BYTES_MAX = 512 * 1024
"""Maximum size of the JSON of a prompt, in bytes: each byte of the prompt may be escaped."""


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An instruction for the coding agent, in a new job or as a follow-up."""

    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            description=f"The instruction; at most {PROMPT_BYTES_MAX >> 10} KiB of UTF-8. It is published in the pull"
            " request, unless the project hides its prompts.",
        ),
    ]


_PROMPT = msgspec.json.Decoder(Prompt)


async def create(request: Request) -> Response:
    project = await jobs.authorise(request, "write")
    prompt, key = await _prompt(request), idempotency_key(request)
    await jobs.authorise(request, "write")  # the project may have been deleted during the upload
    enqueued = await _enqueue(lambda: store.create(state_of(request).control, project, prompt, key, jobs.now_us()))
    state_of(request).background.agents.wake()
    location = f"{state_of(request).settings.base_url}/v2/agent/{project}/job/{enqueued.job.id}"
    return jobs.response(enqueued.job, 201, {"Location": location, **jobs.quota_headers([enqueued.quota])})


async def message(request: Request) -> Response:
    project = await jobs.authorise(request, "write")
    prompt, key, id = await _prompt(request), idempotency_key(request), jobs.job_id(request)
    await jobs.authorise(request, "write")  # as in `create`
    enqueued = await _enqueue(lambda: store.message(state_of(request).control, project, id, prompt, key, jobs.now_us()))
    state_of(request).background.agents.wake()
    return jobs.response(enqueued.job, 200, jobs.quota_headers([enqueued.quota]))


async def _prompt(request: Request) -> str:
    """Return the prompt of the body. Raises Problem `invalid-body` and the kinds of `body.read`."""
    parameters.single(request, ())
    body.media_type(request, (JSON,))
    content = await body.read(request, BODY_BYTES_MAX)
    try:
        prompt = _PROMPT.decode(content).prompt
    except (ValueError, RecursionError) as error:
        field, reason = explain(error, Prompt)
        raise _invalid(field, reason) from None
    fault = prompt_fault(prompt)
    if fault is not None:
        raise _invalid("prompt", fault)
    return prompt


def _invalid(field: str | None, reason: str) -> Problem:
    if field is None:
        return Problem("invalid-body", f"the body is not a prompt: {reason}")
    return Problem("invalid-body", f"{field} {reason}", [Fault(reason, pointer=f"/{field}")])


async def _enqueue(enqueue: Callable[[], QueuedPrompt]) -> QueuedPrompt:
    """Return the result of `enqueue`. Raises Problem `rate-limited`, with the headers of the exhausted quota."""
    try:
        return await run_in_threadpool(enqueue)
    except QuotaExceeded as error:
        raise rate_limited(error) from None


def rate_limited(error: QuotaExceeded) -> Problem:
    """Return the problem of an exhausted quota, with the quota's headers."""
    exhausted = Quota(error.operation, 0, error.reset_s)
    headers = {"Retry-After": str(error.reset_s), **jobs.quota_headers([exhausted])}
    return Problem("rate-limited", str(error), headers=headers)


_PROMPT_PROBLEMS = (
    f"{REQUEST_PROBLEMS} invalid-body invalid-header body-too-slow body-too-large unsupported-media-type not-found"
    " not-configured idempotency-mismatch rate-limited"
)
OPERATIONS = tuple(
    Operation(
        id,
        "POST",
        PATH + path,
        handler,
        "Jobs",
        parameters=(operation.idempotency_key("prompt"),),
        body={JSON: Prompt},
        responses=(Success(status, "The active job.", {JSON: AgentJob}, headers),),
        problems=_PROMPT_PROBLEMS + problems,
        problem_headers={429: QUOTA_HEADERS},
    )
    for id, path, handler, status, headers, problems in (
        ("createJob", "", create, 201, ("Location", *QUOTA_HEADERS), ""),
        ("sendMessage", "/{id}/message", message, 200, QUOTA_HEADERS, " job-archived"),
    )
)
