"""An agent job as the API and the webhooks represent it."""

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agent.jobs.job import Job, Status


class Source(msgspec.Struct, frozen=True):
    """Repository and branch that the job starts from."""

    repository: Annotated[str, Meta(description="URL of the repository.")]
    ref: Annotated[str, Meta(description="Branch that the pull request is for.")]


class AgentJob(msgspec.Struct, frozen=True, rename="camel"):
    """Job with the field names of the HTTP contract."""

    id: Annotated[str, Meta(description="Identifier of the job.")]
    status: Annotated[
        Literal["active", "completed", "archived", "failed"],
        Meta(
            description="`active`: a turn is queued or running; `completed`; `failed`: see `failureReason`; `archived`."
        ),
    ]
    source: Annotated[Source, Meta(description="Repository and branch that the job starts from.")]
    model: Annotated[str, Meta(description="AI model of the job.")]
    pr_link: Annotated[
        str | None,
        Meta(description="URL of the job's pull request. Null while the job is active, and if no files were changed."),
    ]
    created_at: Annotated[str, Meta(description="Time of the job's creation.")]
    archived_at: Annotated[str | None, Meta(description="Time of the job's archiving.")]
    failure_reason: Annotated[
        str | None, Meta(description="Why the last prompt failed; `the job was cancelled` if it was. Null otherwise.")
    ]


def from_job(job: Job) -> AgentJob:
    """Return a job in the form of the API. `pr_link` is null while the job is active."""
    return AgentJob(
        id=job.id,
        status=job.status.value,
        source=Source(job.repository, job.ref),
        model=job.model,
        pr_link=None if job.status is Status.ACTIVE else job.pull_request,
        created_at=timestamp(job.created_us),
        archived_at=None if job.archived_us is None else timestamp(job.archived_us),
        failure_reason=None if job.status is Status.ACTIVE else job.reason,
    )


def timestamp(us: int) -> str:
    """Return microseconds since 1970 as an RFC 3339 time in UTC with milliseconds."""
    return datetime.fromtimestamp(us / 1_000_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
