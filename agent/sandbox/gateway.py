"""The one way out of the box: a Unix socket whose requests go on to the model server, with the real key put in.

The agent knows a key that opens nothing. The real one is added here and cut out of every answer, so it is nowhere in
the box. Only what lies below the upstream URL can be asked for, no redirect is followed, and no setting of the
environment (proxies, .netrc) is read.
"""

import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from agent.sandbox.bounded_server import BoundedHandler, BoundedServer, TooMuch

REQUEST_BYTES_MAX = 64 * 1024 * 1024
REQUESTS_AT_ONCE = 16
CONNECT_S = 10
READ_S = 600.0
"""A model may think for minutes before its first word."""
BODY_S = 600.0
"""Deadline for the whole body of a request, in seconds."""
PATIENCE_S = 30.0
"""For how long every request may fail before the turn is given up: some agents would try until its time is over."""
SAID_BYTES = 300
PIECE_BYTES = 64 * 1024
REFUSED_KEY = (401, 403)
BUSY = 429

NOT_PASSED_ON = re.compile(
    r"host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect|accept-encoding"
    r"|cookie|authorization|.*api-key|forwarded|x-forwarded-.*"
)
PASSED_BACK = re.compile(r"content-type|retry-after(-ms)?|x-should-retry|(x-)?request-id|(x|anthropic)-ratelimit-.*")
UPWARDS = re.compile(r"(^|/)(\.|%2e){1,2}(/|%2f|$)|%2f|%5c|\\", re.IGNORECASE)


