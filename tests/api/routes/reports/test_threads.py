"""A few reports run at once, and no number of waiting ones delays other work."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Message

from api.routes.reports import threads
from ingest.errors import Overloaded

READERS = 100


class Blocked:
    """A report that waits until it may end, and counts how many wait at once."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.running = 0

    def __call__(self) -> str:
        self.running += 1
        self.may_end.wait()
        return "report"


async def beside(report: Blocked, work: Callable[[], Awaitable[None]]) -> None:
    """Do some work beside READERS blocked reports of each limit; then let the reports end."""
    limits = (threads.REPORTS, threads.SHARED)
    readers = [asyncio.ensure_future(threads.run(limit, report)) for limit in limits for _ in range(READERS)]
    try:
        await asyncio.sleep(0)
        await work()
    finally:
        report.may_end.set()
    assert {*await asyncio.gather(*readers)} == {"report"}


def test_look_up_does_not_wait_for_a_hundred_reports() -> None:
    report = Blocked()

    async def look_up() -> None:
        assert await run_in_threadpool(lambda: "key") == "key"
        assert report.running <= threads.REPORTS.total_tokens + threads.SHARED.total_tokens

    asyncio.run(asyncio.wait_for(beside(report, look_up), 60))


def test_report_of_a_key_does_not_wait_for_those_of_share_links() -> None:
    report = Blocked()

    async def use() -> None:
        shared = [asyncio.ensure_future(threads.run(threads.SHARED, report)) for _ in range(READERS)]
        await asyncio.sleep(0)
        assert await threads.run(threads.REPORTS, lambda: "mine") == "mine"
        report.may_end.set()
        await asyncio.gather(*shared)

    asyncio.run(asyncio.wait_for(use(), 60))


def test_report_is_refused_if_too_many_wait() -> None:
    report = Blocked()

    async def more() -> None:
        readers = [asyncio.ensure_future(threads.run(threads.REPORTS, report)) for _ in range(threads.WAITING_MAX)]
        await asyncio.sleep(0)
        refused = asyncio.ensure_future(threads.run(threads.REPORTS, report))
        with pytest.raises(Overloaded):
            await refused
        for each in readers:
            each.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    asyncio.run(asyncio.wait_for(beside(report, more), 60))


def test_client_that_leaves_a_stream_releases_its_thread_and_ends_the_report() -> None:
    ended = threading.Event()

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"x" * 65_536
        finally:
            ended.set()

    async def use() -> None:
        left = asyncio.Event()
        sent = 0

        async def receive() -> Message:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal sent
            sent += len(message.get("body", b""))
            if sent > 3 * 65_536:
                left.set()
                await asyncio.Event().wait()  # the client does not read any more

        scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
        await StreamingResponse(threads.streamed(threads.SHARED, endless()))(scope, receive, send)
        assert threads.SHARED.borrowed_tokens == 0
        await asyncio.get_running_loop().shutdown_asyncgens()

    asyncio.run(asyncio.wait_for(use(), 60))
    assert ended.is_set()


def test_stream_has_all_chunks_and_occupies_no_thread_between_them() -> None:
    def chunks() -> Iterator[bytes]:
        yield from (b"a", b"", b"c")

    async def use() -> None:
        received = []
        async for chunk in threads.streamed(threads.SHARED, chunks()):
            assert threads.SHARED.borrowed_tokens == 0
            received.append(chunk)
        assert received == [b"a", b"", b"c"]

    asyncio.run(use())
