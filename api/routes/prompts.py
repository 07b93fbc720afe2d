"""Prompts over HTTP: they create an agent job or continue it."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent.errors import QuotaExceeded
from agent.jobs import store
from agent.jobs.job import PROMPT_BYTES_MAX, prompt_fault
from agent.jobs.quota import USES_MAX, Quota
from agent.jobs.store import QueuedPrompt
from api.http import body, operation, parameters
from api.http.headers import idempotency_key
from api.http.operation import JSON, KEY_OPTION, Operation, Success, json_content
from api.http.problems import Fault, Problem
from api.routes import jobs
from api.routes.jobs import ACTIVE, PATH, QUOTA_HEADERS, REQUEST_PROBLEMS, SAMPLE
from api.state import state_of
from ingest.hits.json_errors import explain

BODY_BYTES_MAX = 512 * 1024
"""Maximum size of the JSON of a prompt, in bytes: each byte of the prompt may be escaped."""


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An instruction for the coding agent, in a new job or as a follow-up."""

    prompt: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            description=f"The instruction; at most {PROMPT_BYTES_MAX >> 10} KiB of UTF-8. It is published in the pull"
            " request, unless the project hides its prompts.",
        ),
    ]


_PROMPT = msgspec.json.Decoder(Prompt)


async def create(request: Request) -> Response:
    """Respond to POST /v2/agent/{projectId}/job."""
    project = await jobs.authorise(request, "write")
    prompt, key = await _prompt(request), idempotency_key(request)
    await jobs.authorise(request, "write")  # the project may have been deleted during the upload
    enqueued = await _enqueue(lambda: store.create(state_of(request).control, project, prompt, key, jobs.now_us()))
    state_of(request).agents.wake()
    location = f"{state_of(request).settings.base_url}/v2/agent/{project}/job/{enqueued.job.id}"
    return jobs.response(enqueued.job, 201, {"Location": location, **jobs.quota_headers([enqueued.quota])})


async def message(request: Request) -> Response:
    """Respond to POST /v2/agent/{projectId}/job/{id}/message."""
    project = await jobs.authorise(request, "write")
    prompt, key, id = await _prompt(request), idempotency_key(request), jobs.job_id(request)
    await jobs.authorise(request, "write")  # as in `create`
    enqueued = await _enqueue(lambda: store.message(state_of(request).control, project, id, prompt, key, jobs.now_us()))
    state_of(request).agents.wake()
    return jobs.response(enqueued.job, 200, jobs.quota_headers([enqueued.quota]))


async def _prompt(request: Request) -> str:
    """Return the prompt of the body.

    Raises:
        Problem: `invalid-body` and the kinds of `body.read`.
    """
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
    """Return the result of `enqueue`.

    Raises:
        Problem: `rate-limited`, with the headers of the exhausted quota.
    """
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
_BODY = json_content(Prompt("Explain the retry settings on the page about timeouts."))
_KEY = operation.idempotency_key("prompt")
_CREATE = Operation(
    id="createJob",
    method="POST",
    path=PATH,
    handler=create,
    tag="Jobs",
    summary="Create a job",
    description=f"""\
A coding agent works on the prompt in the project's repository, in the background. If the agent changes files, the
service opens a pull request, and `prLink` is its URL. Poll the job until its status is `completed`, `failed`
(`failureReason` has the reason) or `archived`.

The prompt is published: the pull request quotes it, and its first line is the title and the message of the commit. The
operator turns this off with `readership project agent PROJECT --hide-prompts`.

A project may create {USES_MAX} jobs per hour; the header `RateLimit` has the remaining number. With an
`Idempotency-Key`, a repeated request gets the same response as the first one and creates no second job.
""",
    samples={
        "": f"""\
curl {SAMPLE} {KEY_OPTION} -H "Content-Type: application/json" \\
  -d '{{"prompt": "Explain the retry settings on the page about timeouts."}}'"""
    },
    parameters=(_KEY,),
    body=_BODY,
    responses=(Success(201, "The active job.", json_content(ACTIVE), ("Location", *QUOTA_HEADERS)),),
    problems=_PROMPT_PROBLEMS,
    problem_headers={429: QUOTA_HEADERS},
)
_MESSAGE = Operation(
    id="sendMessage",
    method="POST",
    path=f"{PATH}/{{id}}/message",
    handler=message,
    tag="Jobs",
    summary="Send a follow-up",
    description=f"""\
The same agent continues on the same branch and pull request. The first line of the message is published in the commit,
unless the project hides its prompts. A message to an active job waits until the agent has
finished the earlier prompts; a completed or failed job becomes active again. A project may send {USES_MAX} messages per
hour, beside the quota for new jobs.
""",
    samples={
        "": f"""\
curl {SAMPLE}/$JOB/message {KEY_OPTION} -H "Content-Type: application/json" \\
  -d '{{"prompt": "Shorter, please."}}'"""
    },
    parameters=(_KEY,),
    body=_BODY,
    responses=(Success(200, "The active job.", json_content(ACTIVE), QUOTA_HEADERS),),
    problems=f"{_PROMPT_PROBLEMS} job-archived",
    problem_headers={429: QUOTA_HEADERS},
)
OPERATIONS = (_CREATE, _MESSAGE)
