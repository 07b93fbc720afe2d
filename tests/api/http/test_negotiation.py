"""The media type of a response by its quality in the Accept header, and its coding by Accept-Encoding."""

import asyncio
import zlib

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from api.http.negotiation import Compression, accepted
from api.http.problems import Problem

JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"


def media_type(*accept: str) -> str:
    headers = [(b"accept", value.encode()) for value in accept]
    return accepted(Request({"type": "http", "headers": headers}), (JSON, CSV, PARQUET), "the report")


def test_media_type_has_the_highest_quality() -> None:
    for accept, expected in {
        "": JSON,
        "*/*": JSON,
        CSV: CSV,
        "Text/CSV; charset=utf-8": CSV,
        "text/*": CSV,
        f"{JSON};q=0.5, {CSV}": CSV,
        f"{JSON};q=0.5, {CSV};q=0.4": JSON,
        "*/*, application/json;q=0": CSV,  # the exact range decides, not the highest quality
        "application/*;q=0.1, */*;q=0.9": CSV,
        f"application/*;q=0, {PARQUET}": PARQUET,
        "text/html, application/xhtml+xml, */*;q=0.8": JSON,
        "text/csv;q=x": CSV,
    }.items():
        assert media_type(accept) == expected, accept
    assert media_type("text/html", CSV) == CSV, "headers are joined"
    assert media_type() == JSON, "none accepts any type"


def test_unavailable_media_type_is_rejected_with_the_available_ones() -> None:
    for accept in ("text/html", "application/json;q=0", "*/*;q=0", "csv", "text/csvx"):
        with pytest.raises(Problem) as raised:
            media_type(accept)
        assert raised.value.kind == "not-acceptable"
        assert raised.value.detail == f"the report is available as {JSON}, {CSV} or {PARQUET}"


TEXT = b"a line of a table\n" * 400


async def respond(request: Request) -> Response:
    """Return TEXT in the media type of the path, in two chunks for a path that ends with a slash."""
    kind = request.path_params["kind"]
    headers = {"Vary": "Cookie", "ETag": 'W/"1"'}
    if kind == "not/modified":
        return Response(status_code=304, headers=headers)
    if kind.endswith("/"):
        return StreamingResponse(iter([TEXT, TEXT]), 200, headers, kind[:-1])
    return Response(TEXT if kind != "text/short" else b"short", 200, headers, kind)


@pytest.fixture(scope="module")
def client() -> TestClient:
    route = Route("/{kind:path}", respond, methods=["GET", "POST"])
    return TestClient(Starlette(routes=[route], middleware=[Middleware(Compression)]))


def sent(client: TestClient, method: str, path: str, accept: str) -> tuple[str | None, int]:
    """Return the coding and the number of bytes of a response."""
    with client.stream(method, path, headers={"Accept-Encoding": accept}) as response:
        return response.headers.get("content-encoding"), len(b"".join(response.iter_raw()))


@pytest.mark.parametrize("path", ["/text/html", "/application/json", "/text/csv/"])
def test_large_response_to_get_is_compressed_if_the_client_accepts_gzip(client: TestClient, path: str) -> None:
    coding, size = sent(client, "GET", path, "gzip, br")
    assert (coding, size < len(TEXT) / 10) == ("gzip", True)
    for accept in ("", "br", "gzip;q=0"):
        assert sent(client, "GET", path, accept) == (None, len(TEXT) * (2 if path.endswith("/") else 1))
    for accept in ("gzip", "identity"):
        headers = client.get(path, headers={"Accept-Encoding": accept}).headers
        assert (headers["vary"], headers["etag"]) == ("Cookie, Accept-Encoding", 'W/"1"')
    assert client.head("/text/html").headers["content-length"] == client.get("/text/html").headers["content-length"]


def test_response_that_stays_as_it_is(client: TestClient) -> None:
    assert sent(client, "POST", "/text/html", "gzip")[0] is None, "it may show a new key"
    for path in ("/text/short", "/application/vnd.apache.parquet/", "/text/event-stream/"):
        assert sent(client, "GET", path, "gzip")[0] is None


def test_caches_distinguish_codings_of_each_response(client: TestClient) -> None:
    """Check small and empty ones, too: a cache may store a 304's header for the whole representation."""
    for path in ("/text/short", "/not/modified", "/text/html", "/text/csv/"):
        for accept in ("gzip", "identity"):
            assert client.get(path, headers={"Accept-Encoding": accept}).headers["vary"] == "Cookie, Accept-Encoding"


def test_each_chunk_is_sent_before_the_next_is_computed() -> None:
    computed: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/csv")]})
        for number in range(3):
            await send({"type": "http.response.body", "body": TEXT, "more_body": number < 2})
            computed.append(decoder.decompress(b"".join(body)))
            body.clear()

    async def send(message: Message) -> None:
        body.append(message.get("body", b""))

    async def receive() -> Message:
        raise NotImplementedError

    body: list[bytes] = []
    decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
    scope = {"type": "http", "method": "GET", "headers": [(b"accept-encoding", b"gzip")]}
    asyncio.run(Compression(app)(scope, receive, send))
    assert computed == [TEXT] * 3
