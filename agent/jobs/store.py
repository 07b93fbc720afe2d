"""Agent jobs in the control database: create, continue, read, cancel, archive and remove, each in one transaction."""

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import msgspec

from agent.errors import IdempotencyMismatch, JobNotFound
from agent.jobs import configuration, journal, webhook
from agent.jobs.job import Event, Job, Status, next_status
from agent.jobs.quota import Quota, use
from agent.jobs.tables import STATEMENTS
from warehouse.control import projects
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

IDEMPOTENCY_TTL_US = 7 * 24 * 3_600_000_000
"""Microseconds until an Idempotency-Key expires."""
IDLE_TTL_US = 30 * 24 * 3_600_000_000
"""Microseconds until an idle job is archived."""
CANCELLED = "the job was cancelled"


@dataclass(frozen=True, slots=True)
class QueuedPrompt:
    """Job after a prompt was queued, and the remaining quota of the project."""

    job: Job
    quota: Quota


class Position(NamedTuple):
    """Position of a job in the list of its project."""

    created_us: int
    id: str


_BEFORE_FIRST = Position(2**63 - 1, "")


def create(control: Pool, project: str, prompt: str, key: str | None, now_us: int) -> QueuedPrompt:
    """Create an active job and queue its first turn.

    A repeated call with the same Idempotency-Key `key` and prompt returns the first result and creates nothing.

    Raises:
        ProjectNotFound: the project was deleted.
        NotConfigured, QuotaExceeded, IdempotencyMismatch: nothing is created.
    """
    with control.transaction() as connection:
        projects.lock(connection, project)  # so that its quota is exact
        if (known := _earlier_response(connection, project, "create", key, prompt, now_us)) is not None:
            return QueuedPrompt(known, use(connection, project, "create", now_us, 0))
        config = configuration.load_complete(connection, project)
        quota = use(connection, project, "create", now_us, 1)
        job = Job(
            id=secrets.token_hex(12),
            project=project,
            status=Status.ACTIVE,
            repository=config.repository,
            ref=config.ref,
            preset=config.preset,
            command=config.command,
            model=config.model or config.preset,
            pull_request=None,
            created_us=now_us,
            archived_us=None,
            reason=None,
            session=None,
        )
        STATEMENTS.run(connection, "ADD_JOB", _columns(job, now_us))
        _queue_turn(connection, job, "create", prompt, now_us)
        _add_response(connection, job, "create", key, prompt, now_us)
    return QueuedPrompt(job, quota)


def message(control: Pool, project: str, id: str, prompt: str, key: str | None, now_us: int) -> QueuedPrompt:
    """Queue another turn of a job behind its earlier ones; the job becomes active. `key` is as in `create`.

    Raises:
        ProjectNotFound: the project was deleted.
        JobNotFound, JobArchived, NotConfigured, QuotaExceeded, IdempotencyMismatch: nothing is changed.
    """
    operation = f"message {id}"
    with control.transaction() as connection:
        projects.lock(connection, project)
        if (known := _earlier_response(connection, project, operation, key, prompt, now_us)) is not None:
            return QueuedPrompt(known, use(connection, project, "message", now_us, 0))
        job = _one(connection, project, id, "LOCK_JOB")
        status = next_status(job.status, Event.MESSAGE)
        configuration.load_complete(connection, project)
        quota = use(connection, project, "message", now_us, 1)
        job = replace(job, status=status, reason=None)
        update(connection, job, now_us)
        _queue_turn(connection, job, "message", prompt, now_us)
        _add_response(connection, job, operation, key, prompt, now_us)
    return QueuedPrompt(job, quota)


def find(control: Pool, project: str, id: str) -> Job:
    """Return a job of the project. Raises JobNotFound."""
    with control.connect() as connection:
        return _one(connection, project, id, "JOB")


def list_page(
    control: Pool, project: str, status: Status | None, limit: int, offset: int = 0, after: Position | None = None
) -> tuple[list[Job], bool]:
    """Return a page of the project's jobs, from newest to oldest, and whether there are older ones.

    Skip the jobs up to the position `after`, and `offset` more. Jobs that are created meanwhile move offsets, but not
    positions.
    """
    after_us, after_id = after or _BEFORE_FIRST
    values = {"project": project, "status": status and status.value, "after_us": after_us, "after_id": after_id}
    with control.connect() as connection:
        rows = STATEMENTS.run(connection, "JOBS", {**values, "limit": limit + 1, "offset": offset}).fetchall()
    return [_from_row(*row) for row in rows[:limit]], len(rows) > limit


def cancel(control: Pool, project: str, id: str, now_us: int) -> Job:
    """Cancel the queued and running turns of a job. Raises JobNotFound and JobNotActive.

    A running turn is stopped at the next heartbeat of its worker.
    """
    with control.transaction() as connection:
        job = _one(connection, project, id, "LOCK_JOB")
        job = replace(job, status=next_status(job.status, Event.CANCEL), reason=CANCELLED)
        STATEMENTS.run(connection, "CANCEL_TURNS", {"job": id, "now_us": now_us})
        update(connection, job, now_us)
        (latest,) = STATEMENTS.run(connection, "LATEST_TURN", {"job": id}).fetchone()
        journal.append(connection, id, latest, "turn", CANCELLED, now_us)
        webhook.enqueue(connection, job, now_us)
    return job


