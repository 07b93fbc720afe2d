"""HTTP proxy on a Unix socket that adds the model key: the only way out of the sandbox.

The agent has the turn's token instead of the key. The gateway adds the real key to requests and redacts it in
responses, so the key never enters the sandbox. It forwards only model calls, follows no redirect and ignores the
environment (proxies, .netrc).
"""

import re
import secrets
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from agent.sandbox.bounded_server import BoundedHandler, BoundedServer, RequestTooLarge
from agent.sandbox.model_calls import ModelCalls

REQUEST_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of a request body, in bytes."""
REQUESTS_AT_ONCE = 16
"""Maximum number of concurrent requests to the model server."""
CONNECT_S = 10
"""Timeout of a connection attempt, in seconds."""
READ_S = 600.0
"""Timeout of a response, in seconds: a model may need minutes for its first token."""
BODY_S = 600.0
"""Deadline for the whole body of a request, in seconds."""
FAILING_S_MAX = 30.0
"""Seconds of failed requests after which the turn fails: some agents would retry until the time limit of the turn."""
ERROR_BYTES = 300
"""Maximum number of bytes of an error response that the job's failure reason quotes, from its beginning."""
CHUNK_BYTES = 64 * 1024
KEY_REFUSED = (401, 403)
BUSY = 429

DROPPED_REQUEST_HEADERS = re.compile(
    r"host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect|accept-encoding"
    r"|cookie|authorization|.*api-key|forwarded|x-forwarded-.*"
)
RESPONSE_HEADERS = re.compile(
    r"content-type|retry-after(-ms)?|x-should-retry|(x-)?request-id|(x|anthropic)-ratelimit-.*"
)


