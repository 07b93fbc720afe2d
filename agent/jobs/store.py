"""Agent jobs in the control database: create, continue, read, cancel, archive and remove, each in one transaction."""

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from agent.errors import IdempotencyMismatch, JobNotFound
from agent.jobs import configuration, journal, webhook
from agent.jobs.job import Event, Job, Status, next_status
from agent.jobs.quota import Quota, use
from agent.jobs.tables import JOBS, RESPONSES, TURNS
from warehouse.control import projects
from warehouse.control.database import transaction

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


def create(engine: sa.Engine, project: str, prompt: str, key: str | None, now_us: int) -> QueuedPrompt:
    """Create an active job and queue its first turn.

    A repeated call with the same Idempotency-Key `key` and prompt returns the first result and creates nothing.

    Raises:
        ProjectNotFound: the project was deleted.
        NotConfigured, QuotaExceeded, IdempotencyMismatch: nothing is created.
    """
    with transaction(engine) as connection:
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
        row = {name: getattr(job, name) for name in _COLUMNS} | {"project_id": project, "changed_us": now_us}
        connection.execute(JOBS.insert().values(row))
        _queue_turn(connection, job, "create", prompt, now_us)
        _store_response(connection, job, "create", key, prompt, now_us)
    return QueuedPrompt(job, quota)


def message(engine: sa.Engine, project: str, id: str, prompt: str, key: str | None, now_us: int) -> QueuedPrompt:
    """Queue another turn of a job behind its earlier ones; the job becomes active. `key` is as in `create`.

    Raises:
        ProjectNotFound: the project was deleted.
        JobNotFound, JobArchived, NotConfigured, QuotaExceeded, IdempotencyMismatch: nothing is changed.
    """
    operation = f"message {id}"
    with transaction(engine) as connection:
        projects.lock(connection, project)
        if (known := _earlier_response(connection, project, operation, key, prompt, now_us)) is not None:
            return QueuedPrompt(known, use(connection, project, "message", now_us, 0))
        job = _one(connection, project, id, is_locked=True)
        status = next_status(job.status, Event.MESSAGE)
        configuration.load_complete(connection, project)
        quota = use(connection, project, "message", now_us, 1)
        job = replace(job, status=status, reason=None)
        update(connection, job, now_us)
        _queue_turn(connection, job, "message", prompt, now_us)
        _store_response(connection, job, operation, key, prompt, now_us)
    return QueuedPrompt(job, quota)


def find(engine: sa.Engine, project: str, id: str) -> Job:
    """Return a job of the project. Raises JobNotFound."""
    with engine.connect() as connection:
        return _one(connection, project, id, is_locked=False)


def list_page(
    engine: sa.Engine, project: str, status: Status | None, limit: int, offset: int = 0, after: Position | None = None
) -> tuple[list[Job], bool]:
    """Return a page of the project's jobs, from newest to oldest, and whether there are older ones.

    Skip the jobs up to the position `after`, and `offset` more. Jobs that are created meanwhile move offsets, but not
    positions.
    """
    query = JOBS.select().where(JOBS.c.project_id == project).order_by(JOBS.c.created_us.desc(), JOBS.c.id)
    if status is not None:
        query = query.where(JOBS.c.status == status)
    if after is not None:
        is_same_time = (JOBS.c.created_us == after.created_us) & (JOBS.c.id > after.id)
        query = query.where((JOBS.c.created_us < after.created_us) | is_same_time)
    with engine.connect() as connection:
        rows = connection.execute(query.limit(limit + 1).offset(offset)).all()
    return [from_row(row) for row in rows[:limit]], len(rows) > limit


def cancel(engine: sa.Engine, project: str, id: str, now_us: int) -> Job:
    """Cancel the queued and running turns of a job. Raises JobNotFound and JobNotActive.

    A running turn is stopped at the next heartbeat of its worker.
    """
    with transaction(engine) as connection:
        job = _one(connection, project, id, is_locked=True)
        job = replace(job, status=next_status(job.status, Event.CANCEL), reason=CANCELLED)
        turns = TURNS.update().where(TURNS.c.job_id == id, TURNS.c.state.in_(("queued", "running")))
        connection.execute(turns.values(state="cancelled", ended_us=now_us))
        update(connection, job, now_us)
        latest = sa.select(sa.func.max(TURNS.c.id)).where(TURNS.c.job_id == id)
        journal.append(connection, id, connection.execute(latest).scalar_one(), "turn", CANCELLED, now_us)
        webhook.enqueue(connection, job, now_us)
    return job


def archive(engine: sa.Engine, project: str, id: str, now_us: int) -> Job:
    """Archive a job and return it; an archived job is returned unchanged. Raises JobNotFound and JobStillActive."""
    with transaction(engine) as connection:
        job = _one(connection, project, id, is_locked=True)
        archived_us = job.archived_us if job.status is Status.ARCHIVED else now_us
        job = replace(job, status=next_status(job.status, Event.ARCHIVE), archived_us=archived_us)
        update(connection, job, now_us)
    return job


def archive_idle(engine: sa.Engine, now_us: int) -> None:
    """Archive the jobs that have been idle for IDLE_TTL_US, and delete the expired Idempotency-Keys."""
    is_idle = (JOBS.c.status.in_((Status.COMPLETED, Status.FAILED))) & (JOBS.c.changed_us <= now_us - IDLE_TTL_US)
    with transaction(engine) as connection:
        unlocked = sa.select(JOBS.c.id).where(is_idle).with_for_update(skip_locked=True)  # no deadlock: see `remove`
        archived = JOBS.update().where(JOBS.c.id.in_(unlocked))
        connection.execute(archived.values(status=Status.ARCHIVED, archived_us=now_us))
        connection.execute(RESPONSES.delete().where(RESPONSES.c.seen_us <= now_us - IDEMPOTENCY_TTL_US))


