"""HTTP server for an untrusted client: its limits on connections, bytes and waits."""

import asyncio
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.sandbox import unix_server
from agent.sandbox.unix_server import CONNECTIONS_MAX, HEAD_BYTES_MAX, serving
from tests.processes.waiting import until


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * unix_server.IDLE_S)
    if scope["path"] == "/large":
        await Response(b"x" * 4_000_000)(scope, receive, send)
        return
    if scope["path"].startswith("/broken/"):
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"x" * int(scope["path"][8:]), "more_body": True})
        raise RuntimeError
    await Response(status_code=204)(scope, receive, send)


async def nothing() -> None:
    """Do nothing at the end of the server."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    with serving(app, tmp_path / "s", nothing):
        yield tmp_path / "s"


@contextmanager
def connected(server: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(30)
        end.connect(str(server))
        yield end


def get(end: socket.socket, path: str = "/") -> bytes:
    """Send a request. Return the first line of the response."""
    end.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return end.recv(4096).partition(b"\r\n")[0]


def test_connection_serves_many_requests(server: Path) -> None:
    with connected(server) as end:
        assert [get(end) for _ in range(3)] == [b"HTTP/1.1 204 No Content"] * 3


def test_response_is_503_beyond_the_connection_limit_until_one_is_closed(server: Path) -> None:
    until(lambda: _is_served(server))  # the thread has opened its files
    threads, files = threading.active_count(), len([*Path("/proc/self/fd").iterdir()])
    with ExitStack() as stack:
        first = [stack.enter_context(connected(server)) for _ in range(CONNECTIONS_MAX)]
        for _ in range(300):
            with connected(server) as refused:
                assert refused.recv(100).startswith(b"HTTP/1.1 503")
        assert threading.active_count() <= threads
        assert len([*Path("/proc/self/fd").iterdir()]) <= files + 2 * CONNECTIONS_MAX + 1
        first[0].close()
        until(lambda: _is_served(server))


def _is_served(server: Path) -> bool:
    with connected(server) as end, suppress(ConnectionError):
        return get(end).startswith(b"HTTP/1.1 204")
    return False


@pytest.mark.parametrize("head", [b"GET /" + b"x" * 70_000, b"GET / HTTP/1.1\r\n" + b"A: %b\r\n" % (b"x" * 2_000) * 40])
def test_too_large_head_is_refused(server: Path, head: bytes) -> None:
    assert len(head) > HEAD_BYTES_MAX
    with connected(server) as end:
        with suppress(ConnectionError):  # the server responds before it has read the whole head
            end.sendall(head + b"\r\n\r\n")
        assert end.recv(100).startswith(b"HTTP/1.1 400")


def test_request_with_two_lengths_is_refused(server: Path) -> None:
    with connected(server) as end:
        end.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12")
        assert end.recv(100).startswith(b"HTTP/1.1 400")


def test_connections_are_closed_with_the_server(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with serving(app, tmp_path / "s", nothing):
            used, unused = (stack.enter_context(connected(tmp_path / "s")) for _ in range(2))
            get(used)
        assert not used.recv(100)
        with suppress(ConnectionError):
            assert not unused.recv(100)


@pytest.fixture
def brief_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_server, "IDLE_S", 0.3)


def _is_closed(end: socket.socket) -> bool:
    with suppress(ConnectionResetError):
        return not end.recv(100)
    return True


@pytest.mark.usefixtures("brief_idle")
def test_connection_without_a_complete_head_is_closed(server: Path) -> None:
    with ExitStack() as stack:
        ends = [stack.enter_context(connected(server)) for _ in range(CONNECTIONS_MAX)]
        for end in ends[::2]:
            end.sendall(b"POST / HTTP/1.1\r\n")
        assert all(_is_closed(end) for end in ends)
        until(lambda: _is_served(server))


@pytest.mark.usefixtures("brief_idle")
def test_second_head_must_be_complete_in_time(server: Path) -> None:
    with connected(server) as end:
        get(end)
        end.sendall(b"GET / HTTP/1.1\r\n")
        assert _is_closed(end)


@pytest.mark.usefixtures("brief_idle")
def test_bytes_of_a_slow_head_do_not_extend_its_time(server: Path) -> None:
    with connected(server) as end:
        end.sendall(b"GET / HTTP/1.1\r\nA: ")
        end.settimeout(0.05)

        def is_closed_after_another_byte() -> bool:
            with suppress(TimeoutError):
                try:
                    end.sendall(b"a")
                    return not end.recv(1)
                except ConnectionError:
                    return True
            return False

        until(is_closed_after_another_byte)


@pytest.mark.usefixtures("brief_idle")
def test_response_may_take_longer_than_a_head(server: Path) -> None:
    with connected(server) as end:
        assert [get(end, path) for path in ("/slow", "/", "/slow")] == [b"HTTP/1.1 204 No Content"] * 3
        end.sendall(2 * b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        assert [end.recv(4096)[:12] for _ in range(2)] == [b"HTTP/1.1 204"] * 2
        assert _is_closed(end)


@pytest.mark.usefixtures("brief_idle")
def test_connection_is_closed_if_the_client_does_not_read_the_response(server: Path) -> None:
    with ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX):
            end = stack.enter_context(connected(server))
            end.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        until(lambda: _is_served(server))


@pytest.mark.usefixtures("brief_idle")
def test_connection_is_closed_if_the_client_does_not_read_a_broken_response(server: Path) -> None:
    """Leave a small rest of some responses in the memory of the server: the buffer of the socket is full."""
    with ExitStack() as stack:
        ends = [stack.enter_context(connected(server)) for _ in range(CONNECTIONS_MAX)]
        poll = select.poll()
        for number, end in enumerate(ends):
            poll.register(end, 0)
            end.sendall(f"GET /broken/{number * 16_384} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: [event for _, event in poll.poll(0)] == [select.POLLHUP] * CONNECTIONS_MAX, 20)
