"""Jobs in the control database, on SQLite and PostgreSQL alike."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest
import sqlalchemy as sa

from agent.errors import (
    IdempotencyMismatch,
    JobArchived,
    JobNotActive,
    JobNotFound,
    JobStillActive,
    LeaseLost,
    NotConfigured,
    QuotaExceeded,
)
from agent.jobs import configuration, queue, quota, store
from agent.jobs.configuration import Configuration
from agent.jobs.job import Job, Status
from agent.jobs.queue import Outcome
from agent.jobs.tables import ANSWERS, DELIVERIES, JOBS, LOG, TURNS
from tests.agent.clock import HOUR_S, SECOND_US, Clock
from tests.agent.conftest import PROJECT
from warehouse.control import projects
from warehouse.errors import ProjectNotFound

LEASE_US = 10 * SECOND_US
DAY_S = 24 * HOUR_S


def create(engine: sa.Engine, clock: Clock, prompt: str = "Mend it", key: str | None = None) -> Job:
    return store.create(engine, PROJECT, prompt, key, clock.turn(1)).job


def ended(engine: sa.Engine, clock: Clock, reason: str | None = None) -> Job:
    """The longest waiting job, after a turn of it."""
    lease = queue.claim(engine, "worker", clock(), LEASE_US)
    assert lease is not None
    queue.finish(engine, lease, Outcome(reason), clock())
    return store.find(engine, PROJECT, lease.job.id)


def test_a_new_job_is_active_and_knows_where_it_starts(engine: sa.Engine, clock: Clock) -> None:
    job = create(engine, clock)
    assert store.find(engine, PROJECT, job.id) == job
    assert (job.status, job.repository, job.ref, job.model) == ("active", "https://git.example/docs", "main", "a-model")
    assert (job.pull_request, job.archived_us, job.created_us) == (None, None, clock())


def test_a_project_without_a_repository_takes_no_job(engine: sa.Engine, clock: Clock) -> None:
    projects.create(engine, "bare", (), 0)
    with pytest.raises(NotConfigured, match="readership project agent bare --repository"):
        store.create(engine, "bare", "Mend it", None, clock())
    chosen = configuration.changed(Configuration(repository=""), {"repository": "https://git.example/docs"})
    configuration.store(engine, "bare", chosen)
    with pytest.raises(NotConfigured, match="has no model for opencode: .*readership project agent bare --model"):
        store.create(engine, "bare", "Mend it", None, clock())
    with pytest.raises(ProjectNotFound):
        store.create(engine, "gone", "Mend it", None, clock())


def test_a_job_of_another_project_is_unknown(engine: sa.Engine, clock: Clock) -> None:
    projects.create(engine, "other", (), 0)
    job = create(engine, clock)
    with pytest.raises(JobNotFound):
        store.find(engine, "other", job.id)
    with pytest.raises(JobNotFound):
        store.message(engine, "other", job.id, "Hello", None, clock())
    with pytest.raises(JobNotFound):
        store.archive(engine, "other", job.id, clock())


@pytest.mark.parametrize("reason", [None, "it broke"])
def test_a_message_makes_a_job_active_again(engine: sa.Engine, clock: Clock, reason: str | None) -> None:
    job = create(engine, clock)
    assert ended(engine, clock, reason).status == ("failed" if reason else "completed")
    assert ended_reason(engine, job) == reason
    assert store.message(engine, PROJECT, job.id, "More", None, clock()).job.status == "active"
    assert ended_reason(engine, job) is None


def ended_reason(engine: sa.Engine, job: Job) -> str | None:
    return store.find(engine, PROJECT, job.id).reason


def test_the_hundred_and_first_create_of_an_hour_is_refused_until_the_first_is_an_hour_old(
    engine: sa.Engine, clock: Clock
) -> None:
    began_us = clock()
    left = [store.create(engine, PROJECT, "Mend it", None, clock.turn(1)).quota.left for _ in range(100)]
    assert left == list(range(99, -1, -1))
    with pytest.raises(QuotaExceeded) as refused:
        store.create(engine, PROJECT, "Mend it", None, clock())
    assert refused.value.reset_s == HOUR_S - 99
    clock.us = began_us + (1 + HOUR_S) * SECOND_US - 1
    with pytest.raises(QuotaExceeded):
        store.create(engine, PROJECT, "Mend it", None, clock())
    clock.us += 1
    assert store.create(engine, PROJECT, "Mend it", None, clock()).quota.left == 0
    with pytest.raises(QuotaExceeded):
        store.create(engine, PROJECT, "Mend it", None, clock())


def test_messages_are_counted_apart_from_creates_and_projects_apart_from_each_other(
    engine: sa.Engine, clock: Clock
) -> None:
    job = create(engine, clock)
    for _ in range(100):
        store.message(engine, PROJECT, job.id, "More", None, clock())
    with pytest.raises(QuotaExceeded):
        store.message(engine, PROJECT, job.id, "More", None, clock())
    assert store.create(engine, PROJECT, "Mend it", None, clock()).quota.left == 98
    projects.create(engine, "other", (), 0)
    assert [each.left for each in quota.remaining(engine, "other", clock())] == [100, 100]
    assert [each.left for each in quota.remaining(engine, PROJECT, clock())] == [98, 0]


def test_the_limit_is_exact_when_many_ask_at_once(engine: sa.Engine, clock: Clock) -> None:
    begin = threading.Barrier(8)

    def ask(_: int) -> int:
        begin.wait()
        taken = 0
        for _ in range(15):
            try:
                store.create(engine, PROJECT, "Mend it", None, clock())
                taken += 1
            except QuotaExceeded:
                pass
        return taken

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 100


def test_an_idempotency_key_gives_the_first_answer_again_and_uses_nothing(engine: sa.Engine, clock: Clock) -> None:
    first = store.create(engine, PROJECT, "Mend it", "key", clock())
    ended(engine, clock)
    again = store.create(engine, PROJECT, "Mend it", "key", clock.turn(5))
    assert again.job == first.job
    assert again.job.status is Status.ACTIVE
    assert again.quota.left == first.quota.left
    assert len(store.listed(engine, PROJECT, None, 50, 0)[0]) == 1


def test_an_idempotency_key_with_another_prompt_is_refused(engine: sa.Engine, clock: Clock) -> None:
    create(engine, clock, key="key")
    with pytest.raises(IdempotencyMismatch):
        create(engine, clock, "Break it", key="key")


def test_a_key_of_a_create_may_be_used_for_a_message(engine: sa.Engine, clock: Clock) -> None:
    job = create(engine, clock, key="key")
    for _ in range(2):
        store.message(engine, PROJECT, job.id, "More", "key", clock())
    assert quota.remaining(engine, PROJECT, clock())[1].left == 99


def test_an_idempotency_key_is_forgotten_after_seven_days(engine: sa.Engine, clock: Clock) -> None:
    first = create(engine, clock, key="key")
    clock.turn(7 * DAY_S)
    assert create(engine, clock, "Break it", key="key").id != first.id


def test_an_idempotency_key_sent_by_many_at_once_makes_one_job(engine: sa.Engine, clock: Clock) -> None:
    begin = threading.Barrier(8)

    def ask(_: int) -> str:
        begin.wait()
        return store.create(engine, PROJECT, "Mend it", "key", clock()).job.id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1


def test_jobs_are_listed_newest_first_in_pages(engine: sa.Engine, clock: Clock) -> None:
    made = [create(engine, clock).id for _ in range(5)]
    pages = [store.listed(engine, PROJECT, None, 2, offset) for offset in (0, 2, 4, 6)]
    assert [job.id for page, _ in pages for job in page] == made[::-1]
    assert [more for _, more in pages] == [True, True, False, False]


def test_jobs_are_listed_by_state(engine: sa.Engine, clock: Clock) -> None:
    made = [create(engine, clock).id for _ in range(3)]
    ended(engine, clock)
    ended(engine, clock, "it broke")
    found = {status: store.listed(engine, PROJECT, status, 50, 0)[0] for status in Status}
    assert {status: [job.id for job in jobs] for status, jobs in found.items()} == {
        "completed": [made[0]],
        "failed": [made[1]],
        "active": [made[2]],
        "archived": [],
    }


def test_a_cancelled_job_has_failed_and_nothing_of_it_waits(engine: sa.Engine, clock: Clock) -> None:
    job = create(engine, clock)
    store.message(engine, PROJECT, job.id, "More", None, clock())
    cancelled = store.cancel(engine, PROJECT, job.id, clock())
    assert (cancelled.status, cancelled.reason) == ("failed", "it was cancelled")
    assert queue.claim(engine, "worker", clock(), LEASE_US) is None
    with pytest.raises(JobNotActive):
        store.cancel(engine, PROJECT, job.id, clock())
    store.message(engine, PROJECT, job.id, "Go on", None, clock())
    lease = queue.claim(engine, "worker", clock(), LEASE_US)
    assert lease is not None
    assert (lease.prompt, list(lease.history)) == ("Go on", []), "what was never begun is no history"


def test_an_archived_job_is_final(engine: sa.Engine, clock: Clock) -> None:
    job = create(engine, clock)
    with pytest.raises(JobStillActive):
        store.archive(engine, PROJECT, job.id, clock())
    ended(engine, clock)
    archived = store.archive(engine, PROJECT, job.id, clock.turn(9))
    assert (archived.status, archived.archived_us) == ("archived", clock())
    assert store.archive(engine, PROJECT, job.id, clock.turn(9)).archived_us == archived.archived_us
    with pytest.raises(JobArchived):
        store.message(engine, PROJECT, job.id, "More", None, clock())
    with pytest.raises(JobNotActive):
        store.cancel(engine, PROJECT, job.id, clock())


def test_a_job_idle_for_thirty_days_is_archived_by_itself(engine: sa.Engine, clock: Clock) -> None:
    idle, busy = create(engine, clock), create(engine, clock)
    ended(engine, clock)
    clock.turn(30 * DAY_S - 1)
    store.archive_idle(engine, clock())
    assert store.find(engine, PROJECT, idle.id).status == "completed"
    store.archive_idle(engine, clock.turn(1))
    assert store.find(engine, PROJECT, idle.id).archived_us == clock()
    assert store.find(engine, PROJECT, busy.id).status == "active"


def test_an_archived_job_is_removed_with_all_that_hangs_on_it_once_it_is_old_enough(
    engine: sa.Engine, clock: Clock
) -> None:
    with engine.connect() as connection:
        chosen = configuration.load(connection, PROJECT)
    hook = {"webhook": "http://127.0.0.1:1", "webhook_secret": "env:HOOK"}
    configuration.store(engine, PROJECT, configuration.changed(chosen, hook))
    old, young, idle = (create(engine, clock, key=f"key {number}") for number in range(3))
    store.message(engine, PROJECT, old.id, "More", "key", clock())
    for _ in range(4):
        ended(engine, clock)
    store.archive(engine, PROJECT, old.id, clock.turn(1))
    archived_us = clock()
    store.archive(engine, PROJECT, young.id, clock.turn(1))
    assert not store.remove_archived(engine, archived_us)
    assert store.remove_archived(engine, archived_us + 1)
    assert not store.remove_archived(engine, archived_us + 1)
    kept = {young.id, idle.id}
    with engine.connect() as connection:
        assert set(connection.execute(sa.select(JOBS.c.id)).scalars()) == kept
        for table in (TURNS, LOG, DELIVERIES):
            assert set(connection.execute(sa.select(table.c.job_id)).scalars()) == kept, table.name
        answers = connection.execute(sa.select(ANSWERS.c.operation, ANSWERS.c.key).order_by(ANSWERS.c.key)).all()
    assert [tuple(answer) for answer in answers] == [("create", "key 1"), ("create", "key 2")]
    assert store.remove_archived(engine, clock() + 1)
    assert not store.remove_archived(engine, clock.turn(400 * DAY_S)), "only archived jobs are removed"


def test_a_job_that_another_holds_is_not_waited_for_to_archive_idle_ones(engine: sa.Engine, clock: Clock) -> None:
    held, free = (create(engine, clock) for _ in range(2))
    for _ in range(2):
        ended(engine, clock)
    clock.turn(30 * DAY_S)
    with ThreadPoolExecutor(1) as pool, engine.begin() as connection:
        connection.execute(sa.select(JOBS.c.id).where(JOBS.c.id == held.id).with_for_update())
        pool.submit(store.archive_idle, engine, clock()).result(timeout=20)
    has_row_locks = engine.dialect.name == "postgresql"
    assert store.find(engine, PROJECT, held.id).status == ("completed" if has_row_locks else "archived")
    assert store.find(engine, PROJECT, free.id).status == "archived"


def test_a_deleted_project_takes_its_jobs_along(engine: sa.Engine, clock: Clock) -> None:
    job = create(engine, clock, key="key")
    lease = queue.claim(engine, "worker", clock(), LEASE_US)
    assert lease is not None
    assert store.remove(engine, PROJECT) == [job.id]
    assert store.unarchived(engine) == set()
    projects.delete(engine, PROJECT)
    with pytest.raises(LeaseLost, match="the project was deleted"):
        queue.finish(engine, lease, Outcome(None), clock())


def test_a_project_is_deleted_while_its_turns_end_and_nobody_waits_for_the_other(
    engine: sa.Engine, clock: Clock
) -> None:
    """As many rounds as ten seconds hold, and enough to meet in every order: the locks are taken in the same one."""
    ends_s = time.monotonic() + 10
    with ThreadPoolExecutor(6) as pool:
        for number in range(20):
            if time.monotonic() >= ends_s:
                break
            _delete_while_turns_end(engine, clock, f"round-{number}", pool)


def _delete_while_turns_end(engine: sa.Engine, clock: Clock, project: str, pool: ThreadPoolExecutor) -> None:
    projects.create(engine, project, (), 0)
    given = {"repository": "https://git.example/docs", "model": "m", "webhook": "http://h/", "webhook_secret": "env:H"}
    configuration.store(engine, project, configuration.changed(Configuration(repository=""), given))
    for _ in range(4):
        store.create(engine, project, "Mend it", None, clock.turn(1))
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

    done = [pool.submit(at_once, partial(queue.finish, engine, each, Outcome("no"), clock())) for each in ending]
    done.append(pool.submit(at_once, partial(store.cancel, engine, project, cancelled.job.id, clock())))
    done.append(pool.submit(at_once, partial(store.archive_idle, engine, clock())))
    done.append(pool.submit(at_once, delete))
    for each in done:
        each.result()
    assert store.listed(engine, project, None, 50, 0) == ([], False)
