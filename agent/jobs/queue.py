"""Queue of turns: a lease table with one row per turn.

A worker that claims a turn owns it as (owner, attempt) until its lease expires, and renews the lease while it works.
Each write is fenced by (owner, attempt): a worker that has lost its turn can change nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import sqlalchemy as sa

from agent.errors import LeaseLost
from agent.jobs import journal, steps, store, webhook
from agent.jobs.job import Event, Job, next_status
from agent.jobs.steps import PullRequestStep, RunStep, Step, Steps
from agent.jobs.tables import JOBS, TURNS
from warehouse.control.database import transaction

ATTEMPTS_MAX = 3
TOO_MANY_ATTEMPTS = (
    f"its worker died or lost the control database in each of {ATTEMPTS_MAX} attempts; send the prompt again to retry"
)


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """Prompt of an earlier turn. `is_in_branch` is false if the turn failed before it pushed its changes."""

    prompt: str
    is_in_branch: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """Turn that a worker has claimed.

    `history` has the job's earlier turns that were started. `steps` are the finished steps of this turn and
    `started_us` is when it was first claimed; both may be from an earlier attempt by another worker.
    """

    turn: int
    job: Job
    prompt: str
    history: Sequence[EarlierTurn]
    owner: str
    attempt: int
    steps: Steps
    started_us: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of a turn. `reason` is why it failed, or None if it succeeded."""

    reason: str | None
    pull_request: str | None = None


class TurnUpdate(TypedDict, total=False):
    """New values of columns of a turn; an absent column keeps its value."""

    state: str
    attempt: int
    owner: str | None
    lease_until_us: int
    steps: object


def claim(engine: sa.Engine, owner: str, now_us: int, lease_us: int) -> Lease | None:
    """Claim the oldest waiting turn, with `owner` as its owner; return None if no turn waits.

    A turn waits if it is queued, or running with an expired lease, and if all earlier turns of its job have ended. A
    waiting turn that was claimed ATTEMPTS_MAX times is not claimed again: it fails.
    """
    if _next(engine, now_us) is None:  # a read first, without a write lock: idle workers poll several times per second
        return None
    with transaction(engine) as connection:
        waiting = _waiting(now_us).with_for_update(skip_locked=True, of=JOBS)
        while (row := connection.execute(waiting).first()) is not None:
            lease = _lease(connection, row, owner, now_us)
            if not _take(connection, row, lease, now_us + lease_us):
                continue
            if row.attempt >= ATTEMPTS_MAX:
                _end(connection, lease, Outcome(TOO_MANY_ATTEMPTS), now_us)
                continue
            is_first = lease.attempt == 1
            text = "begins" if is_first else f"begins again, attempt {lease.attempt}: its lease had expired"
            journal.append(connection, lease.job.id, lease.turn, "turn", text, now_us)
            return lease
    return None


def _take(connection: sa.Connection, row: sa.Row[Any], lease: Lease, until_us: int) -> bool:
    """Write the lease into the turn's row; return False if the row has changed since it was read.

    On PostgreSQL, another transaction may have claimed, renewed or ended the turn in between.
    """
    is_same = (TURNS.c.id == row.id) & (TURNS.c.state == row.state) & (TURNS.c.attempt == row.attempt)
    is_same &= TURNS.c.lease_until_us.is_not_distinct_from(row.lease_until_us)
    values = {"state": "running", "owner": lease.owner, "attempt": lease.attempt, "lease_until_us": until_us}
    started = {"started_us": lease.started_us}
    return connection.execute(TURNS.update().where(is_same).values(values | started)).rowcount == 1


def renew(engine: sa.Engine, lease: Lease, now_us: int, lease_us: int, output: str | None = None) -> None:
    """Extend the lease, and write the output of the coding agent to the log. Raises LeaseLost."""
    with transaction(engine) as connection:
        if output:
            _lock_job(connection, lease)  # before the turn: the log entry's foreign key locks the job, too
        _update_turn(connection, lease, {"lease_until_us": now_us + lease_us})
        if output:
            journal.append(connection, lease.job.id, lease.turn, "output", output, now_us)


def finish_step(engine: sa.Engine, lease: Lease, step: Step, text: str, now_us: int) -> Lease:
    """Store a finished step, log `text`, and return the new lease. A repeated call changes nothing.

    Raises:
        LeaseLost: the turn has ended, or another worker has claimed it.
    """
    lease = replace(lease, steps=lease.steps.adding(step))
    with transaction(engine) as connection:
        _lock_job(connection, lease)
        stored = connection.execute(sa.select(TURNS.c.steps).where(TURNS.c.id == lease.turn)).scalar_one()
        _update_turn(connection, lease, {"steps": steps.to_json(lease.steps)})
        if steps.from_json(stored).has(step):  # a retry after the response to the commit was lost
            return lease
        journal.append(connection, lease.job.id, lease.turn, "step", text, now_us)
        if values := _job_values(step):
            connection.execute(JOBS.update().where(JOBS.c.id == lease.job.id).values(values))
    return lease


def _job_values(step: Step) -> dict[str, str | None]:
    """Return the columns of the job that a step sets at once, even if its turn fails later."""
    match step:
        case RunStep(session=session):
            return {"session": session}
        case PullRequestStep(url=url):
            return {"pull_request": url}
        case _:
            return {}


