"""HTTP server for an untrusted client: its limits on connections and bytes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent.sandbox.unix_server import CONNECTIONS_MAX, HEAD_BYTES_MAX, serving
from tests.processes.waiting import until


async def app(scope: Scope, receive: Receive, send: Send) -> None:
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


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 70_000,
        b"GET / HTTP/1.1\r\n" + b"A: %b\r\n" % (b"x" * 2_000) * 40,
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
    ],
    ids=["long target", "long headers", "two lengths"],
)
def test_too_large_or_ambiguous_head_is_refused(server: Path, head: bytes) -> None:
    assert len(head) > HEAD_BYTES_MAX or head.count(b"Length") == 2
    with connected(server) as end:
        with suppress(ConnectionError):  # the server responds before it has read the whole head
            end.sendall(head + b"\r\n\r\n")
        assert end.recv(100).startswith(b"HTTP/1.1 400")


def test_connections_are_closed_with_the_server(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with serving(app, tmp_path / "s", nothing):
            used, unused = (stack.enter_context(connected(tmp_path / "s")) for _ in range(2))
            get(used)
        assert not used.recv(100)
        with suppress(ConnectionError):
            assert not unused.recv(100)
