"""Jobs in the control database: created, followed up, read, cancelled and archived, each in one transaction."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from agent.errors import IdempotencyMismatch, JobNotFound
from agent.jobs import configuration, journal, webhook
from agent.jobs.job import Event, Job, Status, after
from agent.jobs.quota import Quota, use
from agent.jobs.tables import ANSWERS, JOBS, TURNS
from warehouse.control.database import transaction
from warehouse.control.projects import PROJECTS
from warehouse.errors import ProjectNotFound

REMEMBERED_US = 7 * 24 * 3_600_000_000
"""For how long an Idempotency-Key is known."""
IDLE_US = 30 * 24 * 3_600_000_000
"""An idle job is archived after so long."""
CANCELLED = "it was cancelled"


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A job as it is once a prompt is taken, and what is left of the project's hour."""

    job: Job
    quota: Quota


def create(engine: sa.Engine, project: str, prompt: str, key: str | None, now_us: int) -> Enqueued:
    """A new active job, whose first turn waits for a worker. The same key and prompt give the first answer again.

    Raises:
        ProjectNotFound: it was deleted meanwhile.
        NotConfigured, QuotaExceeded, IdempotencyMismatch: nothing is kept.
    """
    with transaction(engine) as connection:
        _hold(connection, project)
        if (known := _answered(connection, project, "create", key, prompt, now_us)) is not None:
            return Enqueued(known, use(connection, project, "create", now_us, 0))
        chosen = configuration.load_complete(connection, project)
        quota = use(connection, project, "create", now_us, 1)
        job = Job(
            secrets.token_hex(12),
            project,
            Status.ACTIVE,
            chosen.repository,
            chosen.ref,
            chosen.preset,
            chosen.command,
            chosen.model or chosen.preset,
            None,
            now_us,
            None,
            None,
            None,
        )
        row = {name: getattr(job, name) for name in _COLUMNS} | {"project_id": project, "changed_us": now_us}
        connection.execute(JOBS.insert().values(row))
        _queue(connection, job, "create", prompt, now_us)
        _remember(connection, job, "create", key, prompt, now_us)
    return Enqueued(job, quota)


def message(engine: sa.Engine, project: str, id: str, prompt: str, key: str | None, now_us: int) -> Enqueued:
    """A follow-up: its turn comes after those that wait, and the job is active. See `create`.

    Raises:
        JobNotFound, JobArchived, NotConfigured, QuotaExceeded, IdempotencyMismatch: nothing is kept.
    """
    operation = f"message {id}"
    with transaction(engine) as connection:
        _hold(connection, project)
        if (known := _answered(connection, project, operation, key, prompt, now_us)) is not None:
            return Enqueued(known, use(connection, project, "message", now_us, 0))
        job = _locked(connection, project, id)
        status = after(job.status, Event.MESSAGE)
        configuration.load_complete(connection, project)
        quota = use(connection, project, "message", now_us, 1)
        job = replace(job, status=status, reason=None)
        set_job(connection, job, now_us)
        _queue(connection, job, "message", prompt, now_us)
        _remember(connection, job, operation, key, prompt, now_us)
    return Enqueued(job, quota)


def find(engine: sa.Engine, project: str, id: str) -> Job:
    """Raises JobNotFound."""
    with engine.connect() as connection:
        row = connection.execute(JOBS.select().where(JOBS.c.id == id, JOBS.c.project_id == project)).one_or_none()
    if row is None:
        raise JobNotFound(f"the project has no job {id!r}")
    return of_row(row)


def listed(engine: sa.Engine, project: str, status: Status | None, limit: int, offset: int) -> tuple[list[Job], bool]:
    """A page of the project's jobs, newest first, and whether more come after it."""
    query = JOBS.select().where(JOBS.c.project_id == project).order_by(JOBS.c.created_us.desc(), JOBS.c.id)
    if status is not None:
        query = query.where(JOBS.c.status == status)
    with engine.connect() as connection:
        rows = connection.execute(query.limit(limit + 1).offset(offset)).all()
    return [of_row(row) for row in rows[:limit]], len(rows) > limit


def cancel(engine: sa.Engine, project: str, id: str, now_us: int) -> Job:
    """End the turns that run or wait; the worker of one that runs learns of it within a heartbeat.

    Raises:
        JobNotFound, JobNotActive.
    """
    with transaction(engine) as connection:
        job = _locked(connection, project, id)
        job = replace(job, status=after(job.status, Event.CANCEL), reason=CANCELLED)
        turns = TURNS.update().where(TURNS.c.job_id == id, TURNS.c.state.in_(("queued", "running")))
        connection.execute(turns.values(state="cancelled", ended_us=now_us))
        set_job(connection, job, now_us)
        latest = sa.select(sa.func.max(TURNS.c.id)).where(TURNS.c.job_id == id)
        journal.note(connection, id, connection.execute(latest).scalar_one(), "failure", CANCELLED, now_us)
        webhook.tell(connection, job, now_us)
    return job


def archive(engine: sa.Engine, project: str, id: str, now_us: int) -> Job:
    """Put a job away for good; one that is archived stays as it is. Raises JobNotFound and JobStillActive."""
    with transaction(engine) as connection:
        job = _locked(connection, project, id)
        archived_us = job.archived_us if job.status is Status.ARCHIVED else now_us
        job = replace(job, status=after(job.status, Event.ARCHIVE), archived_us=archived_us)
        set_job(connection, job, now_us)
    return job


