"""Messages to a project's webhook: content, signature, order, retries, and the deadline of an attempt."""

import base64
import hashlib
import hmac
import json
import socket
import threading

import pytest

from agent.jobs import configuration, store, webhook
from agent.jobs.queue import Outcome
from agent.jobs.webhook import RETRY_S, deliver
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT, on_sqlite
from tests.agent.jobs.ended_job import SECRETS, end_job, end_turn, set_webhook
from tests.agent.servers.dripping import dripping
from tests.agent.servers.webhook_receiver import webhook_receiver
from warehouse.control import projects
from warehouse.database.pool import Pool

UNREACHABLE = "http://127.0.0.1:1"


@on_sqlite
@pytest.mark.parametrize("secret", ["env:HOOK", "env:ENCODED"])
def test_message_about_a_completed_job_has_a_valid_signature(engine: Pool, clock: Clock, secret: str) -> None:
    with webhook_receiver(204) as receiver:
        set_webhook(engine, receiver.url, secret)
        id = end_job(engine, clock, Outcome(None, "https://git.example/pull/1"))
        assert deliver(engine, PROJECT, SECRETS, clock) == "delivered"
        assert deliver(engine, PROJECT, SECRETS, clock) is None
    [(headers, body)] = receiver.messages
    message = json.loads(body)
    assert (message["type"], message["data"]["projectId"]) == ("job.completed", PROJECT)
    assert (message["timestamp"], message["data"]["reason"]) == ("2026-05-28T20:26:40.000Z", None)
    assert message["data"]["job"] == {
        "id": id,
        "status": "completed",
        "source": {"repository": "https://git.example/docs", "ref": "main"},
        "model": "a-model",
        "prLink": "https://git.example/pull/1",
        "createdAt": "2026-05-28T20:26:40.000Z",
        "archivedAt": None,
        "failureReason": None,
    }
    assert headers["content-type"] == "application/json"
    assert headers["webhook-timestamp"] == str(clock() // SECOND_US)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(b"s3cret", signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_signature_equals_the_one_in_the_tests_of_standard_webhooks() -> None:
    """Compare with the signature in the specification's own test of its Python library.

    https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/python/tests/test_webhooks.py
    """
    headers = webhook.signature_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}'
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_messages_about_a_failed_and_a_cancelled_job_have_the_reason(engine: Pool, clock: Clock) -> None:
    with webhook_receiver(200) as receiver:
        set_webhook(engine, receiver.url)
        end_job(engine, clock, Outcome("it broke"))
        cancelled = store.create(engine, PROJECT, "Fix it", None, clock.advance(1)).job.id
        store.cancel(engine, PROJECT, cancelled, clock())
        while deliver(engine, PROJECT, SECRETS, clock):
            pass
    messages = [json.loads(body) for _, body in receiver.messages]
    assert [message["data"]["reason"] for message in messages] == ["it broke", "the job was cancelled"]
    assert {message["type"] for message in messages} == {"job.failed"}


def test_messages_of_one_job_are_delivered_in_order_and_do_not_delay_other_jobs(engine: Pool, clock: Clock) -> None:
    with webhook_receiver(500, 200) as receiver:
        set_webhook(engine, receiver.url)
        first = end_job(engine, clock, Outcome("it broke"))
        store.message(engine, PROJECT, first, "More", None, clock())
        end_turn(engine, clock() - SECOND_US, Outcome(None))  # on a machine whose clock is a second slow
        assert deliver(engine, PROJECT, SECRETS, clock) == "failed"
        assert deliver(engine, PROJECT, SECRETS, clock) is None
        other = end_job(engine, clock, Outcome(None))
        assert deliver(engine, PROJECT, SECRETS, clock) == "delivered"
        clock.advance(RETRY_S[0])
        assert [deliver(engine, PROJECT, SECRETS, clock) for _ in range(3)] == ["delivered", "delivered", None]
    messages = [json.loads(body) for _, body in receiver.messages]
    assert [(message["data"]["job"]["id"], message["type"]) for message in messages] == [
        (first, "job.failed"),
        (other, "job.completed"),
        (first, "job.failed"),
        (first, "job.completed"),
    ]