def clear_steps(engine: sa.Engine, lease: Lease) -> Lease:
    """Delete the finished steps of a turn, because their files are missing. Raises LeaseLost."""
    with transaction(engine) as connection:
        _update_turn(connection, lease, {"steps": {}})
    return replace(lease, steps=Steps())


def finish(engine: sa.Engine, lease: Lease, outcome: Outcome, now_us: int) -> None:
    """End the turn. If the job has no other turn to run, it becomes completed or failed. Raises LeaseLost."""
    with transaction(engine) as connection:
        _lock_job(connection, lease)
        _update_turn(connection, lease, {})
        _end(connection, lease, outcome, now_us)


def release(engine: sa.Engine, lease: Lease) -> None:
    """Put the turn back into the queue without counting the attempt. Raises LeaseLost."""
    with transaction(engine) as connection:
        _update_turn(connection, lease, {"state": "queued", "attempt": lease.attempt - 1, "owner": None})


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Number of jobs by status, and the age of the oldest queued turn in seconds; 0 if no turn is queued."""

    jobs: Mapping[str, int]
    waiting_s: float


def queue_stats(engine: sa.Engine, now_us: int) -> QueueStats:
    """Return the number of jobs by status and the age of the oldest queued turn."""
    with engine.connect() as connection:
        counts = connection.execute(sa.select(JOBS.c.status, sa.func.count()).group_by(JOBS.c.status)).all()
        oldest = sa.select(sa.func.min(TURNS.c.created_us)).where(TURNS.c.state == "queued")
        oldest_us = connection.execute(oldest).scalar_one()
    return QueueStats(dict(counts), max(0, now_us - (oldest_us or now_us)) / 1_000_000)


def _next(engine: sa.Engine, now_us: int) -> object:
    with engine.connect() as connection:
        return connection.execute(_waiting(now_us)).first()


def _waiting(now_us: int) -> sa.Select[Any]:
    earlier = TURNS.alias("earlier")
    is_blocked = sa.exists().where(
        earlier.c.job_id == TURNS.c.job_id, earlier.c.id < TURNS.c.id, earlier.c.state.in_(("queued", "running"))
    )
    is_free = (TURNS.c.state == "queued") | ((TURNS.c.state == "running") & (TURNS.c.lease_until_us <= now_us))
    turns = TURNS.select().join(JOBS, JOBS.c.id == TURNS.c.job_id)
    return turns.where(is_free, ~is_blocked).order_by(TURNS.c.id).limit(1)


def _lease(connection: sa.Connection, row: sa.Row[Any], owner: str, now_us: int) -> Lease:
    job = store.from_row(connection.execute(JOBS.select().where(JOBS.c.id == row.job_id)).one())
    is_earlier = (TURNS.c.job_id == job.id) & (TURNS.c.id < row.id) & TURNS.c.started_us.is_not(None)
    earlier = connection.execute(TURNS.select().where(is_earlier).order_by(TURNS.c.id))
    return Lease(
        turn=row.id,
        job=job,
        prompt=row.prompt,
        history=tuple(
            EarlierTurn(each.prompt, each.state == "done" or steps.from_json(each.steps).push is not None)
            for each in earlier
        ),
        owner=owner,
        attempt=row.attempt + 1,
        steps=steps.from_json(row.steps),
        started_us=row.started_us or now_us,
    )


def _update_turn(connection: sa.Connection, lease: Lease, values: TurnUpdate) -> None:
    """Update the turn's row, if this worker still owns the turn. Raises LeaseLost."""
    is_owned = (TURNS.c.id == lease.turn) & (TURNS.c.owner == lease.owner) & (TURNS.c.attempt == lease.attempt)
    update = TURNS.update().where(is_owned, TURNS.c.state == "running").values({"owner": lease.owner, **values})
    if connection.execute(update).rowcount != 1:
        raise LeaseLost("the turn was cancelled, or another worker has claimed it")


def _lock_job(connection: sa.Connection, lease: Lease) -> None:
    """Lock the job's row. Every transaction locks it before the rows of its turns. Raises LeaseLost."""
    query = sa.select(JOBS.c.id).where(JOBS.c.id == lease.job.id).with_for_update()
    if connection.execute(query).one_or_none() is None:
        raise LeaseLost("the project was deleted")


def _end(connection: sa.Connection, lease: Lease, outcome: Outcome, now_us: int) -> None:
    job = store.from_row(connection.execute(JOBS.select().where(JOBS.c.id == lease.job.id)).one())
    reason = None if outcome.reason is None else journal.clean(outcome.reason)
    ended = {"state": "failed" if reason else "done", "ended_us": now_us}
    connection.execute(TURNS.update().where(TURNS.c.id == lease.turn).values(ended))
    kind: journal.EntryKind = "failure" if reason else "turn"
    journal.append(connection, job.id, lease.turn, kind, reason or "ends", now_us)
    unended = sa.select(sa.func.count()).where(TURNS.c.job_id == job.id, TURNS.c.state.in_(("queued", "running")))
    is_last = not connection.execute(unended).scalar_one()
    job = replace(job, reason=reason, pull_request=outcome.pull_request or job.pull_request)
    if is_last:
        job = replace(job, status=next_status(job.status, Event.FAILURE if reason else Event.SUCCESS))
    store.update(connection, job, now_us)
    if is_last:
        webhook.enqueue(connection, job, now_us)
