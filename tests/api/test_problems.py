"""Errors become problems with the right status and headers."""

import asyncio
import json

from starlette.requests import Request

from api import problems
from warehouse.errors import DataIncomplete


def test_incomplete_data_is_503_without_retry_after() -> None:
    request = Request({"type": "http", "headers": [], "state": {"request_id": "1"}})
    answer = asyncio.run(problems.answer(request, DataIncomplete("lake/hits is at version 3, not 4")))
    body = json.loads(bytes(answer.body))
    assert (answer.status_code, body["type"]) == (503, "/docs#data-incomplete")
    assert body["detail"] == "lake/hits is at version 3, not 4"
    assert "retry-after" not in answer.headers