@dataclass(slots=True)
class Gateway:
    """As a context: it listens at `socket_path`, and all it knows of the model server is told by `complaint`."""

    socket_path: Path
    upstream: str
    key: str | None = field(repr=False)
    key_header: str
    patience_s: float = PATIENCE_S
    _fault: str | None = None
    _failing_since: float | None = None
    _has_given_up: bool = False
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

    def given_up(self) -> bool:
        """Whether request after request has failed for so long that to go on is pointless."""
        with self._lock:
            return self._has_given_up

    def complaint(self) -> str | None:
        """What is wrong with the model server now; None if nothing is."""
        with self._lock:
            if self._fault is None and self._unanswered:
                return f"the model server at {self.upstream} has taken a request and not answered it"
            return self._fault

    def url_of(self, target: str) -> str | None:
        """Where a request goes; None if it tries to leave what is below the upstream URL."""
        if not target.startswith("/") or UPWARDS.search(target.partition("?")[0]):
            return None
        return self.upstream.rstrip("/") + target

    @contextmanager
    def ask(self, method: str, url: str, headers: dict[str, str], body: Iterator[bytes]) -> Iterator[httpx.Response]:
        """The model server's answer, once it has begun. Raises httpx.TransportError, and keeps the reason."""
        assert self._client is not None
        if self.key is not None:
            headers[self.key_header] = f"Bearer {self.key}" if self.key_header == "authorization" else self.key
        request = self._client.build_request(method, url, headers=headers, content=body)
        with self._slots:
            try:
                response = self._begin(request)
                try:
                    yield response
                finally:
                    response.close()
            except httpx.TransportError as problem:
                self._note(f"the model server at {self.upstream} cannot be reached: {problem}", counts=True)
                raise

    def judge(self, status: int, said: str) -> None:
        """Keep what an answer says of the model server. A busy one (429) may be waited for; the agents do."""
        if status < 300:
            self._note(None, counts=False)
        elif status in REFUSED_KEY:
            self._note(f"the model server at {self.upstream} refuses the model key ({status}): {said}", counts=True)
        else:
            self._note(f"the model server at {self.upstream} answered {status}: {said}", counts=status != BUSY)

    def without_key(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same bytes as they come, but for the key, should the model server send it back."""
        key = (self.key or "").encode()
        held = b""
        for piece in pieces:
            whole = (held + piece).replace(key, b"***") if key else piece
            keep = _begins_with_end(key, whole)
            held = whole[len(whole) - keep :]
            yield whole[: len(whole) - keep]
        yield held

    def _begin(self, request: httpx.Request) -> httpx.Response:
        assert self._client is not None
        with self._lock:
            self._unanswered += 1
        try:
            return self._client.send(request, stream=True)
        finally:
            with self._lock:
                self._unanswered -= 1

    def _note(self, fault: str | None, *, counts: bool) -> None:
        with self._lock:
            self._fault = fault.replace(self.key, "***") if fault and self.key else fault
            if fault is None:
                self._failing_since = None
            elif counts and self._failing_since is None:
                self._failing_since = time.monotonic()
            elif counts and self._failing_since is not None:
                self._has_given_up = time.monotonic() - self._failing_since > self.patience_s


def _begins_with_end(key: bytes, piece: bytes) -> int:
    """How many of the last bytes could be the key's first ones."""
    return next((n for n in range(min(len(key) - 1, len(piece)), 0, -1) if piece.endswith(key[:n])), 0)


class _Server(BoundedServer):
    def __init__(self, gateway: Gateway) -> None:
        super().__init__(str(gateway.socket_path), _Handler)
        self.gateway = gateway


class _Handler(BoundedHandler):
    server: _Server
    _has_begun = False

    def forward(self) -> None:
        gateway = self.server.gateway
        self._has_begun = False
        url = gateway.url_of(self.path)
        if url is None:
            self.refuse(403, "only what is below the model server's URL can be asked for")
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        passed = {name: value for name, value in headers.items() if not NOT_PASSED_ON.fullmatch(name)}
        passed["accept-encoding"] = "identity"
        if "transfer-encoding" not in headers:
            passed["content-length"] = str(int(headers.get("content-length", "0")))
        try:
            with gateway.ask(self.command, url, passed, self._body(headers)) as response:
                self._answer(response)
        except TooMuch:
            self.refuse(413, f"a request has at most {REQUEST_BYTES_MAX} bytes")
        except httpx.TransportError:
            if self._has_begun:
                self.close_connection = True
                return
            self.refuse(502, gateway.complaint() or "the model server cannot be reached")

    def _body(self, headers: dict[str, str]) -> Iterator[bytes]:
        """Yield the request's body as it comes. Raises TooMuch and TimeoutError."""
        self.incoming.allow(REQUEST_BYTES_MAX, BODY_S)
        total = 0
        pieces = (
            self._chunks() if "transfer-encoding" in headers else self._known(int(headers.get("content-length", "0")))
        )
        for piece in pieces:
            total += len(piece)
            if total > REQUEST_BYTES_MAX:
                raise TooMuch
            yield piece

    def _known(self, length: int) -> Iterator[bytes]:
        if length > REQUEST_BYTES_MAX:
            raise TooMuch
        while length > 0 and (piece := self.rfile.read(min(length, PIECE_BYTES))):
            length -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        """https://www.rfc-editor.org/rfc/rfc9112#section-7.1"""
        while length := int(self.rfile.readline(1024).partition(b";")[0], 16):
            yield from self._known(length)
            self.rfile.readline(1024)
        while self.rfile.readline(PIECE_BYTES).strip():
            pass

    def _answer(self, response: httpx.Response) -> None:
        """Head and body as they come; of an error also its beginning, for the job's failure reason."""
        gateway = self.server.gateway
        self.connection.settimeout(READ_S)
        self.send_response(response.status_code)
        for name, value in response.headers.items():
            if PASSED_BACK.fullmatch(name.lower()) and not (gateway.key and gateway.key in value):
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._has_begun = True
        said = b""
        if response.is_success:
            gateway.judge(response.status_code, "")
        for piece in gateway.without_key(response.iter_bytes()):
            said = (said + piece)[:SAID_BYTES]
            if piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        if not response.is_success:
            gateway.judge(response.status_code, " ".join(said.decode(errors="replace").split()))
