"""A body is waited for, but not for ever."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from api import body
from api.problems import KINDS, Problem

PIECES = [b"{", b'"path":', b'"/a"}']


def request(pieces: list[bytes], pause_s: float) -> Request:
    """A request whose body comes in these pieces, each after a pause, and then no more."""
    left = list(pieces)

    async def receive() -> Message:
        await asyncio.sleep(pause_s if left else 3600)
        return {"type": "http.request", "body": left.pop(0), "more_body": len(left) > 0 or pieces is not PIECES}

    return Request({"type": "http", "headers": []}, receive)


def test_pause_is_measured_between_pieces_and_not_over_the_whole_body() -> None:
    assert asyncio.run(body.read(request(PIECES, 0.4), 100, piece_s=1)) == b"".join(PIECES)


@pytest.mark.parametrize("pieces", [[], [b"{"], [b"{", b'"path"']])
def test_body_that_stalls_is_given_up_and_its_connection_closed(pieces: list[bytes]) -> None:
    with pytest.raises(Problem) as told:
        asyncio.run(body.read(request(pieces, 0), 100, piece_s=0.1))
    assert KINDS[told.value.kind].status == 408
    assert told.value.headers["Connection"] == "close"
