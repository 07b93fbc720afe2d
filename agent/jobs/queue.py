"""The queue of turns: a lease table, a row a turn.

A worker holds a turn by (owner, attempt) until its lease ends; it renews the lease while it works. Each write says whom
it is from, and one who has lost the turn can change nothing any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from agent.errors import LeaseLost
from agent.jobs import journal, store, webhook
from agent.jobs.job import Event, Job, after
from agent.jobs.tables import JOBS, TURNS
from warehouse.control.database import transaction

ATTEMPTS_MAX = 3
WORN_OUT = f"its worker ended in the middle of it {ATTEMPTS_MAX} times; send the prompt again to try once more"

JOB_COLUMNS = {"session": "session", "url": "pull_request"}
"""What the job knows of a step's result at once, whatever becomes of its turn."""

Steps = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Earlier:
    """The prompt of an earlier turn, and whether what was done of it is kept: a turn that failed leaves nothing."""

    prompt: str
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A turn in the hands of one worker.

    `history` are the job's earlier turns that were begun; `steps` are those that were finished, with their results, and
    `started_us` is when the first worker took the turn: both also of workers before this one.
    """

    turn: int
    job: Job
    prompt: str
    history: Sequence[Earlier]
    owner: str
    attempt: int
    steps: Steps
    started_us: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended. `reason` is None if it succeeded."""

    reason: str | None
    pull_request: str | None = None


def claim(engine: sa.Engine, owner: str, now_us: int, lease_us: int) -> Lease | None:
    """The turn that has waited longest, now held by `owner`; None if none waits.

    A turn waits while it is queued, and again when the lease of its worker is over; but never before an earlier turn
    of its job has ended.
    """
    if _next(engine, now_us) is None:  # looked at first as a reader: idle workers ask many times a second
        return None
    with transaction(engine) as connection:
        held = _waiting(now_us).with_for_update(skip_locked=True, of=JOBS)
        while (row := connection.execute(held).first()) is not None:
            lease = _lease(connection, row, owner, now_us)
            if not _take(connection, row, lease, now_us + lease_us):
                continue
            if row.attempt >= ATTEMPTS_MAX:
                _end(connection, lease, Outcome(WORN_OUT), now_us)
                continue
            told = "begins" if lease.attempt == 1 else f"begins again, attempt {lease.attempt}: its worker had ended"
            journal.note(connection, lease.job.id, lease.turn, "turn", told, now_us)
            return lease
    return None


def _take(connection: sa.Connection, row: sa.Row[Any], lease: Lease, until_us: int) -> bool:
    """Whether the turn still was as it was read: on PostgreSQL another may have taken, renewed or ended it since."""
    same = (TURNS.c.id == row.id) & (TURNS.c.state == row.state) & (TURNS.c.attempt == row.attempt)
    same &= TURNS.c.lease_until_us.is_not_distinct_from(row.lease_until_us)
    values = {"state": "running", "owner": lease.owner, "attempt": lease.attempt, "lease_until_us": until_us}
    started = {"started_us": lease.started_us}
    return connection.execute(TURNS.update().where(same).values(values | started)).rowcount == 1


def renew(engine: sa.Engine, lease: Lease, now_us: int, lease_us: int, output: str | None = None) -> None:
    """Hold the turn for longer, and note what its coding agent has printed. Raises LeaseLost."""
    with transaction(engine) as connection:
        if output:
            _hold(connection, lease)  # the entry's reference to the job locks it, too
        _fenced(connection, lease, {"lease_until_us": now_us + lease_us})
        if output:
            journal.note(connection, lease.job.id, lease.turn, "output", output, now_us)


def finish_step(engine: sa.Engine, lease: Lease, name: str, result: Mapping[str, Any], told: str, now_us: int) -> Lease:
    """Note a step, with what the next ones need of it: it is not done again. Noted twice, it is so once.

    Raises:
        LeaseLost: the turn is another's now, or over.
    """
    lease = replace(lease, steps={**lease.steps, name: dict(result)})
    with transaction(engine) as connection:
        _hold(connection, lease)
        noted = connection.execute(sa.select(TURNS.c.steps).where(TURNS.c.id == lease.turn)).scalar_one()
        _fenced(connection, lease, {"steps": dict(lease.steps)})
        if name in noted:  # the answer to its commit was lost
            return lease
        journal.note(connection, lease.job.id, lease.turn, "step", told, now_us)
        known = {JOB_COLUMNS[name]: value for name, value in result.items() if name in JOB_COLUMNS}
        if known:
            connection.execute(JOBS.update().where(JOBS.c.id == lease.job.id).values(known))
    return lease


def begin_again(engine: sa.Engine, lease: Lease) -> Lease:
    """Forget the finished steps, whose files are not here. Raises LeaseLost."""
    with transaction(engine) as connection:
        _fenced(connection, lease, {"steps": {}})
    return replace(lease, steps={})