@on_sqlite
@pytest.mark.parametrize(
    ("begin", "piece", "timeout_s", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n", 0.5, "failed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 30, "delivered"),
    ],
    ids=["headers", "body"],
)
def test_attempt_ends_at_its_deadline_and_does_not_wait_for_a_body(
    engine: Pool,
    clock: Clock,
    begin: bytes,
    piece: bytes,
    timeout_s: float,
    outcome: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with dripping(begin, piece) as drip:
        set_webhook(engine, drip.url)
        end_job(engine, clock, Outcome(None))
        assert deliver(engine, PROJECT, SECRETS, clock, timeout_s) == outcome
    assert ("it did not answer within 0.5 s; retrying in 5 s" in caplog.text) == (outcome == "failed")


@on_sqlite
def test_dns_lookup_counts_towards_the_deadline(
    engine: Pool, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Block the DNS lookup for longer than the deadline; a lookup cannot be interrupted."""
    set_webhook(engine, "http://hook.example/x")
    end_job(engine, clock, Outcome(None))
    may_end, ended = threading.Event(), threading.Event()

    def look_up(*arguments: object, **options: object) -> list[object]:
        may_end.wait(60)
        ended.set()
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", look_up)
        assert deliver(engine, PROJECT, SECRETS, clock, 0.3) == "failed"
        assert not ended.is_set()
        may_end.set()
        assert ended.wait(60)
    assert "it did not answer within 0.3 s" in caplog.text


def test_job_that_stays_active_has_no_message(engine: Pool, clock: Clock) -> None:
    with webhook_receiver(200) as receiver:
        set_webhook(engine, receiver.url)
        id = store.create(engine, PROJECT, "Fix it", None, clock()).job.id
        store.message(engine, PROJECT, id, "More", None, clock())
        end_turn(engine, clock(), Outcome("it broke"))
        assert deliver(engine, PROJECT, SECRETS, clock) is None
    assert receiver.messages == []


@on_sqlite
@pytest.mark.parametrize("status", [500, 404, 302])
def test_refused_message_is_sent_again_later_with_the_same_id(engine: Pool, clock: Clock, status: int) -> None:
    with webhook_receiver(status, status, 200) as receiver:
        set_webhook(engine, receiver.url)
        end_job(engine, clock, Outcome(None))
        for wait_s in RETRY_S[:2]:
            assert deliver(engine, PROJECT, SECRETS, clock) == "failed"
            clock.advance(wait_s - 1)
            assert deliver(engine, PROJECT, SECRETS, clock) is None
            clock.advance(1)
        assert deliver(engine, PROJECT, SECRETS, clock) == "delivered"
        clock.advance(10 * RETRY_S[-1])
        assert deliver(engine, PROJECT, SECRETS, clock) is None
    assert len({headers["webhook-id"] for headers, _ in receiver.messages}) == 1
    assert len({headers["webhook-timestamp"] for headers, _ in receiver.messages}) == 3


@on_sqlite
def test_message_is_given_up_after_the_last_attempt(engine: Pool, clock: Clock) -> None:
    with webhook_receiver(500) as receiver:
        set_webhook(engine, receiver.url)
        end_job(engine, clock, Outcome(None))
        for wait_s in RETRY_S:
            assert deliver(engine, PROJECT, SECRETS, clock) == "failed"
            clock.advance(wait_s)
        assert deliver(engine, PROJECT, SECRETS, clock) == "given_up"
        assert deliver(engine, PROJECT, SECRETS, clock) is None
    assert len(receiver.messages) == len(RETRY_S) + 1


@on_sqlite
def test_message_is_sent_once_receiver_and_secret_are_available(engine: Pool, clock: Clock) -> None:
    with webhook_receiver(200) as receiver:
        set_webhook(engine, UNREACHABLE)
        end_job(engine, clock, Outcome(None))
        assert deliver(engine, PROJECT, SECRETS, clock) == "failed"
        set_webhook(engine, receiver.url)
        clock.advance(RETRY_S[0])
        assert deliver(engine, PROJECT, {}, clock) == "failed"
        assert receiver.messages == []
        clock.advance(RETRY_S[1])
        assert deliver(engine, PROJECT, SECRETS, clock) == "delivered"
    assert len(receiver.messages) == 1


def test_message_whose_sender_died_is_sent_by_another_after_its_claim_expired(engine: Pool, clock: Clock) -> None:
    with webhook_receiver(200) as receiver:
        set_webhook(engine, receiver.url)
        end_job(engine, clock, Outcome(None))
        claimed = webhook._claim(engine, PROJECT, clock())
        assert claimed is not None
        assert deliver(engine, PROJECT, SECRETS, clock) is None
        clock.advance(webhook.CLAIM_US / SECOND_US)
        assert deliver(engine, PROJECT, SECRETS, clock) == "delivered"
    assert receiver.messages[0][0]["webhook-id"] == claimed.id


def test_project_without_a_webhook_has_no_messages_and_a_deleted_one_loses_them(engine: Pool, clock: Clock) -> None:
    end_job(engine, clock, Outcome(None))
    assert webhook.due(engine, clock()) == []
    set_webhook(engine, UNREACHABLE)
    end_job(engine, clock, Outcome(None))
    assert webhook.due(engine, clock()) == [PROJECT]
    projects.delete(engine, PROJECT)
    assert deliver(engine, PROJECT, SECRETS, clock) is None


@pytest.mark.parametrize("removes_all", [False, True])
def test_message_of_a_removed_webhook_or_configuration_is_given_up(
    engine: Pool, clock: Clock, caplog: pytest.LogCaptureFixture, *, removes_all: bool
) -> None:
    set_webhook(engine, UNREACHABLE)
    end_job(engine, clock, Outcome(None))
    assert deliver(engine, PROJECT, SECRETS, clock) == "failed"
    if removes_all:
        configuration.remove(engine, PROJECT)
    else:
        set_webhook(engine, "", "")
    clock.advance(RETRY_S[0])
    assert deliver(engine, PROJECT, SECRETS, clock) == "given_up"
    clock.advance(10 * RETRY_S[-1])
    assert deliver(engine, PROJECT, SECRETS, clock) is None
    assert "the project no longer has a webhook; there are no more attempts" in caplog.text


@on_sqlite
@pytest.mark.parametrize(
    ("url", "secret"),
    [(UNREACHABLE, "whsec_abc"), (f"http://{'a' * 64}.example", "s3cret"), ("http://xn--a.example", "s3cret")],
    ids=["key", "long host name", "invalid host name"],
)
def test_invalid_key_or_host_name_fails_the_attempt(engine: Pool, clock: Clock, url: str, secret: str) -> None:
    set_webhook(engine, url)
    end_job(engine, clock, Outcome(None))
    assert deliver(engine, PROJECT, {"HOOK": secret}, clock) == "failed"
    assert deliver(engine, PROJECT, {"HOOK": secret}, clock) is None
