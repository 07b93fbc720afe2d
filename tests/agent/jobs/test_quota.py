"""Limit on a project's prompts per hour."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent.errors import QuotaExceeded
from agent.jobs import quota, store
from agent.jobs.quota import Quota
from tests.agent.clock import HOUR_S, SECOND_US, Clock
from tests.agent.conftest import PROJECT, on_sqlite
from warehouse.control import projects
from warehouse.database.pool import Pool


def create(engine: Pool, clock: Clock) -> Quota:
    return store.create(engine, PROJECT, "Fix it", None, clock()).quota


def test_101st_create_is_refused_until_the_first_is_an_hour_old(engine: Pool, clock: Clock) -> None:
    first_us = clock.us + SECOND_US
    remaining = [store.create(engine, PROJECT, "Fix it", None, clock.advance(1)).quota.remaining for _ in range(100)]
    assert remaining == list(range(99, -1, -1))
    with pytest.raises(QuotaExceeded, match=r"used create 100 times within the last hour; retry in 3501 s") as refused:
        create(engine, clock)
    assert (refused.value.operation, refused.value.reset_s) == ("create", HOUR_S - 99)
    clock.us = first_us + HOUR_S * SECOND_US - 1
    with pytest.raises(QuotaExceeded):
        create(engine, clock)
    clock.us += 1
    assert create(engine, clock).remaining == 0
    with pytest.raises(QuotaExceeded):
        create(engine, clock)


def test_messages_and_creates_and_projects_have_separate_quotas(engine: Pool, clock: Clock) -> None:
    job = store.create(engine, PROJECT, "Fix it", None, clock()).job
    for _ in range(100):
        store.message(engine, PROJECT, job.id, "More", None, clock())
    with pytest.raises(QuotaExceeded):
        store.message(engine, PROJECT, job.id, "More", None, clock())
    assert create(engine, clock).remaining == 98
    projects.create(engine, "other", (), 0)
    assert [each.remaining for each in quota.quotas(engine, "other", clock())] == [100, 100]
    assert [each.remaining for each in quota.quotas(engine, PROJECT, clock())] == [98, 0]


@on_sqlite
def test_quota_is_reset_when_the_oldest_use_leaves_the_window(engine: Pool, clock: Clock) -> None:
    assert [each.reset_s for each in quota.quotas(engine, PROJECT, clock())] == [HOUR_S, HOUR_S]
    create(engine, clock)
    clock.advance(600.5)
    create(engine, clock)
    assert quota.quotas(engine, PROJECT, clock.advance(0.25))[0] == Quota("create", 98, 3000)
    assert quota.quotas(engine, PROJECT, clock.advance(3000))[0] == Quota("create", 99, 600)


@on_sqlite
def test_refused_create_is_not_counted(engine: Pool, clock: Clock) -> None:
    for _ in range(100):
        create(engine, clock)
    clock.advance(1)
    for _ in range(5):
        with pytest.raises(QuotaExceeded):
            create(engine, clock)
    clock.advance(HOUR_S - 1)
    assert create(engine, clock).remaining == 99


def test_limit_is_exact_for_concurrent_creates(engine: Pool, clock: Clock) -> None:
    begin = threading.Barrier(8)

    def ask(_: int) -> int:
        begin.wait()
        created = 0
        for _ in range(15):
            try:
                create(engine, clock)
                created += 1
            except QuotaExceeded:
                pass
        return created

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 100