def archive_idle(engine: sa.Engine, now_us: int) -> None:
    """Archive the jobs that have been idle for IDLE_US, and forget the Idempotency-Keys whose days are over."""
    idle = (JOBS.c.status.in_((Status.COMPLETED, Status.FAILED))) & (JOBS.c.changed_us <= now_us - IDLE_US)
    with transaction(engine) as connection:
        free = sa.select(JOBS.c.id).where(idle).with_for_update(skip_locked=True)  # waits for nobody: see `remove`
        archived = JOBS.update().where(JOBS.c.id.in_(free))
        connection.execute(archived.values(status=Status.ARCHIVED, archived_us=now_us))
        connection.execute(ANSWERS.delete().where(ANSWERS.c.seen_us <= now_us - REMEMBERED_US))


def remove_archived(engine: sa.Engine, before_us: int) -> bool:
    """Remove one job that was archived before, with its turns, log, webhook messages and answers to Idempotency-Keys.

    One job for each transaction: others write in between. Returns whether there was one.
    """
    is_old = (JOBS.c.status == Status.ARCHIVED) & (JOBS.c.archived_us < before_us)
    oldest = JOBS.select().where(is_old).order_by(JOBS.c.archived_us).limit(1)
    with engine.connect() as connection:  # as a reader first: there is seldom one
        if connection.execute(oldest).first() is None:
            return False
    with transaction(engine) as connection:
        row = connection.execute(oldest.with_for_update(skip_locked=True)).first()
        if row is None:
            return False
        of_job = (ANSWERS.c.project_id == row.project_id) & (ANSWERS.c.answer["id"].as_string() == row.id)
        connection.execute(ANSWERS.delete().where(of_job))
        connection.execute(JOBS.delete().where(JOBS.c.id == row.id))
    return True


def has_any(engine: sa.Engine) -> bool:
    """Return whether there is a job, in any state."""
    with engine.connect() as connection:
        return connection.execute(sa.select(JOBS.c.id).limit(1)).first() is not None


def unarchived(engine: sa.Engine) -> set[str]:
    """The ids of all jobs that may go on."""
    with engine.connect() as connection:
        return set(connection.execute(sa.select(JOBS.c.id).where(JOBS.c.status != Status.ARCHIVED)).scalars())


def remove(engine: sa.Engine, project: str) -> list[str]:
    """Remove the jobs of a project that is ending, and all that hangs on them; returns their ids.

    By themselves, and before the project: whoever ends a turn holds its job, and then the project for the webhook's
    message. One who removed the project first would hold it, and wait for the job.
    """
    with transaction(engine) as connection:
        removed = connection.execute(JOBS.delete().where(JOBS.c.project_id == project).returning(JOBS.c.id))
        return list(removed.scalars())


def of_row(row: sa.Row[tuple[object, ...]]) -> Job:
    return _job({name: getattr(row, name) for name in _COLUMNS} | {"project": row.project_id})


def _job(values: Mapping[str, Any]) -> Job:
    """Return a job of its fields as JSON and the database have them."""
    return Job(**{**values, "status": Status(values["status"]), "command": tuple(values["command"])})


_COLUMNS = [name for name in Job.__slots__ if name != "project"]


def _hold(connection: sa.Connection, project: str) -> None:
    """Let no other prompt of the project come between: its limit is exact. Raises ProjectNotFound."""
    standing = sa.select(PROJECTS.c.id).where(PROJECTS.c.id == project, PROJECTS.c.is_ending.is_(sa.false()))
    if connection.execute(standing.with_for_update(key_share=True)).one_or_none() is None:
        raise ProjectNotFound(f"there is no project {project!r}")


def _locked(connection: sa.Connection, project: str, id: str) -> Job:
    query = JOBS.select().where(JOBS.c.id == id, JOBS.c.project_id == project).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise JobNotFound(f"the project has no job {id!r}")
    return of_row(row)


def set_job(connection: sa.Connection, job: Job, now_us: int) -> None:
    values = {name: getattr(job, name) for name in _COLUMNS} | {"changed_us": now_us}
    connection.execute(JOBS.update().where(JOBS.c.id == job.id).values(values))


def _queue(connection: sa.Connection, job: Job, operation: str, prompt: str, now_us: int) -> None:
    row = {
        "project_id": job.project,
        "job_id": job.id,
        "operation": operation,
        "prompt": prompt,
        "state": "queued",
        "created_us": now_us,
        "attempt": 0,
        "steps": {},
    }
    connection.execute(TURNS.insert().values(row))


def _answered(
    connection: sa.Connection, project: str, operation: str, key: str | None, prompt: str, now_us: int
) -> Job | None:
    """The first answer to this key. Raises IdempotencyMismatch."""
    if key is None:
        return None
    same = (ANSWERS.c.project_id == project) & (ANSWERS.c.operation == operation) & (ANSWERS.c.key == key)
    found = connection.execute(ANSWERS.select().where(same)).one_or_none()
    if found is None:
        return None
    if found.seen_us <= now_us - REMEMBERED_US:
        connection.execute(ANSWERS.delete().where(same))
        return None
    if found.fingerprint != _fingerprint(prompt):
        raise IdempotencyMismatch("this Idempotency-Key was used for another prompt; send a new key with a new one")
    return _job(found.answer)


def _remember(connection: sa.Connection, job: Job, operation: str, key: str | None, prompt: str, now_us: int) -> None:
    if key is not None:
        row = {
            "project_id": job.project,
            "operation": operation,
            "key": key,
            "fingerprint": _fingerprint(prompt),
            "answer": {name: getattr(job, name) for name in Job.__slots__},
            "seen_us": now_us,
        }
        connection.execute(ANSWERS.insert().values(row))


def _fingerprint(prompt: str) -> str:
    return hashlib.blake2b(prompt.encode(), digest_size=16).hexdigest()