@dataclass(slots=True)
class Gateway:
    """Gateway that listens at `socket_path` inside its `with` block.

    `key_header` is the name of the header for the key: `authorization` (as a Bearer token) or another, such as
    `x-api-key`. A request needs `token` as its key or as the first part of its path: without a sandbox, every user of
    the machine can connect.
    """

    socket_path: Path
    upstream: str
    key: str | None = field(repr=False)
    key_header: str
    token: str = field(repr=False)
    calls: ModelCalls
    failing_s_max: float = FAILING_S_MAX
    _fault: str | None = None
    _failing_since: float | None = None
    _has_failed: bool = False
    _unanswered: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(REQUESTS_AT_ONCE))
    _client: httpx.Client | None = None
    _server: "_Server | None" = None

    def __enter__(self) -> "Gateway":
        timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
        limits = httpx.Limits(max_connections=REQUESTS_AT_ONCE, max_keepalive_connections=REQUESTS_AT_ONCE)
        trusted = ssl.create_default_context()
        self._client = httpx.Client(timeout=timeout, limits=limits, trust_env=False, verify=trusted)
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="gateway", daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._server is not None
        assert self._client is not None
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    def has_failed(self) -> bool:
        """Return whether every request of the last `failing_s_max` seconds failed, or there were too many."""
        with self._lock:
            return self._has_failed or self.calls.fault() is not None

    def fault(self) -> str | None:
        """Return the current fault of the model server, or None."""
        with self._lock:
            fault = self.calls.fault() or self._fault
            if fault is None and self._unanswered:
                return f"the model server at {self.upstream} has received a request and not responded"
            return fault

    @contextmanager
    def send(self, method: str, url: str, headers: dict[str, str], body: Iterator[bytes]) -> Iterator[httpx.Response]:
        """Send a request with the key. Yield the response as soon as its headers have arrived.

        Raises:
            httpx.TransportError: the model server cannot be reached. `fault` returns the reason.
        """
        assert self._client is not None
        if self.key is not None:
            headers[self.key_header] = f"Bearer {self.key}" if self.key_header == "authorization" else self.key
        request = self._client.build_request(method, url, headers=headers, content=body)
        with self._slots:
            try:
                response = self._start(request)
                try:
                    yield response
                finally:
                    response.close()
            except httpx.TransportError as error:
                self._set_fault(f"the model server at {self.upstream} cannot be reached: {error}", counts=True)
                raise

    def record_response(self, status: int, message: str) -> None:
        """Set or clear the fault by a response. 429 does not count towards `has_failed`: agents wait and retry."""
        if status < 300:
            self._set_fault(None, counts=False)
        elif status in KEY_REFUSED:
            self._set_fault(
                f"the model server at {self.upstream} refuses the model key ({status}): {message}", counts=True
            )
        else:
            self._set_fault(f"the model server at {self.upstream} responded {status}: {message}", counts=status != BUSY)

    def redacted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks of a response with the key replaced by `***`.

        A possible beginning of the key at the end of a chunk is delayed until the next chunk.
        """
        key = (self.key or "").encode()
        delayed = b""
        for chunk in chunks:
            text = (delayed + chunk).replace(key, b"***") if key else chunk
            end = len(text) - _prefix_length(key, text)
            delayed = text[end:]
            yield text[:end]
        yield delayed

    def _start(self, request: httpx.Request) -> httpx.Response:
        assert self._client is not None
        with self._lock:
            self._unanswered += 1
        try:
            return self._client.send(request, stream=True)
        finally:
            with self._lock:
                self._unanswered -= 1

    def _set_fault(self, fault: str | None, *, counts: bool) -> None:
        with self._lock:
            self._fault = fault.replace(self.key, "***") if fault and self.key else fault
            if fault is None:
                self._failing_since = None
            elif counts and self._failing_since is None:
                self._failing_since = time.monotonic()
            elif counts and self._failing_since is not None:
                self._has_failed = time.monotonic() - self._failing_since > self.failing_s_max


def _prefix_length(key: bytes, chunk: bytes) -> int:
    """Return the length of the longest prefix of the key at the end of the chunk."""
    return next((n for n in range(min(len(key) - 1, len(chunk)), 0, -1) if chunk.endswith(key[:n])), 0)


class _Server(BoundedServer):
    def __init__(self, gateway: Gateway) -> None:
        super().__init__(str(gateway.socket_path), _Handler)
        self.gateway = gateway


class _Handler(BoundedHandler):
    server: _Server

    def forward(self) -> None:
        """Send the request to the model server, and its response to the agent."""
        gateway = self.server.gateway
        self._has_begun = False
        headers = {name.lower(): value for name, value in self.headers.items()}
        target = self._target(headers)
        refusal = gateway.calls.refusal(self.command, target) if target else "the request lacks the token of the turn"
        if refusal is not None:
            with suppress(RequestTooLarge):  # read the body, because a client may not read a response before
                deque(self._body(headers), maxlen=0)
            self.refuse(403, refusal)
            return
        url = f"{gateway.upstream.rstrip('/')}{target}"
        passed = {name: value for name, value in headers.items() if not DROPPED_REQUEST_HEADERS.fullmatch(name)}
        passed["accept-encoding"] = "identity"
        if "transfer-encoding" not in headers:
            passed["content-length"] = str(int(headers.get("content-length", "0")))
        try:
            with gateway.send(self.command, url, passed, self._body(headers)) as response:
                self._respond(response)
        except RequestTooLarge:
            self.refuse(413, f"a request body is limited to {REQUEST_BYTES_MAX} bytes")
        except httpx.TransportError:
            if self._has_begun:
                self.close_connection = True
                return
            self.refuse(502, gateway.fault() or "the model server cannot be reached")

    def _target(self, headers: dict[str, str]) -> str | None:
        """Return the target of the request without the token; None if the request has no token."""
        first, slash, rest = self.path.removeprefix("/").partition("/")
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        given = [text.encode() for text in (first, bearer, headers.get("x-api-key", ""))]
        in_path, *in_headers = [secrets.compare_digest(text, self.server.gateway.token.encode()) for text in given]
        return slash + rest if in_path else self.path if any(in_headers) else None

    def _body(self, headers: dict[str, str]) -> Iterator[bytes]:
        """Yield the request's body in chunks.

        Raises:
            RequestTooLarge: the body exceeds REQUEST_BYTES_MAX.
            TimeoutError: the body did not arrive within BODY_S.
        """
        self.incoming.allow(REQUEST_BYTES_MAX, BODY_S)
        total = 0
        is_chunked = "transfer-encoding" in headers
        body = self._chunked() if is_chunked else self._sized(int(headers.get("content-length", "0")))
        for chunk in body:
            total += len(chunk)
            if total > REQUEST_BYTES_MAX:
                raise RequestTooLarge
            yield chunk

    def _sized(self, length: int) -> Iterator[bytes]:
        if length > REQUEST_BYTES_MAX:
            raise RequestTooLarge
        while length > 0 and (chunk := self.rfile.read(min(length, CHUNK_BYTES))):
            length -= len(chunk)
            yield chunk

    def _chunked(self) -> Iterator[bytes]:
        """Decode a chunked body: https://www.rfc-editor.org/rfc/rfc9112#section-7.1."""
        while length := int(self.rfile.readline(1024).partition(b";")[0], 16):
            yield from self._sized(length)
            self.rfile.readline(1024)
        while self.rfile.readline(CHUNK_BYTES).strip():
            pass

    def _respond(self, response: httpx.Response) -> None:
        """Stream the response to the agent. Record the beginning of an error response for the job's failure reason."""
        gateway = self.server.gateway
        self.connection.settimeout(READ_S)
        self.send_response(response.status_code)
        for name, value in response.headers.items():
            if RESPONSE_HEADERS.fullmatch(name.lower()) and not (gateway.key and gateway.key in value):
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._has_begun = True
        beginning = b""
        if response.is_success:
            gateway.record_response(response.status_code, "")
        for chunk in gateway.redacted(response.iter_bytes()):
            beginning = (beginning + chunk)[:ERROR_BYTES]
            if chunk:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        if not response.is_success:
            gateway.record_response(response.status_code, " ".join(beginning.decode(errors="replace").split()))