def finish(engine: sa.Engine, lease: Lease, outcome: Outcome, now_us: int) -> None:
    """End the turn; the job leaves active if no other turn of it waits. Raises LeaseLost."""
    with transaction(engine) as connection:
        _hold(connection, lease)
        _fenced(connection, lease, {})
        _end(connection, lease, outcome, now_us)


def release(engine: sa.Engine, lease: Lease) -> None:
    """Put the turn back, as if it had not been tried, for another worker to take at once. Raises LeaseLost."""
    with transaction(engine) as connection:
        _fenced(connection, lease, {"state": "queued", "attempt": lease.attempt - 1, "owner": None})


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Number of jobs by status, and the age of the oldest queued turn in seconds; 0 if no turn is queued."""

    jobs: Mapping[str, int]
    waiting_s: float


def queue_stats(engine: sa.Engine, now_us: int) -> QueueStats:
    """Return the number of jobs by status and the age of the oldest queued turn."""
    with engine.connect() as connection:
        counted = connection.execute(sa.select(JOBS.c.status, sa.func.count()).group_by(JOBS.c.status)).all()
        oldest = sa.select(sa.func.min(TURNS.c.created_us)).where(TURNS.c.state == "queued")
        oldest_us = connection.execute(oldest).scalar_one()
    return QueueStats(dict(counted), max(0, now_us - (oldest_us or now_us)) / 1_000_000)


def _next(engine: sa.Engine, now_us: int) -> object:
    with engine.connect() as connection:
        return connection.execute(_waiting(now_us)).first()


def _waiting(now_us: int) -> sa.Select[Any]:
    earlier = TURNS.alias("earlier")
    is_second = sa.exists().where(
        earlier.c.job_id == TURNS.c.job_id, earlier.c.id < TURNS.c.id, earlier.c.state.in_(("queued", "running"))
    )
    is_free = (TURNS.c.state == "queued") | ((TURNS.c.state == "running") & (TURNS.c.lease_until_us <= now_us))
    whole = TURNS.select().join(JOBS, JOBS.c.id == TURNS.c.job_id)
    return whole.where(is_free, ~is_second).order_by(TURNS.c.id).limit(1)


def _lease(connection: sa.Connection, row: sa.Row[Any], owner: str, now_us: int) -> Lease:
    job = store.of_row(connection.execute(JOBS.select().where(JOBS.c.id == row.job_id)).one())
    begun = (TURNS.c.job_id == job.id) & (TURNS.c.id < row.id) & TURNS.c.started_us.is_not(None)
    earlier = connection.execute(TURNS.select().where(begun).order_by(TURNS.c.id))
    history = tuple(Earlier(each.prompt, each.state == "done" or "push" in each.steps) for each in earlier)
    return Lease(row.id, job, row.prompt, history, owner, row.attempt + 1, row.steps, row.started_us or now_us)


def _fenced(connection: sa.Connection, lease: Lease, values: Mapping[str, Any]) -> None:
    """Change the turn, if it is still this worker's. Raises LeaseLost."""
    held = (TURNS.c.id == lease.turn) & (TURNS.c.owner == lease.owner) & (TURNS.c.attempt == lease.attempt)
    changed = TURNS.update().where(held, TURNS.c.state == "running").values({"owner": lease.owner, **values})
    if connection.execute(changed).rowcount != 1:
        raise LeaseLost("the turn was cancelled, or another worker has taken it over")


def _hold(connection: sa.Connection, lease: Lease) -> None:
    """The job's row first, then those of its turns: whoever locks both does so in this order. Raises LeaseLost."""
    query = sa.select(JOBS.c.id).where(JOBS.c.id == lease.job.id).with_for_update()
    if connection.execute(query).one_or_none() is None:
        raise LeaseLost("the project was deleted")


def _end(connection: sa.Connection, lease: Lease, outcome: Outcome, now_us: int) -> None:
    job = store.of_row(connection.execute(JOBS.select().where(JOBS.c.id == lease.job.id)).one())
    reason = None if outcome.reason is None else journal.clean(outcome.reason)
    ended = {"state": "failed" if reason else "done", "ended_us": now_us}
    connection.execute(TURNS.update().where(TURNS.c.id == lease.turn).values(ended))
    kind: journal.Kind = "failure" if reason else "turn"
    journal.note(connection, job.id, lease.turn, kind, reason or "ends", now_us)
    waiting = sa.select(sa.func.count()).where(TURNS.c.job_id == job.id, TURNS.c.state.in_(("queued", "running")))
    is_last = not connection.execute(waiting).scalar_one()
    job = replace(job, reason=reason, pull_request=outcome.pull_request or job.pull_request)
    if is_last:
        job = replace(job, status=after(job.status, Event.FAILURE if reason else Event.SUCCESS))
    store.set_job(connection, job, now_us)
    if is_last:
        webhook.tell(connection, job, now_us)
