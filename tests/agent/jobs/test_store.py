"""Jobs in the control database, on SQLite and on PostgreSQL."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from agent.errors import (
    IdempotencyMismatch,
    JobArchived,
    JobNotActive,
    JobNotFound,
    JobStillActive,
    LeaseLost,
    NotConfigured,
)
from agent.jobs import configuration, queue, quota, store
from agent.jobs.configuration import Configuration
from agent.jobs.job import Job, Status
from agent.jobs.queue import Outcome
from agent.jobs.store import Position
from tests.agent.clock import HOUR_S, SECOND_US, Clock
from tests.agent.conftest import PROJECT
from tests.stores import sql
from warehouse.control import projects
from warehouse.database.pool import Pool
from warehouse.errors import ProjectNotFound

LEASE_US = 10 * SECOND_US
DAY_S = 24 * HOUR_S


def create(engine: Pool, clock: Clock, prompt: str = "Fix it", key: str | None = None) -> Job:
    return store.create(engine, PROJECT, prompt, key, clock.advance(1)).job


def ended(engine: Pool, clock: Clock, reason: str | None = None) -> Job:
    """Run the turn that has waited longest, and return its job."""
    lease = queue.claim(engine, "worker", clock(), LEASE_US)
    assert lease is not None
    queue.finish(engine, lease, Outcome(reason), clock())
    return store.find(engine, PROJECT, lease.job.id)


def test_new_job_is_active_and_has_the_repository_ref_and_model_of_its_project(engine: Pool, clock: Clock) -> None:
    job = create(engine, clock)
    assert store.find(engine, PROJECT, job.id) == job
    assert (job.status, job.repository, job.ref, job.model) == ("active", "https://git.example/docs", "main", "a-model")
    assert (job.pull_request, job.archived_us, job.created_us) == (None, None, clock())


def test_project_without_a_repository_or_a_model_refuses_a_job(engine: Pool, clock: Clock) -> None:
    projects.create(engine, "bare", (), 0)
    with pytest.raises(NotConfigured, match="readership project agent bare --repository"):
        store.create(engine, "bare", "Fix it", None, clock())
    chosen = configuration.changed(Configuration(repository=""), {"repository": "https://git.example/docs"})
    configuration.store(engine, "bare", chosen)
    with pytest.raises(NotConfigured, match="has no model for opencode: .*readership project agent bare --model"):
        store.create(engine, "bare", "Fix it", None, clock())
    with pytest.raises(ProjectNotFound):
        store.create(engine, "gone", "Fix it", None, clock())


def test_job_of_another_project_is_not_found(engine: Pool, clock: Clock) -> None:
    projects.create(engine, "other", (), 0)
    job = create(engine, clock)
    with pytest.raises(JobNotFound):
        store.find(engine, "other", job.id)
    with pytest.raises(JobNotFound):
        store.message(engine, "other", job.id, "Hello", None, clock())
    with pytest.raises(JobNotFound):
        store.archive(engine, "other", job.id, clock())


@pytest.mark.parametrize("reason", [None, "it broke"])
def test_message_makes_an_ended_job_active(engine: Pool, clock: Clock, reason: str | None) -> None:
    job = create(engine, clock)
    assert ended(engine, clock, reason).status == ("failed" if reason else "completed")
    assert store.find(engine, PROJECT, job.id).reason == reason
    assert store.message(engine, PROJECT, job.id, "More", None, clock()).job.status == "active"
    assert store.find(engine, PROJECT, job.id).reason is None


def test_repeated_idempotency_key_returns_the_first_job_for_seven_days_and_uses_no_quota(
    engine: Pool, clock: Clock
) -> None:
    first = store.create(engine, PROJECT, "Fix it", "key", clock())
    ended(engine, clock)
    again = store.create(engine, PROJECT, "Fix it", "key", clock.advance(5))
    assert again.job == first.job
    assert again.job.status is Status.ACTIVE
    assert again.quota.remaining == first.quota.remaining
    assert len(store.list_page(engine, PROJECT, None, 50, 0)[0]) == 1
    with pytest.raises(IdempotencyMismatch):
        create(engine, clock, "Break it", key="key")
    clock.advance(7 * DAY_S)
    assert create(engine, clock, "Break it", key="key").id != first.job.id


def test_idempotency_key_of_a_create_can_be_used_for_a_message(engine: Pool, clock: Clock) -> None:
    job = create(engine, clock, key="key")
    for _ in range(2):
        store.message(engine, PROJECT, job.id, "More", "key", clock())
    assert quota.quotas(engine, PROJECT, clock())[1].remaining == 99


def test_concurrent_creates_with_one_idempotency_key_create_one_job(engine: Pool, clock: Clock) -> None:
    begin = threading.Barrier(8)

    def ask(_: int) -> str:
        begin.wait()
        return store.create(engine, PROJECT, "Fix it", "key", clock()).job.id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1


def test_jobs_are_listed_from_newest_to_oldest_in_pages(engine: Pool, clock: Clock) -> None:
    ids = [create(engine, clock).id for _ in range(5)]
    pages = [store.list_page(engine, PROJECT, None, 2, offset) for offset in (0, 2, 4, 6)]
    assert [job.id for page, _ in pages for job in page] == ids[::-1]
    assert [more for _, more in pages] == [True, True, False, False]


def test_list_continues_after_a_position_also_among_jobs_of_one_moment(engine: Pool) -> None:
    ids = sorted(store.create(engine, PROJECT, "Fix it", None, 1).job.id for _ in range(5))
    seen: list[str] = []
    after = None
    for has_more in (True, True, False):
        jobs, more = store.list_page(engine, PROJECT, None, 2, after=after)
        assert more == has_more
        seen += [job.id for job in jobs]
        after = Position(1, seen[-1])
        store.create(engine, PROJECT, "Newer", None, 2)
    assert seen == ids


def test_jobs_are_listed_by_status(engine: Pool, clock: Clock) -> None:
    ids = [create(engine, clock).id for _ in range(3)]
    ended(engine, clock)
    ended(engine, clock, "it broke")
    listed = {status: store.list_page(engine, PROJECT, status, 50, 0)[0] for status in Status}
    assert {status: [job.id for job in jobs] for status, jobs in listed.items()} == {
        "completed": [ids[0]],
        "failed": [ids[1]],
        "active": [ids[2]],
        "archived": [],
    }


def test_cancelled_job_has_failed_and_none_of_its_turns_waits(engine: Pool, clock: Clock) -> None:
    job = create(engine, clock)
    store.message(engine, PROJECT, job.id, "More", None, clock())
    cancelled = store.cancel(engine, PROJECT, job.id, clock())
    assert (cancelled.status, cancelled.reason) == ("failed", "the job was cancelled")
    assert queue.claim(engine, "worker", clock(), LEASE_US) is None
    with pytest.raises(JobNotActive):
        store.cancel(engine, PROJECT, job.id, clock())
    store.message(engine, PROJECT, job.id, "Go on", None, clock())
    lease = queue.claim(engine, "worker", clock(), LEASE_US)
    assert lease is not None
    assert (lease.prompt, list(lease.history)) == ("Go on", []), "a turn that was never started is not in the history"


def test_archived_job_accepts_no_message_and_no_cancel(engine: Pool, clock: Clock) -> None:
    job = create(engine, clock)
    with pytest.raises(JobStillActive):
        store.archive(engine, PROJECT, job.id, clock())
    ended(engine, clock)
    archived = store.archive(engine, PROJECT, job.id, clock.advance(9))
    assert (archived.status, archived.archived_us) == ("archived", clock())
    assert store.archive(engine, PROJECT, job.id, clock.advance(9)).archived_us == archived.archived_us
    with pytest.raises(JobArchived):
        store.message(engine, PROJECT, job.id, "More", None, clock())
    with pytest.raises(JobNotActive):
        store.cancel(engine, PROJECT, job.id, clock())


def test_job_that_is_idle_for_thirty_days_is_archived(engine: Pool, clock: Clock) -> None:
    idle, busy = create(engine, clock), create(engine, clock)
    ended(engine, clock)
    clock.advance(30 * DAY_S - 1)
    store.archive_idle(engine, clock())
    assert store.find(engine, PROJECT, idle.id).status == "completed"
    store.archive_idle(engine, clock.advance(1))
    assert store.find(engine, PROJECT, idle.id).archived_us == clock()
    assert store.find(engine, PROJECT, busy.id).status == "active"


def test_old_archived_job_is_removed_with_its_turns_log_deliveries_and_responses(engine: Pool, clock: Clock) -> None:
    with engine.connect() as connection:
        chosen = configuration.load(connection, PROJECT)
    hook = {"webhook": "http://127.0.0.1:1", "webhook_secret": "env:HOOK"}
    configuration.store(engine, PROJECT, configuration.changed(chosen, hook))
    old, young, idle = (create(engine, clock, key=f"key {number}") for number in range(3))
    store.message(engine, PROJECT, old.id, "More", "key", clock())
    for _ in range(4):
        ended(engine, clock)
    store.archive(engine, PROJECT, old.id, clock.advance(1))
    archived_us = clock()
    store.archive(engine, PROJECT, young.id, clock.advance(1))
    assert not store.remove_archived(engine, archived_us)
    assert store.remove_archived(engine, archived_us + 1)
    assert not store.remove_archived(engine, archived_us + 1)
    left = {young.id, idle.id}
    assert {*sql.column(engine, "SELECT id FROM jobs")} == left
    for table in ("turns", "job_log", "webhook_deliveries"):
        assert {*sql.column(engine, f"SELECT job_id FROM {table}")} == left, table
    answers = sql.rows(engine, "SELECT operation, key FROM job_answers ORDER BY key")
    assert answers == [("create", "key 1"), ("create", "key 2")]
    assert store.remove_archived(engine, clock() + 1)
    assert not store.remove_archived(engine, clock.advance(400 * DAY_S)), "only archived jobs are removed"


def test_archiving_idle_jobs_does_not_wait_for_a_locked_job(engine: Pool, clock: Clock) -> None:
    locked, free = (create(engine, clock) for _ in range(2))
    for _ in range(2):
        ended(engine, clock)
    clock.advance(30 * DAY_S)
    has_row_locks = engine.url.startswith("postgresql")
    holding = engine.transaction() if has_row_locks else engine.connect()
    with ThreadPoolExecutor(1) as pool, holding as connection:
        store.locked(connection, locked.id)
        pool.submit(store.archive_idle, engine, clock()).result(timeout=60)
    assert store.find(engine, PROJECT, locked.id).status == ("completed" if has_row_locks else "archived")
    assert store.find(engine, PROJECT, free.id).status == "archived"


def test_jobs_of_a_deleted_project_are_removed_and_their_leases_lost(engine: Pool, clock: Clock) -> None:
    job = create(engine, clock, key="key")
    lease = queue.claim(engine, "worker", clock(), LEASE_US)
    assert lease is not None
    assert store.remove(engine, PROJECT) == [job.id]
    assert store.unarchived_ids(engine) == set()
    projects.delete(engine, PROJECT)
    with pytest.raises(LeaseLost, match="the project was deleted"):
        queue.finish(engine, lease, Outcome(None), clock())


@pytest.mark.long
def test_deleting_a_project_while_its_turns_end_does_not_deadlock(engine: Pool, clock: Clock) -> None:
    """Run up to 20 rounds in at most 10 s, so that the transactions overlap in many orders."""
    ends_s = time.monotonic() + 10
    with ThreadPoolExecutor(6) as pool:
        for number in range(20):
            if time.monotonic() >= ends_s:
                break
            _delete_while_turns_end(engine, clock, f"round-{number}", pool)


def _delete_while_turns_end(engine: Pool, clock: Clock, project: str, pool: ThreadPoolExecutor) -> None:
    projects.create(engine, project, (), 0)
    settings = {
        "repository": "https://git.example/docs",
        "model": "m",
        "webhook": "http://h/",
        "webhook_secret": "env:H",
    }
    configuration.store(engine, project, configuration.changed(Configuration(repository=""), settings))
    for _ in range(4):
        store.create(engine, project, "Fix it", None, clock.advance(1))
    leases = [queue.claim(engine, "worker", clock(), LEASE_US) for _ in range(4)]
    *ending, cancelled = [lease for lease in leases if lease is not None]
    begin = threading.Barrier(6)

    def at_once(do: Callable[[], object]) -> None:
        begin.wait()
        with suppress(LeaseLost, JobNotFound):
            do()

    def delete() -> None:
        projects.begin_deletion(engine, project)
        store.remove(engine, project)
        projects.delete(engine, project)

    futures = [pool.submit(at_once, partial(queue.finish, engine, each, Outcome("no"), clock())) for each in ending]
    futures.append(pool.submit(at_once, partial(store.cancel, engine, project, cancelled.job.id, clock())))
    futures.append(pool.submit(at_once, partial(store.archive_idle, engine, clock())))
    futures.append(pool.submit(at_once, delete))
    for future in futures:
        future.result()
    assert store.list_page(engine, project, None, 50, 0) == ([], False)
