"""Connections that are idle, do not read, or send too much, do not block other connections."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import httpx
import pytest
import uvicorn
from prometheus_client import REGISTRY
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from api.server import connections, serve
from api.server.connections import Connection
from tests.processes.running import Running

IDLE = 2_000
USUAL = 1_024
"""The soft limit of open files that most systems give a process."""
OK = b"HTTP/1.1 200 OK\r\n"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
END_S = 30
"""Timeout of a test, in seconds; no test asserts a duration."""
pytestmark = pytest.mark.anyio


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


@pytest.mark.long
def test_service_raises_its_soft_limit_and_serves_beside_2000_idle_connections(usual: Running) -> None:
    with idle(usual) as silent:
        assert usual.post({"path": "/a", "userAgent": "x"}).status_code == 202
        assert all(is_open(each) for each in silent)


@pytest.mark.long
def test_at_a_hard_limit_of_1024_a_new_connection_takes_the_place_of_an_idle_one(usual: Running) -> None:
    assert usual.process is not None
    resource.prlimit(usual.process.pid, resource.RLIMIT_NOFILE, (USUAL, USUAL))
    with idle(usual) as silent:
        assert [usual.post({"path": "/a", "userAgent": "x"}).status_code for _ in range(5)] == [202] * 5
        assert is_open(silent[-1]), "the newest stay"
    assert "Too many open files" not in usual.log.read_text()


App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Hasty(Connection):
    client_s = 0.2


class Counting(Connection):
    """A connection that reports when the service waits for its client to read, and when it is closed."""

    client_s = 1
    paused: asyncio.Event
    lost: asyncio.Event

    def pause_writing(self) -> None:
        super().pause_writing()
        self.paused.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be set forward."""

    skipped_s = 0.0

    def time(self) -> float:
        return super().time() + self.skipped_s


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Run the tests on a loop whose clock can be set forward."""
    Counting.paused, Counting.lost = asyncio.Event(), asyncio.Event()
    return "asyncio", {"loop_factory": Loop}


class Patient(Counting):
    """A connection that no timeout closes in a test."""

    client_s = 2 * END_S


class Narrow(Connection):
    maximum = staticmethod(lambda: 2)


@asynccontextmanager
async def served(
    protocol: type[Connection], app: App
) -> AsyncIterator[Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]]:
    """Serve an app on a free port; yield a function that opens a connection, and sends bytes."""
    config = uvicorn.Config(app, http=protocol, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    writers = []

    async def connect(sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, port)
        writers.append(writer)
        writer.write(sent)
        return reader, writer

    async with server, asyncio.timeout(END_S):
        yield connect
        for writer in writers:
            writer.close()


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("hello")(scope, receive, send)


async def read_response(reader: asyncio.StreamReader, body_bytes: int) -> None:
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(body_bytes)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Return the bytes that arrive until the server closes or resets the connection."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("before", [b"", GET[:10], GET + b"\r\n"], ids=["silent", "part of a head", "after a response"])
async def test_connection_is_closed_if_no_whole_request_comes(before: bytes) -> None:
    async with served(Hasty, hello) as connect:
        reader, _ = await connect(before)
        came = await rest(reader)
        assert came.count(b"200 OK") == (len(before) > len(GET))


async def test_head_that_comes_byte_by_byte_is_cut_off() -> None:
    async with served(Hasty, hello) as connect:
        reader, writer = await connect()
        end = asyncio.create_task(rest(reader))
        writer.write(GET[:-2])
        while not end.done():
            writer.write(b"x: y\r\n")
            await asyncio.sleep(0.02)
        assert await end == b""


async def test_request_may_take_longer_than_its_head() -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(3 * Hasty.client_s)
        await hello(scope, receive, send)

    async with served(Hasty, slow) as connect:
        reader, _ = await connect(GET)
        assert await reader.readline() == OK


async def test_connection_past_the_maximum_ends_the_one_that_waited_longest() -> None:
    async with served(Narrow, hello) as connect:
        (first, _), (second, wrote), (third, third_wrote) = [await connect() for _ in range(3)]
        assert await rest(first) == b""
        for reader, writer in ((second, wrote), (third, third_wrote)):
            writer.write(GET)
            assert await reader.readline() == OK


async def test_connection_past_the_maximum_ends_the_one_that_has_sent_longest_at_a_body() -> None:
    begun = asyncio.Semaphore(0)

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        begun.release()
        while (await receive()).get("more_body"):
            pass
        await hello(scope, receive, send)

    async with served(Narrow, reading) as connect:
        slow = [await connect() for _ in range(2)]
        for _, writer in slow:
            writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{")
            await begun.acquire()
        reader, writer = await connect(GET)
        assert await reader.readline() == OK
        assert await rest(slow[0][0]) == b""
        slow[1][1].write(b"}")
        assert await slow[1][0].readline() == OK


@pytest.mark.long
async def test_body_after_a_response_that_was_read_late_ends_for_a_connection_past_the_maximum() -> None:
    class Full(Patient):
        maximum = staticmethod(lambda: 1)

    begun = asyncio.Event()

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            begun.set()
            await receive()
        await (large if scope["path"] == "/large" else hello)(scope, receive, send)

    async with served(Full, respond) as connect:
        reader, writer = await connect()
        post = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
        writer.write(GET.replace(b"/ ", b"/large ", 1) + post)
        await Counting.paused.wait()
        await read_response(reader, len(LARGE))
        await begun.wait()
        other, _ = await connect(GET)
        assert await other.readline() == OK


async def test_connection_past_the_maximum_ends_one_with_pipelined_requests_before_busy_ones() -> None:
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/busy":
            begun.release()
            await go_on.wait()
        await hello(scope, receive, send)

    async with served(Narrow, busy) as connect:
        get_busy, readers = GET.replace(b"/ ", b"/busy ", 1), []
        for sent in (get_busy, get_busy * 2):
            reader, _ = await connect(sent)
            await begun.acquire()
            readers.append(reader)
        new, _ = await connect(GET)
        assert await new.readline() == OK
        assert await rest(readers[1]) == b""
        go_on.set()
        assert await readers[0].readline() == OK


@pytest.mark.parametrize("base_url", ["", "https://example.com/stats"])
async def test_connection_is_answered_503_while_all_others_are_busy(base_url: str) -> None:
    narrow = type("Narrow", (connections.with_base_url(base_url),), {"maximum": staticmethod(Narrow.maximum)})
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        begun.release()
        await go_on.wait()
        await hello(scope, receive, send)

    async with served(narrow, busy) as connect:
        waiting = []
        for _ in range(2):
            reader, _ = await connect(GET)
            await begun.acquire()
            waiting.append(reader)
        reader, _ = await connect(GET)
        answer = await rest(reader)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: " in answer
        assert f'"type":"{base_url}/docs#overloaded"'.encode() in answer
        go_on.set()
        assert [await each.readline() for each in waiting] == [OK] * 2


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


LARGE = b"x" * (64 << 20)
"""A response that the buffers of two kernels do not hold."""


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(LARGE)(scope, receive, send)


@pytest.mark.long
@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"], ids=["kept", "to be closed"])
async def test_connection_is_closed_if_its_client_does_not_read(last: bytes) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    async with served(Counting, large) as connect:
        _, _ = await connect(GET[:-2] + last + b"\r\n" + GET)
        await Counting.paused.wait()
        loop.skipped_s += Counting.client_s
        await Counting.lost.wait()


async def test_connection_stays_open_while_its_client_reads_slowly() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    async with served(Counting, large) as connect:
        reader, _ = await connect(GET)
        await reader.readuntil(b"\r\n\r\n")
        received = 0
        for _ in range(5):
            await Counting.paused.wait()
            while received % (8 << 20) or not received:
                received += len(await reader.readexactly(1 << 20))
            loop.skipped_s += Counting.client_s
            received += len(await reader.readexactly(1 << 20))
        await reader.readexactly(len(LARGE) - received)


async def test_connection_past_the_maximum_ends_one_whose_client_does_not_read() -> None:
    class Full(Patient):
        maximum = staticmethod(lambda: 1)

    async with served(Full, large) as connect:
        _, writer = await connect(GET + GET)
        await Counting.paused.wait()
        reader, writer = await connect()
        await Counting.lost.wait()
        writer.write(GET)
        assert await reader.readline() == OK


@pytest.mark.long
async def test_connections_with_the_oldest_unread_responses_are_closed_above_the_limit_of_their_bytes() -> None:
    half = connections.UNREAD_BYTES_MAX // 2 + (8 << 20)  # the kernel takes a part of a response

    async def halves(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(b"x" * half)(scope, receive, send)

    async with served(Patient, halves) as connect:
        readers = []
        for _ in range(2):
            Counting.paused.clear()
            reader, _ = await connect(GET)
            await Counting.paused.wait()
            readers.append(reader)
        await Counting.lost.wait()
        oldest, newest = readers
        assert len(await rest(oldest)) < half
        await read_response(newest, half)


@pytest.mark.long
async def test_responses_that_were_read_do_not_count_towards_the_limit_of_unread_bytes() -> None:
    part = connections.UNREAD_BYTES_MAX * 3 // 8  # two wait at a time, and three would be too much

    async def parts(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(b"x" * part)(scope, receive, send)

    async with served(Patient, parts) as connect:
        readers = []
        for number in range(3):
            Counting.paused.clear()
            reader, _ = await connect(GET)
            await Counting.paused.wait()
            readers.append(reader)
            if number == 0:
                await read_response(reader, part)
        for reader in readers[1:]:
            await read_response(reader, part)


@pytest.mark.long
async def test_pipelined_request_waits_until_the_response_before_it_is_read() -> None:
    begun: list[str] = []

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        await large(scope, receive, send)

    async with served(Patient, counted) as connect:
        reader, _ = await connect(GET * 2)
        await Counting.paused.wait()
        await asyncio.sleep(0)
        assert len(begun) == 1
        for _ in range(2):
            await read_response(reader, len(LARGE))
        assert len(begun) == 2


async def test_app_sees_that_a_connection_with_pipelined_requests_was_closed() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        begun.set()
        assert (await receive())["type"] == "http.disconnect"
        ended.set()

    async with served(Connection, endless) as connect:
        _, writer = await connect(GET * 2)
        await begun.wait()
        writer.transport.abort()
        await ended.wait()


async def test_connection_answers_a_few_pipelined_requests_and_closes() -> None:
    go_on = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await go_on.wait()
        await hello(scope, receive, send)

    async with served(Connection, slow) as connect:
        reader, _ = await connect(GET * 10_000)
        loop = asyncio.get_running_loop()
        loop.call_later(0, go_on.set)
        answers = await rest(reader)
        assert answers.count(b"HTTP/1.1 200 OK") == 1 + connections.PIPELINED_MAX
        assert answers.count(b"connection: close") == 1


async def test_head_of_a_response_is_sent_with_the_start_of_its_body() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b"})

    async with served(Connection, slow) as connect:
        _, writer = await connect()
        with socket.create_connection(writer.get_extra_info("peername")) as client:
            client.setblocking(False)
            client.send(GET)
            await begun.wait()
            with pytest.raises(BlockingIOError):
                client.recv(1)
            go_on.set()
            sent = b""
            while not sent.endswith(b"\r\n0\r\n\r\n"):
                sent += await asyncio.get_running_loop().sock_recv(client, 1 << 16)
            assert sent.startswith(OK)
            assert sent.endswith(b"\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n")


async def test_responses_without_a_body_and_continue_are_sent_at_once() -> None:
    async def read_all(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await hello(scope, receive, send)

    async with served(Connection, read_all) as connect:
        reader, writer = await connect(GET.replace(b"GET", b"HEAD") * 2)
        for _ in range(2):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(OK)
        writer.write(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"a")
        assert (await reader.readuntil(b"hello")).startswith(OK)
        writer.write(b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert (await rest(reader)).startswith(OK)


HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
FIELD = b"Cookie: %s\r\n"


@pytest.mark.parametrize(
    "head",
    [
        HEAD + FIELD % (b"a" * connections.HEAD_BYTES_MAX) + b"\r\n",
        HEAD + FIELD % (b"a" * connections.HEAD_BYTES_MAX * 2),
        HEAD + b"a:b\r\n" * connections.FIELDS_MAX + b"\r\n",
        HEAD + b"a:b\r\n" * connections.FIELDS_MAX + b"c:",
        b"GET /" + b"a" * connections.HEAD_BYTES_MAX * 2,
    ],
    ids=["field", "part of a field", "fields", "part of many fields", "path"],
)
async def test_head_that_is_too_large_is_answered_431(head: bytes) -> None:
    async with served(connections.with_base_url("https://example.com"), hello) as connect:
        reader, writer = await connect(GET + b"\r\n")
        await reader.readuntil(b"hello")
        writer.write(head)
        answer = await rest(reader)
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"connection: close\r\n" in answer
        assert b'"type":"https://example.com/docs#head-too-large"' in answer


async def test_connection_is_not_reset_while_the_client_sends_the_rest_of_a_head_that_is_too_large() -> None:
    loop = asyncio.get_running_loop()
    async with served(Connection, hello) as connect:
        _, writer = await connect()
        with socket.create_connection(writer.get_extra_info("peername")) as client:
            client.setblocking(False)
            await loop.sock_sendall(client, b"GET /" + b"a" * connections.HEAD_BYTES_MAX)
            sent = b""
            while part := await loop.sock_recv(client, 1 << 16):
                sent += part
            assert sent.startswith(b"HTTP/1.1 431 ")
            for _ in range(2):  # a socket whose peer reset the connection fails at the second
                client.send(b"a")


async def test_head_of_the_maximum_size_is_answered_and_bodies_do_not_count() -> None:
    async with served(Connection, hello) as connect:
        reader, writer = await connect()
        length = b"Content-Length: %d\r\n" % len(LARGE)
        size = connections.HEAD_BYTES_MAX - len(HEAD + FIELD + length) - len(b"\r\n") + len(b"%s")
        writer.write(HEAD + length + FIELD % (b"a" * size) + b"\r\n" + LARGE)
        assert await reader.readuntil(b"hello")
        writer.write(GET)
        assert (await reader.readuntil(b"hello")).startswith(OK)


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"


def test_fields_after_a_body_are_ignored_and_counted() -> None:
    async def names(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(b" ".join(name for name, _ in scope["headers"]))(scope, receive, send)

    async def use() -> None:
        async with served(Connection, names) as connect:
            reader, _ = await connect(CHUNKED + b"X-Forwarded-For: 203.0.113.1\r\nHost: other\r\n\r\n" + GET)
            assert await reader.readuntil(b"\r\n\r\nhost transfer-encoding")
            assert (await reader.readuntil(b"\r\n\r\nhost")).startswith(OK)

    before = trailers()
    asyncio.run(use())
    assert trailers() == before + 2


def trailers() -> float:
    return REGISTRY.get_sample_value("readership_ignored_trailers_total") or 0


@pytest.mark.parametrize("endless", [CHUNKED + b"Cookie: ", b"\r\n", CHUNKED.replace(b"0\r\n", b"1;")])
async def test_connection_is_closed_if_what_is_not_a_body_has_no_end(endless: bytes) -> None:
    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass

    async with served(Connection, read) as connect:
        reader, _ = await connect(
            endless + b"\r\na"[: 2 * (endless == b"\r\n")] + b"a" * 3 * connections.HEAD_BYTES_MAX
        )
        assert await rest(reader) == b""
