"""A body is waited for, but not for ever."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from api.http import body
from api.http.problems import KINDS, Problem

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


def test_body_that_comes_too_slowly_is_given_up_at_its_deadline() -> None:
    pieces = [b" "] * 1_000_000
    with pytest.raises(Problem) as raised:
        asyncio.run(body.read(request(pieces, 0.001), 1_000_000, total_s=0.2))
    assert KINDS[raised.value.kind].status == 408
    assert "16 KiB" in raised.value.detail
    assert raised.value.headers["Connection"] == "close"


def test_each_16_kib_of_a_body_move_its_deadline_by_a_second() -> None:
    pieces = [b" " * body.BYTES_PER_S_MIN] * 4
    paused = request([*pieces, b""], 0.1)
    with pytest.raises(Problem, match="nothing more"):  # the body never ends, and no piece is late by its deadline
        asyncio.run(body.read(paused, 1_000_000, piece_s=1, total_s=0.2))


@pytest.mark.parametrize("pieces", [[], [b"{"], [b"{", b'"path"']])
def test_body_that_stalls_is_given_up_and_its_connection_closed(pieces: list[bytes]) -> None:
    with pytest.raises(Problem) as told:
        asyncio.run(body.read(request(pieces, 0), 100, piece_s=0.1))
    assert KINDS[told.value.kind].status == 408
    assert told.value.headers["Connection"] == "close"
