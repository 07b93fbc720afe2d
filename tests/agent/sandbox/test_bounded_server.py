"""HTTP server for an untrusted client: its limits on connections, bytes and time."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from agent.sandbox.bounded_server import CONNECTIONS_MAX, BoundedHandler, BoundedServer, Incoming, RequestTooLarge
from tests.processes.waiting import until


class Handler(BoundedHandler):
    """Responds 204, or with an error to the path /refused."""

    def forward(self) -> None:
        if self.path == "/refused":
            self.refuse(403, 'not "allowed"')
            return
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BoundedServer]:
    running = BoundedServer(str(tmp_path / "s"), Handler)
    threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


@contextmanager
def connected(server: BoundedServer) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(30)
        end.connect(str(server.server_address))
        yield end


def get(end: socket.socket, path: str = "/") -> bytes:
    """Send a request. Return the first line of the response."""
    end.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return end.recv(4096).partition(b"\r\n")[0]


def test_connection_serves_many_requests(server: BoundedServer) -> None:
    with connected(server) as end:
        assert [get(end) for _ in range(3)] == [b"HTTP/1.1 204 No Content"] * 3


def test_response_is_503_beyond_the_connection_limit_until_one_is_closed(server: BoundedServer) -> None:
    """Count the threads: without a limit each connection would have one."""
    threads = threading.active_count()
    with ExitStack() as stack:
        first = [stack.enter_context(connected(server)) for _ in range(CONNECTIONS_MAX)]
        for _ in range(300):
            with connected(server) as refused:
                assert refused.recv(100).startswith(b"HTTP/1.1 503")
        assert threading.active_count() <= threads + CONNECTIONS_MAX
        first[0].close()
        until(lambda: _is_served(server))


def _is_served(server: BoundedServer) -> bool:
    with connected(server) as end, suppress(ConnectionError):
        return get(end).startswith(b"HTTP/1.1 204")
    return False


@pytest.mark.parametrize("head", [b"GET /" + b"x" * 70_000, b"GET / HTTP/1.1\r\n" + b"A: %b\r\n" % (b"x" * 2_000) * 40])
def test_too_large_head_is_refused(server: BoundedServer, head: bytes) -> None:
    with connected(server) as end:
        with suppress(ConnectionError):  # the server responds before it has read the whole head
            end.sendall(head + b"\r\n\r\n")
        assert end.recv(100).startswith(b"HTTP/1.1 431")


def test_error_is_json_and_closes_the_connection(server: BoundedServer) -> None:
    with connected(server) as end:
        end.sendall(b"GET /refused HTTP/1.1\r\nHost: x\r\n\r\n")
        response = b"".join(iter(lambda: end.recv(4096), b""))
        head, _, body = response.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 403")
        assert json.loads(body) == {"error": {"message": "not 'allowed'"}}


def test_connections_are_closed_with_the_server(server: BoundedServer) -> None:
    with connected(server) as end:
        get(end)
        server.server_close()
        assert end.recv(100) == b""


def test_reading_is_refused_before_it_is_allowed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"1")
        with pytest.raises(TimeoutError):
            Incoming(ours).read(1)


def test_reading_is_limited_in_bytes_and_by_a_deadline() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        incoming = Incoming(ours)
        theirs.sendall(b"12345")
        incoming.allow(5, 60)
        assert incoming.read(4) == b"1234"
        incoming.allow(5, 0)
        with pytest.raises(TimeoutError):
            incoming.read(4)
        theirs.sendall(b"6789")
        incoming.allow(4, 60)
        with pytest.raises(RequestTooLarge):
            incoming.read(100)
