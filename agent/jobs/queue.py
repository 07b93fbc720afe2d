"""Queue of turns: a lease table with one row per turn.

A worker that claims a turn owns it as (owner, attempt) until its lease expires, and renews the lease while it works.
Each write is fenced by (owner, attempt): a worker that has lost its turn can change nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from agent.errors import LeaseLost
from agent.jobs import journal, steps, store, webhook
from agent.jobs.job import Event, Job, next_status
from agent.jobs.steps import PullRequestStep, RunStep, Step, Steps
from agent.jobs.tables import STATEMENTS
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection, Values

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


class _Waiting(NamedTuple):
    """Columns of a turn that waits."""

    id: int
    job_id: str
    prompt: str
    state: str
    attempt: int
    lease_until_us: int | None
    started_us: int | None
    steps: str


def claim(control: Pool, owner: str, now_us: int, lease_us: int) -> Lease | None:
    """Claim the oldest waiting turn, with `owner` as its owner; return None if no turn waits.

    A turn waits if it is queued, or running with an expired lease, and if all earlier turns of its job have ended. A
    waiting turn that was claimed ATTEMPTS_MAX times is not claimed again: it fails.
    """
    now = {"now_us": now_us}
    with control.connect() as connection:  # a read first, without a write lock
        if STATEMENTS.run(connection, "WAITING_TURN", now).fetchone() is None:
            return None
    with control.transaction() as connection:
        while (columns := STATEMENTS.run(connection, "LOCK_WAITING_TURN", now).fetchone()) is not None:
            row = _Waiting(*columns)
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


def _take(connection: Connection, row: _Waiting, lease: Lease, until_us: int) -> bool:
    """Write the lease into the turn's row; return False if the row has changed since it was read.

    On PostgreSQL, another transaction may have claimed, renewed or ended the turn in between.
    """
    before = {"state": row.state, "attempt_before": row.attempt, "until_before_us": row.lease_until_us}
    values = {**_turn(lease), "until_us": until_us, "started_us": lease.started_us}
    return STATEMENTS.run(connection, "TAKE_TURN", {**before, **values}).rowcount == 1


def renew(control: Pool, lease: Lease, now_us: int, lease_us: int, output: str | None = None) -> None:
    """Extend the lease, and write the output of the coding agent to the log. Raises LeaseLost."""
    with control.transaction() as connection:
        if output:
            _lock_job(connection, lease)  # before the turn: the log entry's foreign key locks the job, too
        _update_turn(connection, lease, "RENEW_TURN", {"until_us": now_us + lease_us})
        if output:
            journal.append(connection, lease.job.id, lease.turn, "output", output, now_us)


def finish_step(control: Pool, lease: Lease, step: Step, text: str, now_us: int) -> Lease:
    """Store a finished step, log `text`, and return the new lease. Repeated calls change nothing. Raises LeaseLost."""
    lease = replace(lease, steps=lease.steps.adding(step))
    with control.transaction() as connection:
        _lock_job(connection, lease)
        (stored,) = STATEMENTS.run(connection, "STEPS", _turn(lease)).fetchone()
        _update_turn(connection, lease, "SET_STEPS", {"steps": steps.to_json(lease.steps)})
        if steps.from_json(stored).has(step):  # a retry after the response to the commit was lost
            return lease
        journal.append(connection, lease.job.id, lease.turn, "step", text, now_us)
        _set_result(connection, lease.job.id, step)
    return lease


def _set_result(connection: Connection, job: str, step: Step) -> None:
    """Set the column of the job that a step sets at once, even if its turn fails later."""
    match step:
        case RunStep(session=session):
            STATEMENTS.run(connection, "SET_SESSION", {"id": job, "value": session})
        case PullRequestStep(url=url):
            STATEMENTS.run(connection, "SET_PULL_REQUEST", {"id": job, "value": url})


def clear_steps(control: Pool, lease: Lease) -> Lease:
    """Delete the finished steps of a turn, because their files are missing. Raises LeaseLost."""
    with control.transaction() as connection:
        _update_turn(connection, lease, "SET_STEPS", {"steps": steps.to_json(Steps())})
    return replace(lease, steps=Steps())


def finish(control: Pool, lease: Lease, outcome: Outcome, now_us: int) -> None:
    """End the turn. If the job has no other turn to run, it becomes completed or failed. Raises LeaseLost."""
    with control.transaction() as connection:
        _lock_job(connection, lease)
        _update_turn(connection, lease, "TOUCH_TURN")
        _end(connection, lease, outcome, now_us)


def release(control: Pool, lease: Lease) -> None:
    """Put the turn back into the queue without counting the attempt. Raises LeaseLost."""
    with control.transaction() as connection:
        _update_turn(connection, lease, "RELEASE_TURN")


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Number of jobs by status, and the age of the oldest queued turn in seconds; 0 if no turn is queued."""

    jobs: Mapping[str, int]
    waiting_s: float


