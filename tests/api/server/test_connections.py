"""Idle connections, also more than a process has file descriptors, do not block other connections."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from api.server import connections, serve
from api.server.connections import Connection
from tests.processes.running import Running

IDLE = 2_000
USUAL = 1_024
"""The soft limit of open files that most systems give a process."""
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
END_S = 30
"""Timeout of a test, in seconds; no test asserts a duration."""


@contextmanager
def soft_limit(descriptors: int) -> Iterator[None]:
    """Set the soft limit of open files of this process, which its children inherit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def usual(start: Callable[..., Running]) -> Iterator[Running]:
    """Yield a service that was started with the usual soft limit; this process may open IDLE connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < IDLE * 2:
        assert not os.environ.get("CI"), "CI must allow more open files"
        pytest.skip(f"the hard limit of open files is {hard}")
    with soft_limit(USUAL):
        service = start()
    with soft_limit(IDLE * 2):
        yield service


@contextmanager
def idle(service: Running) -> Iterator[list[socket.socket]]:
    """Open IDLE connections that send nothing."""
    url = httpx.URL(service.url)
    with ExitStack() as opened:
        yield [opened.enter_context(socket.create_connection((url.host, url.port))) for _ in range(IDLE)]


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_service_raises_its_soft_limit_and_serves_beside_2000_idle_connections(usual: Running) -> None:
    with idle(usual) as silent:
        assert usual.post({"path": "/a", "userAgent": "x"}).status_code == 202
        assert all(is_open(each) for each in silent)


def test_at_a_hard_limit_of_1024_a_new_connection_takes_the_place_of_an_idle_one(usual: Running) -> None:
    assert usual.process is not None
    resource.prlimit(usual.process.pid, resource.RLIMIT_NOFILE, (USUAL, USUAL))
    with idle(usual) as silent:
        assert [usual.post({"path": "/a", "userAgent": "x"}).status_code for _ in range(5)] == [202] * 5
        assert is_open(silent[-1]), "the newest stay"
    assert "Too many open files" not in usual.log.read_text()


App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Hasty(Connection):
    head_s = 0.2


class Narrow(Connection):
    maximum = staticmethod(lambda: 2)


@asynccontextmanager
async def served(
    protocol: type[Connection], app: App
) -> AsyncIterator[Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]]:
    """Serve an app on a free port; yield a function that opens a connection."""
    config = uvicorn.Config(app, http=protocol, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    writers = []

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, port)
        writers.append(writer)
        return reader, writer

    async with server, asyncio.timeout(END_S):
        yield connect
        for writer in writers:
            writer.close()


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("hello")(scope, receive, send)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Return the bytes that arrive until the server closes or resets the connection."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("before", [b"", GET[:10], GET + b"\r\n"], ids=["silent", "part of a head", "after a response"])
def test_connection_is_closed_if_no_whole_request_comes(before: bytes) -> None:
    async def use() -> None:
        async with served(Hasty, hello) as connect:
            reader, writer = await connect()
            writer.write(before)
            came = await rest(reader)
            assert came.count(b"200 OK") == (len(before) > len(GET))

    asyncio.run(use())


def test_head_that_comes_byte_by_byte_is_cut_off() -> None:
    async def use() -> None:
        async with served(Hasty, hello) as connect:
            reader, writer = await connect()
            end = asyncio.create_task(rest(reader))
            writer.write(GET[:-2])
            while not end.done():
                writer.write(b"x: y\r\n")
                await asyncio.sleep(0.02)
            assert await end == b""

    asyncio.run(use())


def test_request_may_take_longer_than_its_head() -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(3 * Hasty.head_s)
        await hello(scope, receive, send)

    async def use() -> None:
        async with served(Hasty, slow) as connect:
            reader, writer = await connect()
            writer.write(GET)
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"

    asyncio.run(use())


def test_connection_past_the_maximum_ends_the_one_that_waited_longest() -> None:
    async def use() -> None:
        async with served(Narrow, hello) as connect:
            (first, _), (second, wrote), (third, third_wrote) = [await connect() for _ in range(3)]
            assert await rest(first) == b""
            for reader, writer in ((second, wrote), (third, third_wrote)):
                writer.write(GET)
                assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"

    asyncio.run(use())


@pytest.mark.parametrize("base_url", ["", "https://example.com/stats"])
def test_connection_is_answered_503_while_all_others_are_busy(base_url: str) -> None:
    narrow = type("Narrow", (connections.with_base_url(base_url),), {"maximum": staticmethod(Narrow.maximum)})

    async def use() -> None:
        begun, go_on = asyncio.Semaphore(0), asyncio.Event()

        async def busy(scope: Scope, receive: Receive, send: Send) -> None:
            begun.release()
            await go_on.wait()
            await hello(scope, receive, send)

        async with served(narrow, busy) as connect:
            waiting = []
            for _ in range(2):
                reader, writer = await connect()
                writer.write(GET)
                await begun.acquire()
                waiting.append(reader)
            reader, writer = await connect()
            writer.write(GET)
            answer = await rest(reader)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: " in answer
            assert f'"type":"{base_url}/docs#overloaded"'.encode() in answer
            go_on.set()
            assert [await each.readline() for each in waiting] == [b"HTTP/1.1 200 OK\r\n"] * 2

    asyncio.run(use())


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_ipv4_client_of_a_service_on_all_interfaces_has_its_ipv4_address() -> None:
    """Check that the address has the form of READERSHIP_TRUSTED_PROXIES, also if the service listens on `::`."""

    async def address(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(scope["client"][0])(scope, receive, send)

    async def use() -> bytes:
        config = uvicorn.Config(address, http=Connection, lifespan="off", log_config=None)
        config.load()
        state = ServerState()
        listener = serve.listen("::", 0)
        port = listener.getsockname()[1]
        server = await asyncio.get_running_loop().create_server(lambda: Connection(config, state, {}), sock=listener)
        async with server, asyncio.timeout(END_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + b"\r\n")
            received = await rest(reader)
            writer.close()
        return received

    assert asyncio.run(use()).endswith(b"\r\n\r\n127.0.0.1")
