"""Request ids and the responses of the outermost handler, for apps that misbehave."""

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.middleware import NO_HOST, RequestMiddleware


async def never() -> Message:
    raise AssertionError("nothing is read")


async def raises(scope: Scope, receive: Receive, send: Send) -> None:
    raise ZeroDivisionError("a secret in the message")


async def raises_after_start(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ZeroDivisionError


async def disconnects(scope: Scope, receive: Receive, send: Send) -> None:
    raise ClientDisconnect


async def waits(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


HOST = (b"host", b"localhost")


def sent(
    app: ASGIApp, *headers: tuple[bytes, bytes], hosts: int = 1, version: str = "1.1", is_cancelled: bool = False
) -> list[Message]:
    """Return the messages that a GET sends, cancelled after its first wait if `is_cancelled`."""
    messages: list[Message] = []
    head = {"method": "GET", "path": "/", "http_version": version, "headers": [*headers, *[HOST] * hosts]}
    scope: dict[str, Any] = {"type": "http", **head}

    async def send(message: Message) -> None:
        messages.append(message)

    async def request() -> None:
        task = asyncio.create_task(RequestMiddleware(app, {})(scope, never, send))
        await asyncio.sleep(0)
        if is_cancelled:
            task.cancel()
        await task

    asyncio.run(request())
    return messages


def request_id(messages: list[Message]) -> bytes:
    return dict(messages[0]["headers"])[b"x-request-id"]


def test_cancelled_request_gets_a_problem_and_raises_nothing() -> None:
    start, body = sent(waits, is_cancelled=True)
    assert start["status"] == json.loads(body["body"])["status"] == 500


def test_uncaught_error_is_a_500_without_its_message() -> None:
    start, body = sent(raises)
    assert start["status"] == 500
    assert b"a secret" not in body["body"]
    assert json.loads(body["body"])["requestId"] == request_id([start]).decode()


def test_error_after_the_start_of_a_response_sends_no_second_response() -> None:
    assert [message["type"] for message in sent(raises_after_start)] == ["http.response.start"]


def test_client_that_disconnects_gets_no_response() -> None:
    assert sent(disconnects) == []


def test_valid_request_id_of_the_client_is_returned_and_an_invalid_one_replaced() -> None:
    for id in (b"a", b"2026.11-22_x", b"z" * 64):
        assert request_id(sent(raises, (b"x-request-id", id))) == id
    for id in (b"", b"z" * 65, b"a b", b"a\n", b"\xe9"):
        first, second = (request_id(sent(raises, (b"x-request-id", id))) for _ in range(2))
        assert len({id, first, second}) == 3


def test_request_without_exactly_one_host_is_answered_400() -> None:
    for hosts in (0, 2):
        start, body = sent(raises, hosts=hosts)
        assert (start["status"], json.loads(body["body"])["detail"]) == (400, NO_HOST.detail)
    assert [message["status"] for message in sent(raises_after_start, hosts=0, version="1.0")] == [200]