def queue_stats(control: Pool, now_us: int) -> QueueStats:
    """Return the number of jobs by status and the age of the oldest queued turn."""
    with control.connect() as connection:
        counts = STATEMENTS.run(connection, "COUNT_JOBS").fetchall()
        (oldest_us,) = STATEMENTS.run(connection, "OLDEST_QUEUED").fetchone()
    return QueueStats(dict(counts), max(0, now_us - (oldest_us or now_us)) / 1_000_000)


def _turn(lease: Lease) -> dict[str, object]:
    """Return the values by which each write is fenced."""
    return {"id": lease.turn, "owner": lease.owner, "attempt": lease.attempt}


def _lease(connection: Connection, row: _Waiting, owner: str, now_us: int) -> Lease:
    earlier = STATEMENTS.run(connection, "EARLIER_TURNS", {"job": row.job_id, "id": row.id}).fetchall()
    return Lease(
        turn=row.id,
        job=store.locked(connection, row.job_id),
        prompt=row.prompt,
        history=tuple(
            EarlierTurn(prompt, state == "done" or steps.from_json(stored).push is not None)
            for prompt, state, stored in earlier
        ),
        owner=owner,
        attempt=row.attempt + 1,
        steps=steps.from_json(row.steps),
        started_us=row.started_us or now_us,
    )


def _update_turn(connection: Connection, lease: Lease, name: str, values: Values = {}) -> None:  # noqa: B006  # unchanged
    """Update the turn's row, if this worker still owns the turn. Raises LeaseLost."""
    if STATEMENTS.run(connection, name, {**_turn(lease), **values}).rowcount != 1:
        raise LeaseLost("the turn was cancelled, or another worker has claimed it")


def _lock_job(connection: Connection, lease: Lease) -> None:
    """Lock the job's row. Every transaction locks it before the rows of its turns. Raises LeaseLost."""
    if STATEMENTS.run(connection, "LOCK_JOB", {"id": lease.job.id}).fetchone() is None:
        raise LeaseLost("the project was deleted")


def _end(connection: Connection, lease: Lease, outcome: Outcome, now_us: int) -> None:
    job = store.locked(connection, lease.job.id)
    reason = None if outcome.reason is None else journal.clean(outcome.reason)
    ended = {"id": lease.turn, "state": "failed" if reason else "done", "now_us": now_us}
    STATEMENTS.run(connection, "END_TURN", ended)
    kind: journal.EntryKind = "failure" if reason else "turn"
    journal.append(connection, job.id, lease.turn, kind, reason or "ends", now_us)
    is_last = not STATEMENTS.run(connection, "COUNT_UNENDED", {"job": job.id}).fetchone()[0]
    job = replace(job, reason=reason, pull_request=outcome.pull_request or job.pull_request)
    if is_last:
        job = replace(job, status=next_status(job.status, Event.FAILURE if reason else Event.SUCCESS))
    store.update(connection, job, now_us)
    if is_last:
        webhook.enqueue(connection, job, now_us)
