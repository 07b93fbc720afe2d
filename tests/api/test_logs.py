"""The outermost layer answers also what the server gives up on."""

import asyncio
import json
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from api.logs import RequestLog

SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}


async def never() -> Message:
    raise AssertionError("nothing is read")


def test_request_that_the_server_gives_up_on_is_answered_with_a_problem_and_raises_nothing() -> None:
    sent: list[Any] = []

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def send(message: Message) -> None:
        sent.append(message)

    async def ended() -> None:
        request = asyncio.create_task(RequestLog(endless, {})(dict(SCOPE), never, send))
        await asyncio.sleep(0)
        request.cancel()
        await request

    asyncio.run(ended())
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == json.loads(sent[1]["body"])["status"] == 500
