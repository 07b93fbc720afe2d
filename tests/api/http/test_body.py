"""Timeouts of request bodies, and the memory that they may take."""

import asyncio
import gzip

import pytest
from starlette.requests import Request
from starlette.types import Message

from api.http import body
from api.http.body import FREE_BYTES, Budget
from api.http.problems import KINDS, Problem
from ingest.errors import Overloaded

CHUNKS = [b"{", b'"path":', b'"/a"}']


def request(chunks: list[bytes], pause_s: float) -> Request:
    """Return a request whose body arrives in these chunks, each after a pause, and then stalls."""
    left = list(chunks)

    async def receive() -> Message:
        await asyncio.sleep(pause_s if left else 3600)
        return {"type": "http.request", "body": left.pop(0), "more_body": len(left) > 0 or chunks is not CHUNKS}

    return Request({"type": "http", "headers": []}, receive)


@pytest.mark.long
def test_timeout_of_a_chunk_does_not_limit_the_whole_body() -> None:
    assert asyncio.run(body.read(request(CHUNKS, 0.4), 100, chunk_s=1)) == b"".join(CHUNKS)


def test_body_that_arrives_too_slowly_is_rejected_at_its_deadline() -> None:
    chunks = [b" "] * 1_000_000
    with pytest.raises(Problem) as raised:
        asyncio.run(body.read(request(chunks, 0.001), 1_000_000, total_s=0.2))
    assert KINDS[raised.value.kind].status == 408
    assert "16 KiB" in raised.value.detail
    assert raised.value.headers["Connection"] == "close"


@pytest.mark.long
def test_each_16_kib_of_a_body_extend_its_deadline_by_a_second() -> None:
    chunks = [b" " * body.BYTES_PER_S_MIN] * 4
    paused = request([*chunks, b""], 0.1)
    with pytest.raises(Problem, match="no more of the body"):  # each chunk is within the deadline; then the body stalls
        asyncio.run(body.read(paused, 1_000_000, chunk_s=1, total_s=0.2))


@pytest.mark.parametrize("chunks", [[], [b"{"], [b"{", b'"path"']])
def test_body_that_stalls_is_rejected_and_its_connection_closed(chunks: list[bytes]) -> None:
    with pytest.raises(Problem) as raised:
        asyncio.run(body.read(request(chunks, 0), 100, chunk_s=0.1))
    assert KINDS[raised.value.kind].status == 408
    assert raised.value.headers["Connection"] == "close"


def arrived(content: bytes, **headers: str) -> Request:
    """Return a request whose whole body has arrived."""

    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    return Request({"type": "http", "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}, receive)


def test_bodies_of_unanswered_requests_stay_within_the_budget() -> None:
    async def send() -> None:
        budget, has_read, answered = Budget(FREE_BYTES), asyncio.Event(), asyncio.Event()
        large = bytes(2 * FREE_BYTES)

        async def read_and_wait() -> None:
            await body.read(arrived(large), len(large), budget=budget)
            has_read.set()
            await answered.wait()

        first = asyncio.create_task(read_and_wait())
        await has_read.wait()
        with pytest.raises(Overloaded, match="memory for bodies") as raised:
            await asyncio.create_task(body.read(arrived(large), len(large), budget=budget))
        assert raised.value.retry_after_s > 0
        assert len(await body.read(arrived(bytes(FREE_BYTES)), FREE_BYTES, budget=budget)) == FREE_BYTES
        answered.set()
        await first
        await asyncio.sleep(0)  # the callback of the ended task runs
        assert len(await asyncio.create_task(body.read(arrived(large), len(large), budget=budget))) == len(large)

    asyncio.run(send())


def test_decompressed_bytes_count_in_the_budget() -> None:
    content = gzip.compress(bytes(3 * FREE_BYTES))
    request = arrived(content, **{"content-encoding": "gzip"})
    with pytest.raises(Overloaded):
        asyncio.run(body.read(request, 4 * FREE_BYTES, budget=Budget(2 * FREE_BYTES - 1)))
    assert len(asyncio.run(body.read(request, 4 * FREE_BYTES, budget=Budget(2 * FREE_BYTES)))) == 3 * FREE_BYTES
