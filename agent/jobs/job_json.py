"""An agent job as the API and the webhooks represent it."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from agent.jobs.job import Job, Status


class Source(msgspec.Struct, frozen=True):
    """Repository and branch that the job starts from."""

    repository: str
    ref: str


class AgentJob(msgspec.Struct, frozen=True, rename="camel"):
    """A job, with the field names of the HTTP contract."""

    id: str
    status: Literal["active", "completed", "archived", "failed"]
    source: Source
    model: str
    pr_link: str | None
    created_at: str
    archived_at: str | None


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
    )


def timestamp(us: int) -> str:
    """Return microseconds since 1970 as an RFC 3339 time in UTC with milliseconds."""
    return datetime.fromtimestamp(us / 1_000_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
