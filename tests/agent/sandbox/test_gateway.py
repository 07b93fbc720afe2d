"""HTTP proxy that adds the model key: its requests, responses and faults."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from agent.sandbox import gateway
from agent.sandbox.gateway import Gateway, ModelCalls
from tests.agent.servers.model_server import KEY
from tests.processes.waiting import until

Answer = Callable[[BaseHTTPRequestHandler], None]
TOKEN = "the-token"
ALLOWED = ("POST /", "GET /", "POST /chat")


@contextmanager
def upstream(answer: Answer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            answer(self)

        def do_GET(self) -> None:
            answer(self)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def reflect(handler: BaseHTTPRequestHandler) -> None:
    """Respond with the request itself, and repeat the key in a header, as a careless server could."""
    body = handler.rfile.read(int(handler.headers.get("Content-Length", 0))).decode()
    echo = json.dumps({"path": handler.path, "headers": dict(handler.headers), "body": body}).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("X-Request-Id", handler.headers.get("authorization", "none"))
    handler.send_header("Set-Cookie", "a=b")
    handler.end_headers()
    for start in range(0, len(echo), 7):
        handler.wfile.write(echo[start : start + 7])
        handler.wfile.flush()


@contextmanager
def through(folder: Path, url: str, **options: object) -> Iterator[tuple[Gateway, httpx.Client]]:
    settings: dict[str, object] = {
        "key": KEY,
        "key_header": "authorization",
        "token": TOKEN,
        "calls": ModelCalls(ALLOWED, 9),
    }
    settings |= options
    with (
        Gateway(folder / "s", url, **settings) as gate,  # type: ignore[arg-type]
        httpx.Client(
            transport=httpx.HTTPTransport(uds=str(folder / "s")), base_url=f"http://gateway/{TOKEN}"
        ) as client,
    ):
        yield gate, client


def test_key_is_added_to_requests_and_redacted_in_responses(tmp_path: Path) -> None:
    with upstream(reflect) as url, through(tmp_path, f"{url}/v1") as (_, client):
        answer = client.post("/chat?a=b", content="hello", headers={"Authorization": "Bearer mine", "Cookie": "c"})
    echo = answer.json()
    assert (echo["path"], echo["body"]) == ("/v1/chat?a=b", "hello")
    assert echo["headers"]["authorization"] == "Bearer ***"
    assert "cookie" not in {name.lower() for name in echo["headers"]}
    assert KEY not in answer.text + str(answer.headers)
    assert "set-cookie" not in answer.headers


def test_key_is_sent_as_x_api_key(tmp_path: Path) -> None:
    seen: list[str | None] = []

    def record(handler: BaseHTTPRequestHandler) -> None:
        seen.extend([handler.headers["x-api-key"], handler.headers["authorization"]])
        reflect(handler)

    with upstream(record) as url, through(tmp_path, url, key_header="x-api-key") as (_, client):
        client.post("/", headers={"X-API-Key": "mine", "Authorization": "Bearer mine"})
    assert seen == [KEY, None]


async def _redacted(gate: Gateway, pieces: list[bytes]) -> bytes:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return b"".join([piece async for piece in gate.redacted(chunks())])


def test_key_split_over_chunks_is_redacted(tmp_path: Path) -> None:
    gate = Gateway(tmp_path / "s", "http://x", "abcabd", "authorization", TOKEN, ModelCalls(ALLOWED, 9))
    whole = b"ab abcabcabd abcab abcabdabcabd abca"
    for size in range(1, len(whole)):
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        assert asyncio.run(_redacted(gate, pieces)) == b"ab abc*** abcab ****** abca"


def test_response_is_streamed(tmp_path: Path) -> None:
    """Let the model server send the second event only after the first has arrived at the client."""
    arrived = threading.Event()

    def events(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(b"data: 1\n\n")
        assert arrived.wait(60)
        handler.wfile.write(b"data: 2\n\n")

    with upstream(events) as url, through(tmp_path, url) as (_, client), client.stream("POST", "/") as answer:
        pieces = answer.iter_raw()
        assert next(pieces) == b"data: 1\n\n"
        arrived.set()
        assert next(pieces) == b"data: 2\n\n"
        assert answer.headers["content-type"] == "text/event-stream"


def test_chunked_body_is_forwarded(tmp_path: Path) -> None:
    def count(handler: BaseHTTPRequestHandler) -> None:
        assert handler.headers["Transfer-Encoding"] == "chunked"
        total = 0
        while size := int(handler.rfile.readline(), 16):
            total += len(handler.rfile.read(size))
            handler.rfile.readline()
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(str(total).encode())

    with upstream(count) as url, through(tmp_path, url) as (_, client):
        assert client.post("/", content=iter([b"a" * 100_000, b"b" * 5])).text == "100005"


@pytest.mark.parametrize("target", ["/chat?/../files", "/chat?x=%2e%2e", "/chat"])
def test_query_does_not_change_the_path(tmp_path: Path, target: str) -> None:
    with upstream(reflect) as url, through(tmp_path, f"{url}/v1") as (_, client):
        assert client.post(target).json()["path"] == f"/v1{target}"


def test_limit_of_requests_ends_the_turn_with_its_reason(tmp_path: Path) -> None:
    with upstream(reflect) as url, through(tmp_path, url, calls=ModelCalls(ALLOWED, 2)) as (gate, client):
        assert [client.post("/").status_code for _ in range(4)] == [200, 200, 403, 403]
        gate.record_response(200, "")  # the response to an earlier request
    assert (gate.has_failed(), gate.fault()) == (True, "it sent more than 2 requests to the model server in one turn")


def test_absolute_url_of_another_server_is_refused(tmp_path: Path) -> None:
    with upstream(reflect) as url, through(tmp_path, f"{url}/v1"), socket.socket(socket.AF_UNIX) as end:
        end.connect(str(tmp_path / "s"))
        end.sendall(f"GET {url}/secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert end.recv(100).startswith(b"HTTP/1.1 403")


def test_redirect_is_not_followed(tmp_path: Path) -> None:
    def redirect(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://169.254.169.254/")
        handler.end_headers()

    with upstream(redirect) as url, through(tmp_path, url) as (gate, client):
        answer = client.post("/")
    assert (answer.status_code, "location" in answer.headers) == (302, False)
    assert "responded 302" in (gate.fault() or "")


def test_unreachable_model_server_is_a_502_and_a_fault(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
    with through(tmp_path, url, failing_s_max=0.0) as (gate, client):
        assert not gate.has_failed()
        assert client.post("/").status_code == 502
        assert not gate.has_failed(), "one failure may be an accident"
        assert client.post("/").status_code == 502
        assert gate.has_failed()
        assert (
            gate.fault()
            == f"the model server at {url} cannot be reached: [Errno 111] Connect call failed ('127.0.0.1', {port})"
        )


def test_fault_of_a_refused_key_does_not_contain_the_key(tmp_path: Path) -> None:
    def refuse(handler: BaseHTTPRequestHandler) -> None:
        handler.send_error(401, f"bad key {KEY}")

    with upstream(refuse) as url, through(tmp_path, url) as (gate, client):
        assert client.post("/").status_code == 401
        fault = until(gate.fault)
    assert fault.startswith(f"the model server at {url} refuses the model key (401)")
    assert KEY not in fault


def test_success_clears_the_fault(tmp_path: Path) -> None:
    statuses = iter([500, 200])

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(next(statuses))
        handler.end_headers()

    with upstream(answer) as url, through(tmp_path, url) as (gate, client):
        client.post("/")
        assert until(gate.fault) == f"the model server at {url} responded 500: "
        client.post("/")
        assert gate.fault() is None


def test_too_large_request_is_refused(tmp_path: Path) -> None:
    with upstream(reflect) as url, through(tmp_path, url), socket.socket(socket.AF_UNIX) as end:
        end.connect(str(tmp_path / "s"))
        length = gateway.REQUEST_BYTES_MAX + 1
        end.sendall(f"POST /{TOKEN}/ HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        assert end.recv(100).startswith(b"HTTP/1.1 413")


def test_request_that_waits_for_a_connection_was_not_received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "REQUESTS_AT_ONCE", 1)
    may_end = threading.Event()

    def events(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"data")
        assert may_end.wait(60)
        handler.close_connection = True

    with upstream(events) as url, through(tmp_path, url) as (gate, client), client.stream("POST", "/") as answer:
        content = answer.iter_raw()  # an iterator that nobody has closes its response
        assert next(content) == b"data"
        with connected(tmp_path) as end:
            end.sendall(f"POST /{TOKEN}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            until(lambda: gate.calls.count == 2)
            assert gate.fault() is None
            may_end.set()
            assert end.recv(100).startswith(b"HTTP/1.1 200")


@contextmanager
def connected(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(30)
        end.connect(str(folder / "s"))
        yield end


def test_gateway_closes_its_connections_at_its_end(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with upstream(reflect) as url, through(tmp_path, url):
            end = stack.enter_context(connected(tmp_path))
            end.sendall(b"GET /the-token/ HTTP/1.1\r\nHost: x\r\n\r\n")
            assert end.recv(100).startswith(b"HTTP/1.1 200")
        while end.recv(10_000):
            pass


def test_request_beyond_the_limit_is_no_fault_of_the_model_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "QUEUE_S", 0.1)
    monkeypatch.setattr(gateway, "REQUESTS_AT_ONCE", 1)
    has_arrived, may_respond = threading.Event(), threading.Event()

    def wait(handler: BaseHTTPRequestHandler) -> None:
        has_arrived.set()
        assert may_respond.wait(60)
        reflect(handler)

    with upstream(wait) as url, through(tmp_path, url, failing_s_max=0.0) as (gate, client), connected(tmp_path) as end:
        end.sendall(f"POST /{TOKEN}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert has_arrived.wait(60)
        assert until(gate.fault) == f"the model server at {url} has received a request and not responded"
        assert [client.post("/").status_code for _ in range(3)] == [503] * 3
        may_respond.set()
        assert end.recv(100).startswith(b"HTTP/1.1 200")
        assert (gate.has_failed(), gate.fault()) == (False, None)