def archive(control: Pool, project: str, id: str, now_us: int) -> Job:
    """Archive a job and return it; an archived job is returned unchanged. Raises JobNotFound and JobStillActive."""
    with control.transaction() as connection:
        job = _one(connection, project, id, "LOCK_JOB")
        archived_us = job.archived_us if job.status is Status.ARCHIVED else now_us
        job = replace(job, status=next_status(job.status, Event.ARCHIVE), archived_us=archived_us)
        update(connection, job, now_us)
    return job


def archive_idle(control: Pool, now_us: int) -> None:
    """Archive the jobs that have been idle for IDLE_TTL_US, and delete the expired Idempotency-Keys."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "ARCHIVE_IDLE", {"now_us": now_us, "until_us": now_us - IDLE_TTL_US})
        STATEMENTS.run(connection, "DELETE_EXPIRED_RESPONSES", {"until_us": now_us - IDEMPOTENCY_TTL_US})


def remove_archived(control: Pool, before_us: int) -> bool:
    """Remove the oldest job that was archived before `before_us`; return whether there was one.

    Its turns, log, webhook messages and stored responses are removed with it. The transaction is limited to one job, so
    that other processes can write in between.
    """
    before = {"before_us": before_us}
    with control.connect() as connection:  # a read first, because there is rarely such a job
        if STATEMENTS.run(connection, "HAS_ARCHIVED", before).fetchone() is None:
            return False
    with control.transaction() as connection:
        row = STATEMENTS.run(connection, "OLDEST_ARCHIVED", before).fetchone()
        if row is None:
            return False
        id, project = row
        STATEMENTS.run(connection, "DELETE_RESPONSES_OF_JOB", {"project": project, "job": id})
        STATEMENTS.run(connection, "DELETE_JOB", {"id": id})
    return True


def has_any(control: Pool) -> bool:
    """Return whether there is a job, in any status."""
    with control.connect() as connection:
        return STATEMENTS.run(connection, "HAS_JOB").fetchone() is not None


def unarchived_ids(control: Pool) -> set[str]:
    """Return the ids of all jobs that are not archived."""
    with control.connect() as connection:
        return {id for (id,) in STATEMENTS.run(connection, "UNARCHIVED_JOBS")}


def remove(control: Pool, project: str, internal_id: str | None = None) -> list[str]:
    """Remove the jobs of a project that is being deleted, with all of their rows; return their ids.

    With an `internal_id`, the jobs of a project that was created under the same id meanwhile stay.

    This is a transaction of its own, before the one that deletes the project. A worker that ends a turn locks the job
    and then, to insert the webhook message, the project. Deleting the project first would take these locks in the
    opposite order, and could deadlock.
    """
    with control.transaction() as connection:
        removed = STATEMENTS.run(connection, "DELETE_JOBS", {"project": project, "internal_id": internal_id})
        return [id for (id,) in removed.fetchall()]


def _from_row(id: str, project: str, status: str, *rest: Any) -> Job:
    repository, ref, preset, command, *others = rest
    return Job(id, project, Status(status), repository, ref, preset, tuple(json.loads(command)), *others)


def locked(connection: Connection, id: str) -> Job:
    """Return a job that exists, and lock its row until the transaction ends."""
    return _from_row(*STATEMENTS.run(connection, "LOCK_JOB", {"id": id}).fetchone())


def _one(connection: Connection, project: str, id: str, name: Literal["JOB", "LOCK_JOB"]) -> Job:
    row = STATEMENTS.run(connection, name, {"id": id}).fetchone()
    if row is None or (job := _from_row(*row)).project != project:
        raise JobNotFound(f"the project has no job {id!r}")
    return job


def update(connection: Connection, job: Job, now_us: int) -> None:
    """Write the fields of a job that change."""
    STATEMENTS.run(connection, "SET_JOB", _columns(job, now_us))


def _columns(job: Job, now_us: int) -> dict[str, object]:
    return {**asdict(job), "status": job.status.value, "command": json.dumps(job.command), "now_us": now_us}


def _queue_turn(connection: Connection, job: Job, operation: str, prompt: str, now_us: int) -> None:
    values = {"project": job.project, "job": job.id, "operation": operation, "prompt": prompt, "now_us": now_us}
    STATEMENTS.run(connection, "ADD_TURN", values)


def _earlier_response(
    connection: Connection, project: str, operation: str, key: str | None, prompt: str, now_us: int
) -> Job | None:
    """Return the job of the first response to this Idempotency-Key, or None. Raises IdempotencyMismatch."""
    if key is None:
        return None
    same = {"project": project, "operation": operation, "key": key}
    row = STATEMENTS.run(connection, "RESPONSE", same).fetchone()
    if row is None:
        return None
    fingerprint, answer, seen_us = row
    if seen_us <= now_us - IDEMPOTENCY_TTL_US:
        STATEMENTS.run(connection, "DELETE_RESPONSE", same)
        return None
    if fingerprint != _fingerprint(prompt):
        raise IdempotencyMismatch("this Idempotency-Key was used for another prompt; send a new key with a new prompt")
    return msgspec.json.decode(answer, type=Job)


def _add_response(connection: Connection, job: Job, operation: str, key: str | None, prompt: str, now_us: int) -> None:
    if key is not None:
        same = {"project": job.project, "operation": operation, "key": key, "fingerprint": _fingerprint(prompt)}
        answer = msgspec.json.encode(job).decode()
        STATEMENTS.run(connection, "ADD_RESPONSE", {**same, "answer": answer, "now_us": now_us})


def _fingerprint(prompt: str) -> str:
    return hashlib.blake2b(prompt.encode(), digest_size=16).hexdigest()
