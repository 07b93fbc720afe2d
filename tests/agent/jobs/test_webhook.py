"""A project's webhook is told when a job leaves active: signed, at least once, and without holding anything up."""

import base64
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import sqlalchemy as sa

from agent.jobs import configuration, queue, store, webhook
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from agent.jobs.sender import Sender
from agent.jobs.webhook import RETRY_S, deliver
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT
from tests.agent.dripping import dripping
from tests.waiting import until
from warehouse.control import projects

SECRET = {"HOOK": "s3cret", "ENCODED": "whsec_" + base64.b64encode(b"s3cret").decode()}


@dataclass
class Receiver:
    """Answers with `statuses` in turn, the last for ever, once `answers` is set, and keeps what came."""

    statuses: list[int]
    url: str = ""
    answers: threading.Event = field(default_factory=threading.Event)
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receiver(*statuses: int) -> Iterator[Receiver]:
    told = Receiver(list(statuses))
    told.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
            told.answers.wait(30)
            status = told.statuses.pop(0) if len(told.statuses) > 1 else told.statuses[0]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{told.url}/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        told.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


def hook(engine: sa.Engine, url: str, secret: str = "env:HOOK", project: str = PROJECT) -> None:
    with engine.connect() as connection:
        known = configuration.load(connection, project)
    configuration.store(engine, project, configuration.changed(known, {"webhook": url, "webhook_secret": secret}))


def end(engine: sa.Engine, clock: Clock, outcome: Outcome, project: str = PROJECT) -> str:
    """A new job, ended."""
    id = store.create(engine, project, "Mend it", None, clock()).job.id
    lease = queue.claim(engine, "worker", clock(), SECOND_US)
    assert lease is not None
    queue.finish(engine, lease, outcome, clock())
    return id