def remove_archived(engine: sa.Engine, before_us: int) -> bool:
    """Remove the oldest job that was archived before `before_us`; return whether there was one.

    Its turns, log, webhook messages and stored responses are removed with it. The transaction is limited to one job, so
    that other processes can write in between.
    """
    is_old = (JOBS.c.status == Status.ARCHIVED) & (JOBS.c.archived_us < before_us)
    oldest = JOBS.select().where(is_old).order_by(JOBS.c.archived_us).limit(1)
    with engine.connect() as connection:  # a read first, because there is rarely such a job
        if connection.execute(oldest).first() is None:
            return False
    with transaction(engine) as connection:
        row = connection.execute(oldest.with_for_update(skip_locked=True)).first()
        if row is None:
            return False
        is_of_job = (RESPONSES.c.project_id == row.project_id) & (RESPONSES.c.answer["id"].as_string() == row.id)
        connection.execute(RESPONSES.delete().where(is_of_job))
        connection.execute(JOBS.delete().where(JOBS.c.id == row.id))
    return True


def has_any(engine: sa.Engine) -> bool:
    """Return whether there is a job, in any status."""
    with engine.connect() as connection:
        return connection.execute(sa.select(JOBS.c.id).limit(1)).first() is not None


def unarchived_ids(engine: sa.Engine) -> set[str]:
    """Return the ids of all jobs that are not archived."""
    with engine.connect() as connection:
        return set(connection.execute(sa.select(JOBS.c.id).where(JOBS.c.status != Status.ARCHIVED)).scalars())


def remove(engine: sa.Engine, project: str, internal_id: str | None = None) -> list[str]:
    """Remove the jobs of a project that is being deleted, with all of their rows; return their ids.

    With an `internal_id`, the jobs of a project that was created under the same id meanwhile stay.

    This is a transaction of its own, before the one that deletes the project. A worker that ends a turn locks the job
    and then, to insert the webhook message, the project. Deleting the project first would take these locks in the
    opposite order, and could deadlock.
    """
    with transaction(engine) as connection:
        is_removed = projects.is_of(JOBS.c.project_id, project, internal_id)
        return list(connection.execute(JOBS.delete().where(is_removed).returning(JOBS.c.id)).scalars())


def from_row(row: sa.Row[tuple[object, ...]]) -> Job:
    """Return the job in a row of the table of jobs."""
    return _job({name: getattr(row, name) for name in _COLUMNS} | {"project": row.project_id})


def _job(values: object) -> Job:
    """Return a job from its values in a row or in a stored response."""
    return msgspec.convert(values, Job)


_COLUMNS = [name for name in Job.__slots__ if name != "project"]


def _one(connection: sa.Connection, project: str, id: str, *, is_locked: bool) -> Job:
    query = JOBS.select().where(JOBS.c.id == id, JOBS.c.project_id == project)
    row = connection.execute(query.with_for_update() if is_locked else query).one_or_none()
    if row is None:
        raise JobNotFound(f"the project has no job {id!r}")
    return from_row(row)


def update(connection: sa.Connection, job: Job, now_us: int) -> None:
    """Write all fields of a job."""
    values = {name: getattr(job, name) for name in _COLUMNS} | {"changed_us": now_us}
    connection.execute(JOBS.update().where(JOBS.c.id == job.id).values(values))


def _queue_turn(connection: sa.Connection, job: Job, operation: str, prompt: str, now_us: int) -> None:
    row = {"project_id": job.project, "job_id": job.id, "operation": operation, "prompt": prompt}
    connection.execute(
        TURNS.insert().values(row | {"state": "queued", "created_us": now_us, "attempt": 0, "steps": {}})
    )


def _earlier_response(
    connection: sa.Connection, project: str, operation: str, key: str | None, prompt: str, now_us: int
) -> Job | None:
    """Return the job of the first response to this Idempotency-Key, or None. Raises IdempotencyMismatch."""
    if key is None:
        return None
    is_same = (RESPONSES.c.project_id == project) & (RESPONSES.c.operation == operation) & (RESPONSES.c.key == key)
    row = connection.execute(RESPONSES.select().where(is_same)).one_or_none()
    if row is None:
        return None
    if row.seen_us <= now_us - IDEMPOTENCY_TTL_US:
        connection.execute(RESPONSES.delete().where(is_same))
        return None
    if row.fingerprint != _fingerprint(prompt):
        raise IdempotencyMismatch("this Idempotency-Key was used for another prompt; send a new key with a new prompt")
    return _job(row.answer)


def _store_response(
    connection: sa.Connection, job: Job, operation: str, key: str | None, prompt: str, now_us: int
) -> None:
    if key is not None:
        answer = {name: getattr(job, name) for name in Job.__slots__}
        row = {"project_id": job.project, "operation": operation, "key": key, "fingerprint": _fingerprint(prompt)}
        connection.execute(RESPONSES.insert().values(row | {"answer": answer, "seen_us": now_us}))


def _fingerprint(prompt: str) -> str:
    return hashlib.blake2b(prompt.encode(), digest_size=16).hexdigest()
