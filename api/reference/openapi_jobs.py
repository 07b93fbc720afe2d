"""The part of the OpenAPI description that is about agent jobs."""

import json

from agent.jobs.job import Status
from agent.jobs.journal import PAGE_ENTRIES
from agent.jobs.quota import USES_MAX
from api.http import parameters
from api.http.headers import IDEMPOTENCY_KEY_CHARACTERS_MAX
from api.reference.schemas import PROJECT, Json, answer, as_json, of_kinds, operation, parameter, ref
from api.routes import jobs

_CREATE = f"""\
A coding agent works on the prompt in the project's repository, in the background. If it changes files, a pull request
is opened and `prLink` is its URL. Follow the job by getting it until its status is no longer `active`: `completed`,
`failed` (its log says why) or `archived`.

A project may create {USES_MAX} jobs in any hour; every answer says in `RateLimit` what is left. With an
`Idempotency-Key` the same prompt sent again is answered as it was the first time, and makes no second job.
"""
_MESSAGE = f"""\
The same agent goes on, on the same branch and pull request. A message to an active job waits until what was sent before
it is done; a job that has completed or failed is active again. {USES_MAX} messages a project in any hour, counted apart
from creates.
"""
_CANCEL = """\
What the agent is doing stops within seconds, messages that wait are dropped, and the job has failed. A message takes it
up again, on the same pull request.
"""
_ARCHIVE = "For good: an archived job takes no message. A job that was idle for 30 days is archived by itself."
_LOG = """\
What each prompt led to: the steps, the end of what the agent printed, and why it failed; the oldest entry comes first.
As text, with `Accept: application/x-ndjson` one entry per line, or with `Accept: application/json` an object with
`hasMore`.

An answer has at most `limit` entries. Where more come after them, the header `Link` has the URL of the next page.
"""
_JOB = {
    "id": "5f0c2a9be1d84c7a90d3f16e",
    "status": "completed",
    "source": {"repository": "https://github.com/example/docs", "ref": "main"},
    "model": "claude-sonnet-5",
    "prLink": "https://github.com/example/docs/pull/7",
    "createdAt": "2026-09-01T12:00:00.000Z",
    "archivedAt": None,
}
_NEW = _JOB | {"status": "active", "prLink": None}
_STEP = {"at": "2026-09-01T12:00:04.210Z", "turn": 1, "kind": "step", "text": "checked out main at 1c2f9d0"}
_ENTRY = f"{json.dumps(_STEP, separators=(',', ':'))}\n"
_TEXT = "2026-09-01T12:00:04.210Z turn 1 step: checked out main at 1c2f9d0\n"
_LIMITED = ("RateLimit-Policy", "RateLimit")
_ASKED = "invalid-parameter unauthenticated forbidden overloaded".split()
_SENT = (
    "invalid-body invalid-header body-too-slow body-too-large unsupported-media-type not-found not-configured "
    "overloaded"
).split()
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The job's id.",
    "schema": {"type": "string", "minLength": 1},
}


def paths() -> Json:
    """By path."""
    job = "/v2/agent/{projectId}/job"
    return {
        job: {"post": _create()},
        f"{job}s": {"get": _list()},
        f"{job}/{{id}}": {"get": _of_job("getJob", "Get a job", "The job as it is now.")},
        f"{job}/{{id}}/message": {"post": _message()},
        f"{job}/{{id}}/cancel": {"post": _of_job("cancelJob", "Cancel a job", _CANCEL, "job-not-active")},
        f"{job}/{{id}}/archive": {"post": _of_job("archiveJob", "Archive a job", _ARCHIVE, "job-not-idle")},
        f"{job}/{{id}}/log": {"get": _log()},
    }


def _create() -> Json:
    made = answer("The job, which is active.", as_json("AgentJob", _NEW), "Location", *_LIMITED)
    return _prompt("createJob", "Create a job", _CREATE, {"201": made}, PROJECT)


def _message() -> Json:
    taken = answer("The job, which is active.", as_json("AgentJob", _NEW), *_LIMITED)
    return _prompt("sendMessage", "Send a follow-up", _MESSAGE, {"200": taken}, PROJECT, _ID, kind="job-archived")


def _prompt(id: str, summary: str, told: str, answers: Json, *given: Json, kind: str = "not-configured") -> Json:
    length = {"minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARACTERS_MAX}
    key = parameter("Idempotency-Key", "Unique to the prompt, which is then taken once.", length, "header")
    body = {"schema": ref("Prompt"), "example": {"prompt": "Explain the retry settings on the page about timeouts."}}
    refused = of_kinds(*_ASKED, *_SENT, "idempotency-mismatch", "rate-limited", *{kind} - {"not-configured"})
    refused["429"]["headers"] |= {name: {"$ref": f"#/components/headers/{name}"} for name in _LIMITED}
    return {
        **operation(id, "Jobs", summary, told, answers | refused, *given, key, key=True),
        "requestBody": {"required": True, "content": {jobs.JSON: body}},
    }


def _of_job(id: str, summary: str, told: str, *kinds: str) -> Json:
    found = answer("The job.", as_json("AgentJob", _JOB), *_LIMITED)
    answers = {"200": found, **of_kinds(*_ASKED, "not-found", *kinds)}
    return operation(id, "Jobs", summary, told, answers, PROJECT, _ID, key=True)


def _list() -> Json:
    limit = {"type": "integer", "minimum": 1, "maximum": parameters.LIMIT_MAX, "default": parameters.LIMIT_DEFAULT}
    offset = {"type": "integer", "minimum": 0, "maximum": parameters.OFFSET_MAX, "default": 0}
    given = [
        parameter("status", "Only jobs in this state.", {"enum": list(Status)}),
        parameter("limit", "Jobs in a page.", limit),
        parameter("offset", "Jobs to skip.", offset),
    ]
    found = answer("A page of the jobs.", as_json("JobList", {"jobs": [_JOB], "hasMore": False}), *_LIMITED)
    answers = {"200": found, **of_kinds(*_ASKED)}
    return operation("listJobs", "Jobs", "List jobs", "Newest first.", answers, PROJECT, *given, key=True)


def _log() -> Json:
    content = {
        jobs.TEXT: {"schema": {"type": "string"}, "example": _TEXT},
        jobs.NDJSON: {"schema": {"type": "string"}, "example": _ENTRY},
        **as_json("LogPage", {"entries": [_STEP], "hasMore": False}),
    }
    limit = {"type": "integer", "minimum": 1, "maximum": PAGE_ENTRIES, "default": PAGE_ENTRIES}
    offset = {"type": "integer", "minimum": 0, "maximum": parameters.OFFSET_MAX, "default": 0}
    given = [parameter("limit", "Entries in a page.", limit), parameter("offset", "Entries to skip.", offset)]
    found = answer("A page of the log.", content, *_LIMITED, "Link")
    answers = {"200": found, **of_kinds(*_ASKED, "not-found", "not-acceptable")}
    return operation("getLog", "Jobs", "Read a job's log", _LOG, answers, PROJECT, _ID, *given, key=True)
