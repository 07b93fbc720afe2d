"""A few reports run at once, and no number of waiting ones delays other work."""

import asyncio
import gc
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from contextvars import copy_context
from pathlib import Path

import pytest
from anyio import CapacityLimiter
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from api.reports import threads
from api.reports.formats import Chunks
from api.server.connections import Connection
from ingest.errors import Overloaded
from tests.api.server.test_connections import GET, served
from warehouse.errors import SlowReport
from warehouse.query import engine

READERS = 100


async def stay() -> Message:
    """Receive nothing from a client that stays."""
    return await asyncio.Future[Message]()


class Blocked:
    """A report that waits until it may end, and counts how many wait at once."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.running = 0

    def __call__(self) -> str:
        self.running += 1
        self.may_end.wait()
        return "report"

    def slow(self) -> str:
        """Return the report to a caller that accepts a slow one."""
        if not engine.CALLER.get().accepts_slow:
            raise SlowReport
        return self()


async def beside(report: Blocked, work: Callable[[], Awaitable[None]]) -> None:
    """Do some work beside READERS blocked reports of each limit; then let the reports end."""
    limits = (threads.REPORTS, threads.SHARED)
    readers = [asyncio.ensure_future(threads.run(limit, stay, report)) for limit in limits for _ in range(READERS)]
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
        shared = [asyncio.ensure_future(threads.run(threads.SHARED, stay, report)) for _ in range(READERS)]
        await asyncio.sleep(0)
        assert await threads.run(threads.REPORTS, stay, lambda: "mine") == "mine"
        report.may_end.set()
        await asyncio.gather(*shared)

    asyncio.run(asyncio.wait_for(use(), 60))


@pytest.mark.parametrize("limit", [threads.REPORTS, threads.SHARED])
def test_report_does_not_wait_for_two_slow_ones(limit: CapacityLimiter) -> None:
    report = Blocked()

    async def use() -> None:
        slow = [asyncio.ensure_future(threads.run(limit, stay, report.slow)) for _ in range(2)]
        assert await threads.run(limit, stay, lambda: "fast") == "fast"
        report.may_end.set()
        assert await asyncio.gather(*slow) == ["report"] * 2

    asyncio.run(asyncio.wait_for(use(), 60))


def test_report_is_refused_if_too_many_wait() -> None:
    report = Blocked()

    async def more() -> None:
        readers = [
            asyncio.ensure_future(threads.run(threads.REPORTS, stay, report)) for _ in range(threads.WAITING_MAX)
        ]
        for _ in range(3):  # until they wait
            await asyncio.sleep(0)
        refused = asyncio.ensure_future(threads.run(threads.REPORTS, stay, report))
        with pytest.raises(Overloaded):
            await refused
        for each in readers:
            each.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    asyncio.run(asyncio.wait_for(beside(report, more), 60))


def test_client_that_leaves_a_stream_releases_its_thread_and_ends_the_report() -> None:
    ended = threading.Event()

    def endless() -> Chunks:
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


ENDLESS = "SELECT sum(hash(one.range + other.range)) FROM range(10_000_000) AS one, range(10_000_000) AS other"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_client_that_closes_its_connection_ends_the_query_and_releases_its_thread(
    is_streamed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun, statuses = threading.Event(), list[object]()

    def count() -> Chunks:
        with closing(engine.connect(tmp_path)) as database, engine.interruptible_cursor(database) as cursor:
            begun.set()
            yield str(cursor.sql(ENDLESS).fetchall()).encode()

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        engine.CALLER.set(engine.Caller(accepts_slow=False))
        try:
            if is_streamed:
                chunks = threads.streamed(threads.REPORTS, count())
                await StreamingResponse(chunks)(scope, receive, send)
            else:
                await threads.run(threads.REPORTS, receive, next, count())
        except ClientDisconnect as error:
            statuses.append(type(error))

    async def use() -> None:
        async with served(Connection, respond) as connect:
            _, writer = await connect()
            writer.write(GET)
            await asyncio.to_thread(begun.wait)
            writer.close()
            for borrower in range(int(threads.REPORTS.total_tokens)):  # until all threads are released
                await threads.REPORTS.acquire_on_behalf_of(borrower)
            for borrower in range(int(threads.REPORTS.total_tokens)):
                threads.REPORTS.release_on_behalf_of(borrower)

    asyncio.run(use())
    gc.collect()
    assert statuses == ([] if is_streamed else [ClientDisconnect])
    assert caplog.records == [], "asyncio logs errors that nobody has asked for"


def test_stream_has_all_chunks_and_occupies_no_thread_between_them() -> None:
    def chunks() -> Chunks:
        yield from (b"a", b"", b"c")

    async def use() -> None:
        received = []
        engine.CALLER.set(engine.Caller(accepts_slow=False))
        async for chunk in threads.streamed(threads.SHARED, chunks()):
            assert threads.SHARED.borrowed_tokens == 0
            received.append(chunk)
        assert received == [b"a", b"", b"c"]

    asyncio.run(use())


def test_few_slow_exports_of_share_links_are_open_at_once() -> None:
    def chunks() -> Chunks:
        yield b"a"

    def begin() -> AsyncIterator[bytes]:
        engine.CALLER.set(engine.Caller(accepts_slow=True))
        return threads.streamed(threads.SHARED, chunks())

    async def use() -> None:
        opened = [copy_context().run(begin) for _ in range(threads.SHARED_OPEN_MAX)]
        with pytest.raises(Overloaded):
            copy_context().run(begin)
        assert [chunk async for chunk in opened[0]] == [b"a"]
        opened[1] = copy_context().run(begin)
        opened.clear()  # clients that left before the first chunk
        copy_context().run(begin)

    asyncio.run(use())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, all threads of a process have one priority")
def test_reports_and_the_queries_of_their_databases_have_a_lower_priority_than_posts(tmp_path: Path) -> None:
    def priorities() -> list[int]:
        before = set(Path("/proc/self/task").iterdir())
        with closing(engine.connect(tmp_path, threads=3)):
            opened = set(Path("/proc/self/task").iterdir()) - before
            return [os.getpriority(os.PRIO_PROCESS, int(each)) for each in (0, *(each.name for each in opened))]

    of_posts = os.getpriority(os.PRIO_PROCESS, 0)
    of_reports = asyncio.run(threads.run(threads.REPORTS, stay, priorities))
    assert len(of_reports) > 1
    assert set(of_reports) == {min(19, of_posts + threads.NICE)}
    assert os.getpriority(os.PRIO_PROCESS, 0) == of_posts


def test_two_parts_of_a_report_are_computed_at_once_for_one_caller() -> None:
    both = threading.Barrier(2)

    def part() -> engine.Caller:
        both.wait(60)
        return engine.CALLER.get()

    async def caller_of_parts() -> tuple[engine.Caller, engine.Caller, engine.Caller]:
        return await threads.run(threads.REPORTS, stay, lambda: (engine.CALLER.get(), *threads.together(part, part)))

    caller, first, second = asyncio.run(asyncio.wait_for(caller_of_parts(), 60))
    assert first is second is caller


@pytest.mark.parametrize("limit", [threads.SHARED, threads.SLOW[threads.SHARED]])
def test_report_of_a_share_link_uses_one_thread(limit: CapacityLimiter) -> None:
    second_began = threading.Event()

    def began_meanwhile() -> bool:
        began, _ = threads.together(lambda: second_began.wait(0.2), second_began.set)
        return began

    assert not asyncio.run(asyncio.wait_for(threads.run(limit, stay, began_meanwhile), 60))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, all threads of a process have one priority")
def test_thread_of_a_part_of_a_report_has_the_priority_of_all_reports() -> None:
    parts = threading.Barrier(4)

    def priority() -> list[int]:
        parts.wait(60)
        return [os.getpriority(os.PRIO_PROCESS, 0)]

    def two() -> list[int]:
        first, second = threads.together(priority, priority)
        return first + second

    def four() -> list[int]:
        first, second = threads.together(two, two)
        return first + second

    of_parts = asyncio.run(asyncio.wait_for(threads.run(threads.REPORTS, stay, four), 60))
    assert of_parts == 4 * [min(19, os.getpriority(os.PRIO_PROCESS, 0) + threads.NICE)]


def test_second_part_of_a_report_has_ended_when_the_first_one_fails() -> None:
    began, ended = threading.Event(), threading.Event()

    def fail() -> None:
        began.wait(60)
        raise SlowReport

    def second() -> None:
        began.set()
        ended.wait(0.2)
        ended.set()

    with pytest.raises(SlowReport):
        threads.together(fail, second)
    assert ended.is_set()


def test_error_of_the_second_part_of_a_report_is_raised() -> None:
    def fail() -> None:
        raise SlowReport

    with pytest.raises(SlowReport):
        threads.together(lambda: "first", fail)


def test_both_parts_of_a_report_are_computed_by_its_thread_while_no_other_one_is_free() -> None:
    may_end = threading.Event()
    busy = [threads.THREADS.submit(may_end.wait, 60) for _ in range(32)]
    try:
        here = threading.get_ident()
        assert threads.together(threading.get_ident, threading.get_ident) == (here, here)
    finally:
        may_end.set()
        assert all(each.result() for each in busy)
