"""Heartbeat of a lease: renewal, loss, and the time at which a turn must stop without a renewal."""

import time
from collections.abc import Callable
from contextlib import closing
from threading import Event

import pytest

from agent.jobs import journal, queue, store
from agent.worker.heartbeat import LeaseHeartbeat
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT, on_sqlite
from tests.processes.waiting import until
from tests.stores import sql
from warehouse.database.pool import Pool

LEASE_S = 60

Start = Callable[..., LeaseHeartbeat]


@pytest.fixture
def start(engine: Pool, clock: Clock) -> Start:
    """Return a function that claims a new turn and starts its heartbeat."""

    def claim(requested_s_ago: float = 0, stopping: Event | None = None) -> LeaseHeartbeat:
        store.create(engine, PROJECT, "Fix it", None, clock())
        lease = queue.claim(engine, "worker", clock(), LEASE_S * SECOND_US)
        assert lease is not None
        requested_s = time.monotonic() - requested_s_ago
        return LeaseHeartbeat(engine, lease, LEASE_S, requested_s, stopping or Event(), clock)

    return claim


def lease_until_us(engine: Pool) -> int:
    return int(sql.column(engine, "SELECT lease_until_us FROM turns")[0])


@on_sqlite
@pytest.mark.parametrize(("requested_s_ago", "is_stopped"), [(40, False), (48, True)])
def test_turn_stops_after_four_fifths_of_an_old_lease(start: Start, requested_s_ago: float, is_stopped: bool) -> None:
    with closing(start(requested_s_ago)) as heartbeat:
        assert heartbeat.is_stopped() == is_stopped


def test_abandoned_turn_stays_stopped_after_its_lease_was_renewed(engine: Pool, clock: Clock, start: Start) -> None:
    with closing(start(48)) as heartbeat:
        assert heartbeat.is_stopped()
        clock.advance(1)
    assert lease_until_us(engine) == clock() + LEASE_S * SECOND_US
    assert heartbeat.is_stopped()


@pytest.mark.long
def test_lease_is_renewed_while_the_turn_runs(engine: Pool, clock: Clock, start: Start) -> None:
    with closing(start()) as heartbeat:
        now_us = clock.advance(10)
        until(lambda: lease_until_us(engine) == now_us + LEASE_S * SECOND_US)
        assert not heartbeat.is_stopped()


@pytest.mark.long
def test_turn_of_a_cancelled_job_is_stopped_at_the_next_heartbeat(engine: Pool, clock: Clock, start: Start) -> None:
    with closing(start()) as heartbeat:
        [job], _ = store.list_page(engine, PROJECT, None, 1, 0)
        store.cancel(engine, PROJECT, job.id, clock())
        until(heartbeat.is_stopped)
    assert heartbeat.is_lost


@on_sqlite
def test_turn_of_a_stopping_worker_is_stopped_with_its_lease(start: Start) -> None:
    stopping = Event()
    with closing(start(stopping=stopping)) as heartbeat:
        stopping.set()
        assert heartbeat.is_stopped()
    assert not heartbeat.is_lost


@on_sqlite
def test_output_is_written_to_the_log_when_the_heartbeat_closes(engine: Pool, start: Start) -> None:
    with closing(start()) as heartbeat:
        heartbeat.tail.add(b"one\ntwo\n")
    [job], _ = store.list_page(engine, PROJECT, None, 1, 0)
    assert [(entry.kind, entry.text) for entry in journal.read(engine, job.id)[0]] == [
        ("turn", "begins"),
        ("output", "one\ntwo\n"),
    ]
