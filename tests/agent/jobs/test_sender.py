"""Threads that send webhook messages for several projects."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from agent.jobs import configuration, webhook
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from agent.worker.threads import Sender
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT, on_sqlite
from tests.agent.jobs.ended_job import SECRETS, end_job, set_webhook
from tests.agent.servers.webhook_receiver import webhook_receiver
from tests.processes.waiting import until
from warehouse.control import projects
from warehouse.database.pool import Pool, PoolError


@on_sqlite
def test_slow_receiver_delays_only_its_own_project_and_gets_one_message_at_a_time(engine: Pool, clock: Clock) -> None:
    projects.create(engine, "slow", (), 0)
    configuration.store(engine, "slow", Configuration("https://git.example/docs", preset="command", command=("true",)))
    outcomes: list[webhook.Outcome] = []
    with (
        webhook_receiver(200) as slow,
        webhook_receiver(200) as quick,
        closing(Sender(engine, SECRETS, clock, outcomes.append)) as sender,
    ):
        slow.may_respond.clear()
        set_webhook(engine, slow.url, project="slow")
        set_webhook(engine, quick.url)
        for project in ("slow", "slow", PROJECT, PROJECT):
            end_job(engine, clock, Outcome(None), project)
            clock.advance(1)
        sender.send_due()
        until(lambda: slow.messages and outcomes == ["delivered"] * 2)
        for delivered in (3, 4):
            end_job(engine, clock, Outcome(None))
            sender.send_due()
            until(lambda delivered=delivered: outcomes == ["delivered"] * delivered)
        assert (len(slow.messages), len(quick.messages)) == (1, 4)
        slow.may_respond.set()
        until(lambda: outcomes == ["delivered"] * 6)
    assert (len(slow.messages), len(quick.messages)) == (2, 4)


@on_sqlite
def test_failed_message_is_reported_once_and_not_repeated_before_it_is_due(engine: Pool, clock: Clock) -> None:
    outcomes: list[webhook.Outcome] = []
    with webhook_receiver(500, 200) as receiver, closing(Sender(engine, SECRETS, clock, outcomes.append)) as sender:
        set_webhook(engine, receiver.url)
        end_job(engine, clock, Outcome(None))
        sender.send_due()
        until(lambda: outcomes == ["failed"])
        until(lambda: all(future.done() for future in sender._running.values()))
        sender.send_due()
        assert sender._running == {}
        clock.advance(webhook.RETRY_S[0])
        sender.send_due()
        until(lambda: outcomes == ["failed", "delivered"])
    assert len(receiver.messages) == 2


@on_sqlite
def test_closed_sender_finishes_the_message_that_it_sends_and_starts_no_other(engine: Pool, clock: Clock) -> None:
    outcomes: list[webhook.Outcome] = []
    sender = Sender(engine, SECRETS, clock, outcomes.append)
    with webhook_receiver(200) as receiver, ThreadPoolExecutor(1) as pool:
        receiver.may_respond.clear()
        set_webhook(engine, receiver.url)
        for _ in range(2):
            end_job(engine, clock, Outcome(None), PROJECT)
            clock.advance(1)
        sender.send_due()
        until(lambda: bool(receiver.messages))
        closed = pool.submit(sender.close)
        until(sender._stopping.is_set)
        receiver.may_respond.set()
        closed.result()
        assert (len(receiver.messages), outcomes) == (1, ["delivered"])
    assert webhook.due(engine, clock()) == [PROJECT]


def test_error_of_a_thread_is_raised_by_the_next_call_and_its_message_is_sent_later(engine: Pool, clock: Clock) -> None:
    with webhook_receiver(200) as receiver, closing(Sender(engine, SECRETS, clock, lambda outcome: None)) as sender:
        set_webhook(engine, receiver.url)
        receiver.may_respond.clear()
        end_job(engine, clock, Outcome(None))
        sender.send_due()
        until(lambda: receiver.messages)
        with engine.transaction() as connection:
            connection.execute("ALTER TABLE webhook_deliveries RENAME TO renamed")
        receiver.may_respond.set()
        until(lambda: all(future.done() for future in sender._running.values()))
        with engine.transaction() as connection:
            connection.execute("ALTER TABLE renamed RENAME TO webhook_deliveries")
        with pytest.raises(PoolError):
            sender.send_due()
        clock.advance(webhook.CLAIM_US / SECOND_US)
        sender.send_due()
        until(lambda: len(receiver.messages) == 2)
    assert len({headers["webhook-id"] for headers, _ in receiver.messages}) == 1