def test_a_completed_job_is_told_with_a_signature_that_holds(engine: sa.Engine, clock: Clock) -> None:
    with receiver(204) as told:
        hook(engine, told.url)
        id = end(engine, clock, Outcome(None, "https://git.example/pull/1"))
        assert deliver(engine, PROJECT, SECRET, clock)
        assert not deliver(engine, PROJECT, SECRET, clock)
    [(headers, body)] = told.came
    said = json.loads(body)
    assert (said["type"], said["data"]["projectId"], said["data"]["reason"]) == ("job.completed", PROJECT, None)
    assert (said["data"]["job"]["id"], said["data"]["job"]["prLink"]) == (id, "https://git.example/pull/1")
    assert headers["content-type"] == "application/json"
    assert headers["webhook-timestamp"] == str(clock() // SECOND_US)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(b"s3cret", signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_the_signature_is_that_of_the_standards_own_example() -> None:
    """https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/python/tests/test_webhooks.py"""
    headers = webhook.signed(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}'
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_failed_and_a_cancelled_job_are_told_with_the_reason(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told:
        hook(engine, told.url)
        end(engine, clock, Outcome("it broke"))
        cancelled = store.create(engine, PROJECT, "Mend it", None, clock.turn(1)).job.id
        store.cancel(engine, PROJECT, cancelled, clock())
        while deliver(engine, PROJECT, SECRET, clock):
            pass
    assert [json.loads(body)["data"]["reason"] for _, body in told.came] == ["it broke", "it was cancelled"]
    assert {json.loads(body)["type"] for _, body in told.came} == {"job.failed"}


def test_a_jobs_messages_are_taken_in_order_and_no_other_job_waits_for_them(engine: sa.Engine, clock: Clock) -> None:
    with receiver(500, 200) as told:
        hook(engine, told.url)
        first = end(engine, clock, Outcome("it broke"))
        store.message(engine, PROJECT, first, "More", None, clock())
        lease = queue.claim(engine, "worker", clock(), SECOND_US)
        assert lease is not None
        queue.finish(engine, lease, Outcome(None), clock() - SECOND_US)  # on a machine whose clock is slow
        assert deliver(engine, PROJECT, SECRET, clock) == "failed"
        assert deliver(engine, PROJECT, SECRET, clock) is None
        other = end(engine, clock, Outcome(None))
        assert deliver(engine, PROJECT, SECRET, clock) == "delivered"
        clock.turn(RETRY_S[0])
        assert [deliver(engine, PROJECT, SECRET, clock) for _ in range(3)] == ["delivered", "delivered", None]
    said = [json.loads(body) for _, body in told.came]
    assert [(each["data"]["job"]["id"], each["type"]) for each in said] == [
        (first, "job.failed"),
        (other, "job.completed"),
        (first, "job.failed"),
        (first, "job.completed"),
    ]


def test_a_slow_receiver_delays_its_own_project_alone(engine: sa.Engine, clock: Clock) -> None:
    """One message at a time, so that it is not asked for more than it can do either."""
    projects.create(engine, "slow", (), 0)
    configuration.store(engine, "slow", Configuration("https://git.example/docs", preset="command", command=("true",)))
    outcomes: list[webhook.Outcome] = []
    with (
        receiver(200) as slow,
        receiver(200) as quick,
        closing(Sender(engine, SECRET, clock, outcomes.append)) as sender,
    ):
        slow.answers.clear()
        hook(engine, slow.url, project="slow")
        hook(engine, quick.url)
        for project in ("slow", "slow", PROJECT, PROJECT):
            end(engine, clock, Outcome(None), project)
            clock.turn(1)
        for _ in range(2):
            sender.send_due()
            until(lambda: slow.came and outcomes == ["delivered"] * 2)
        assert (len(slow.came), len(quick.came)) == (1, 2)
        slow.answers.set()
        until(lambda: outcomes == ["delivered"] * 4)
    assert (len(slow.came), len(quick.came)) == (2, 2)


def test_a_sender_that_is_closed_ends_what_it_sends_and_leaves_the_rest(engine: sa.Engine, clock: Clock) -> None:
    outcomes: list[webhook.Outcome] = []
    sender = Sender(engine, SECRET, clock, outcomes.append)
    with receiver(200) as told, ThreadPoolExecutor(1) as pool:
        told.answers.clear()
        hook(engine, told.url)
        for _ in range(2):
            end(engine, clock, Outcome(None), PROJECT)
            clock.turn(1)
        sender.send_due()
        until(lambda: bool(told.came))
        closed = pool.submit(sender.close)
        until(sender._stopping.is_set)
        told.answers.set()
        closed.result()
        assert (len(told.came), outcomes) == (1, ["delivered"])
    assert webhook.due(engine, clock()) == [PROJECT]


@pytest.mark.parametrize(
    ("begin", "piece", "limit_s", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n", 0.5, "failed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 30, "delivered"),
    ],
    ids=["headers", "body"],
)
def test_an_attempt_has_a_limit_and_no_body_is_waited_for(
    engine: sa.Engine,
    clock: Clock,
    begin: bytes,
    piece: bytes,
    limit_s: float,
    outcome: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with dripping(begin, piece) as drip:
        hook(engine, drip.url)
        end(engine, clock, Outcome(None))
        assert deliver(engine, PROJECT, SECRET, clock, limit_s) == outcome
    assert ("it did not answer within 0.5 s; again in 5 s" in caplog.text) == (outcome == "failed")


def test_the_look_up_of_the_host_is_within_the_limit(
    engine: sa.Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A name server that does not answer holds the resolver for longer than that, and nothing ends it."""
    hook(engine, "http://hook.example/x")
    end(engine, clock, Outcome(None))
    answered, ended = threading.Event(), threading.Event()

    def look_up(*asked: object, **how: object) -> list[object]:
        answered.wait(3)
        ended.set()
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", look_up)
        assert deliver(engine, PROJECT, SECRET, clock, 0.3) == "failed"
        assert not ended.is_set()
        answered.set()
        assert ended.wait(10)
    assert "it did not answer within 0.3 s" in caplog.text


def test_what_ends_a_sending_is_raised_and_the_message_is_sent_later(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told, closing(Sender(engine, SECRET, clock, lambda outcome: None)) as sender:
        hook(engine, told.url)
        told.answers.clear()
        end(engine, clock, Outcome(None))
        sender.send_due()
        until(lambda: told.came)
        with engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE webhook_deliveries RENAME TO away"))
        told.answers.set()
        until(lambda: all(each.done() for each in sender._sending.values()))
        with engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE away RENAME TO webhook_deliveries"))
        with pytest.raises(sa.exc.DBAPIError):
            sender.send_due()
        clock.turn(webhook.CLAIMED_US / SECOND_US)
        sender.send_due()
        until(lambda: len(told.came) == 2)
    assert len({headers["webhook-id"] for headers, _ in told.came}) == 1


def test_a_job_that_stays_active_is_not_told(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told:
        hook(engine, told.url)
        id = store.create(engine, PROJECT, "Mend it", None, clock()).job.id
        store.message(engine, PROJECT, id, "More", None, clock())
        lease = queue.claim(engine, "worker", clock(), SECOND_US)
        assert lease is not None
        queue.finish(engine, lease, Outcome("it broke"), clock())
        assert not deliver(engine, PROJECT, SECRET, clock)


@pytest.mark.parametrize("status", [500, 404, 302])
def test_what_is_not_taken_is_sent_again_later_under_the_same_id(engine: sa.Engine, clock: Clock, status: int) -> None:
    with receiver(status, status, 200) as told:
        hook(engine, told.url)
        end(engine, clock, Outcome(None))
        for wait_s in RETRY_S[:2]:
            assert deliver(engine, PROJECT, SECRET, clock) == "failed"
            clock.turn(wait_s - 1)
            assert not deliver(engine, PROJECT, SECRET, clock)
            clock.turn(1)
        assert deliver(engine, PROJECT, SECRET, clock)
        clock.turn(10 * RETRY_S[-1])
        assert not deliver(engine, PROJECT, SECRET, clock)
    assert len({headers["webhook-id"] for headers, _ in told.came}) == 1
    assert len({headers["webhook-timestamp"] for headers, _ in told.came}) == 3


def test_after_the_last_attempt_it_is_given_up(engine: sa.Engine, clock: Clock) -> None:
    with receiver(500) as told:
        hook(engine, told.url)
        end(engine, clock, Outcome(None))
        for wait_s in RETRY_S:
            assert deliver(engine, PROJECT, SECRET, clock) == "failed"
            clock.turn(wait_s)
        assert deliver(engine, PROJECT, SECRET, clock) == "given_up"
        assert not deliver(engine, PROJECT, SECRET, clock)
    assert len(told.came) == len(RETRY_S) + 1


def test_a_receiver_that_is_away_or_a_secret_that_is_not_there_is_waited_for(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told:
        hook(engine, "http://127.0.0.1:1")
        end(engine, clock, Outcome(None))
        assert deliver(engine, PROJECT, SECRET, clock)
        hook(engine, told.url)
        clock.turn(RETRY_S[0])
        assert deliver(engine, PROJECT, {}, clock)
        assert told.came == []
        clock.turn(RETRY_S[1])
        assert deliver(engine, PROJECT, SECRET, clock)
    assert len(told.came) == 1


def test_a_sender_that_dies_is_followed_by_another(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told:
        hook(engine, told.url)
        end(engine, clock, Outcome(None))
        claimed = webhook._claim(engine, PROJECT, clock())
        assert claimed is not None
        assert not deliver(engine, PROJECT, SECRET, clock)
        clock.turn(webhook.CLAIMED_US / SECOND_US)
        assert deliver(engine, PROJECT, SECRET, clock)
    assert told.came[0][0]["webhook-id"] == claimed.id


def test_a_project_without_a_webhook_keeps_nothing_and_a_deleted_one_takes_it_along(
    engine: sa.Engine, clock: Clock
) -> None:
    end(engine, clock, Outcome(None))
    assert not deliver(engine, PROJECT, SECRET, clock)
    hook(engine, "http://127.0.0.1:1")
    end(engine, clock, Outcome(None))
    projects.delete(engine, PROJECT)
    assert not deliver(engine, PROJECT, SECRET, clock)


def test_what_waits_for_a_webhook_that_is_taken_away_is_given_up(
    engine: sa.Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    hook(engine, "http://127.0.0.1:1")
    end(engine, clock, Outcome(None))
    assert deliver(engine, PROJECT, SECRET, clock) == "failed"
    hook(engine, "", "")
    clock.turn(RETRY_S[0])
    assert deliver(engine, PROJECT, SECRET, clock) == "given_up"
    clock.turn(10 * RETRY_S[-1])
    assert deliver(engine, PROJECT, SECRET, clock) is None
    assert "the project has none any more; it is given up" in caplog.text


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("http://127.0.0.1:1", "whsec_abc"),
        (f"http://{'a' * 64}.example", "s3cret"),
        ("http://xn--a.example", "s3cret"),
    ],
)
def test_a_webhook_that_cannot_be_sent_to_stops_nothing(engine: sa.Engine, clock: Clock, url: str, secret: str) -> None:
    hook(engine, url)
    end(engine, clock, Outcome(None))
    assert deliver(engine, PROJECT, {"HOOK": secret}, clock)
    assert not deliver(engine, PROJECT, {"HOOK": secret}, clock)
