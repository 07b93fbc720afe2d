"""The prompts and the log of an agent job over HTTP."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent.jobs import job_json, journal, store
from agent.jobs.journal import Turn
from api.http import parameters
from api.http.negotiation import accepted
from api.http.operation import JSON, NDJSON, OFFSET_MAX, TEXT, HasMore, Operation, Success, paging
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


class LogEntry(msgspec.Struct, frozen=True):
    """One entry of a job's log."""

    at: Annotated[str, Meta(description="Time of the entry.")]
    turn: Annotated[int, Meta(description="Number of the prompt within the job, from 1.")]
    kind: Annotated[
        journal.EntryKind,
        Meta(
            description="`turn`, `step`, `output` (the end of the agent's output) or `failure` (why the turn failed)."
        ),
    ]
    text: Annotated[str, Meta(description="Text of the entry.")]


class LogPage(msgspec.Struct, frozen=True, rename="camel"):
    """One page of a job's log."""

    entries: Annotated[list[LogEntry], Meta(description="The entries, oldest first.")]
    has_more: HasMore


async def list_prompts(request: Request) -> Response:
    project, engine = await jobs.authorise(request, "read"), state_of(request).control
    limit, offset = parameters.parsed(request, _PROMPTS_PAGE)
    job = await run_in_threadpool(store.find, engine, project, jobs.job_id(request))
    turns = await run_in_threadpool(journal.turns, engine, job.id, limit + 1, offset, has_entries=False)
    page = PromptList([_prompt(turn) for turn in turns[:limit]], len(turns) > limit)
    return Response(msgspec.json.encode(page), 200, await jobs.all_quota_headers(request, project), JSON)


def _prompt(turn: Turn) -> SentPrompt:
    times = (None if us is None else job_json.timestamp(us) for us in (turn.started_us, turn.ended_us))
    status = "completed" if turn.state == "done" else turn.state
    return SentPrompt(turn.prompt, status, job_json.timestamp(turn.created_us), *times)


async def read_log(request: Request) -> Response:
    project, engine = await jobs.authorise(request, "read"), state_of(request).control
    limit, offset = parameters.parsed(request, _LOG_PAGE)
    media_type = accepted(request, (TEXT, NDJSON, JSON), "the log")
    job = await run_in_threadpool(store.find, engine, project, jobs.job_id(request))
    page, has_more = await run_in_threadpool(journal.read, engine, job.id, limit, offset)
    entries = [LogEntry(job_json.timestamp(each.at_us), each.turn, each.kind, each.text) for each in page]
    headers = {**await jobs.all_quota_headers(request, project), "Vary": "Accept, Authorization"}
    next_page = f"?limit={limit}&offset={offset + limit}" if has_more else None
    if next_page is not None:
        headers["Link"] = f'<{next_page}>; rel="next"'
    content_type = f"{TEXT}; charset=utf-8" if media_type == TEXT else media_type
    return Response(_content(media_type, entries, next_page), 200, headers, content_type)


def _content(media_type: str, entries: list[LogEntry], next_page: str | None) -> bytes:
    if media_type == NDJSON:
        return msgspec.json.Encoder().encode_lines(entries)
    if media_type == JSON:
        return msgspec.json.encode(LogPage(entries, next_page is not None))
    more = f"more entries: {next_page}\n" if next_page is not None else ""
    return ("".join(map(_text, entries)) + more).encode()


def _text(entry: LogEntry) -> str:
    """Return an entry for a person. Each line of an output is indented."""
    if entry.kind == "output":
        return "".join(f"  | {line}\n" for line in entry.text.splitlines())
    text = "\n    ".join(entry.text.splitlines())
    return f"{entry.at} turn {entry.turn} {entry.kind}: {text}\n"


_PROMPTS_PAGE = paging("Prompts", PROMPTS_MAX, PROMPTS_MAX, maximum=OFFSET_MAX)
_LOG_PAGE = paging("Entries", journal.PAGE_ENTRIES, journal.PAGE_ENTRIES, maximum=OFFSET_MAX)
OPERATIONS = (
    Operation(
        "listPrompts",
        "GET",
        f"{jobs.PATH}/{{id}}/prompts",
        list_prompts,
        "Jobs",
        parameters=_PROMPTS_PAGE,
        responses=(Success(200, "A page of the prompts.", {JSON: PromptList}, jobs.QUOTA_HEADERS),),
        problems=f"{jobs.REQUEST_PROBLEMS} not-found",
    ),
    Operation(
        "getLog",
        "GET",
        f"{jobs.PATH}/{{id}}/log",
        read_log,
        "Jobs",
        parameters=_LOG_PAGE,
        responses=(
            Success(200, "A page of the log.", {TEXT: str, NDJSON: str, JSON: LogPage}, (*jobs.QUOTA_HEADERS, "Link")),
        ),
        problems=f"{jobs.REQUEST_PROBLEMS} not-found not-acceptable",
    ),
)
