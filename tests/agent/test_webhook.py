"""A project's webhook is told when a job leaves active: signed, at least once, and without holding anything up."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import sqlalchemy as sa

from agent import configuration, queue, store, webhook
from agent.queue import Outcome
from agent.webhook import RETRY_S, deliver
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT
from warehouse import projects

SECRET = {"HOOK": "s3cret", "ENCODED": "whsec_" + base64.b64encode(b"s3cret").decode()}


@dataclass
class Receiver:
    """Answers with `statuses` in turn, the last for ever, and keeps what came."""

    statuses: list[int]
    url: str = ""
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receiver(*statuses: int) -> Iterator[Receiver]:
    told = Receiver(list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
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


def hook(engine: sa.Engine, url: str, secret: str = "env:HOOK") -> None:
    with engine.connect() as connection:
        known = configuration.of(connection, PROJECT)
    configuration.store(engine, PROJECT, configuration.changed(known, {"webhook": url, "webhook_secret": secret}))


def end(engine: sa.Engine, clock: Clock, outcome: Outcome) -> str:
    """A new job, ended."""
    id = store.create(engine, PROJECT, "Mend it", None, clock()).job.id
    lease = queue.claim(engine, "worker", clock(), SECOND_US)
    assert lease is not None
    queue.finish(engine, lease, outcome, clock())
    return id


def test_a_completed_job_is_told_with_a_signature_that_holds(engine: sa.Engine, clock: Clock) -> None:
    with receiver(204) as told:
        hook(engine, told.url)
        id = end(engine, clock, Outcome(None, "https://git.example/pull/1"))
        assert deliver(engine, SECRET, clock)
        assert not deliver(engine, SECRET, clock)
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
        while deliver(engine, SECRET, clock):
            pass
    assert [json.loads(body)["data"]["reason"] for _, body in told.came] == ["it broke", "it was cancelled"]
    assert {json.loads(body)["type"] for _, body in told.came} == {"job.failed"}


def test_a_job_that_stays_active_is_not_told(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told:
        hook(engine, told.url)
        id = store.create(engine, PROJECT, "Mend it", None, clock()).job.id
        store.message(engine, PROJECT, id, "More", None, clock())
        lease = queue.claim(engine, "worker", clock(), SECOND_US)
        assert lease is not None
        queue.finish(engine, lease, Outcome("it broke"), clock())
        assert not deliver(engine, SECRET, clock)


@pytest.mark.parametrize("status", [500, 404, 302])
def test_what_is_not_taken_is_sent_again_later_under_the_same_id(engine: sa.Engine, clock: Clock, status: int) -> None:
    with receiver(status, status, 200) as told:
        hook(engine, told.url)
        end(engine, clock, Outcome(None))
        for wait_s in RETRY_S[:2]:
            assert deliver(engine, SECRET, clock)
            clock.turn(wait_s - 1)
            assert not deliver(engine, SECRET, clock)
            clock.turn(1)
        assert deliver(engine, SECRET, clock)
        clock.turn(10 * RETRY_S[-1])
        assert not deliver(engine, SECRET, clock)
    assert len({headers["webhook-id"] for headers, _ in told.came}) == 1
    assert len({headers["webhook-timestamp"] for headers, _ in told.came}) == 3


def test_after_the_last_attempt_it_is_given_up(engine: sa.Engine, clock: Clock) -> None:
    with receiver(500) as told:
        hook(engine, told.url)
        end(engine, clock, Outcome(None))
        for wait_s in (*RETRY_S, 0):
            assert deliver(engine, SECRET, clock)
            clock.turn(wait_s)
        assert not deliver(engine, SECRET, clock)
    assert len(told.came) == len(RETRY_S) + 1


def test_a_receiver_that_is_away_or_a_secret_that_is_not_there_is_waited_for(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told:
        hook(engine, "http://127.0.0.1:1")
        end(engine, clock, Outcome(None))
        assert deliver(engine, SECRET, clock)
        hook(engine, told.url)
        clock.turn(RETRY_S[0])
        assert deliver(engine, {}, clock)
        assert told.came == []
        clock.turn(RETRY_S[1])
        assert deliver(engine, SECRET, clock)
    assert len(told.came) == 1


def test_a_sender_that_dies_is_followed_by_another(engine: sa.Engine, clock: Clock) -> None:
    with receiver(200) as told:
        hook(engine, told.url)
        end(engine, clock, Outcome(None))
        claimed = webhook._claim(engine, clock())
        assert claimed is not None
        assert not deliver(engine, SECRET, clock)
        clock.turn(webhook.CLAIMED_US / SECOND_US)
        assert deliver(engine, SECRET, clock)
    assert told.came[0][0]["webhook-id"] == claimed.id


def test_a_project_without_a_webhook_keeps_nothing_and_a_deleted_one_takes_it_along(
    engine: sa.Engine, clock: Clock
) -> None:
    end(engine, clock, Outcome(None))
    assert not deliver(engine, SECRET, clock)
    hook(engine, "http://127.0.0.1:1")
    end(engine, clock, Outcome(None))
    projects.delete(engine, PROJECT)
    assert not deliver(engine, SECRET, clock)


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
    assert deliver(engine, {"HOOK": secret}, clock)
    assert not deliver(engine, {"HOOK": secret}, clock)
