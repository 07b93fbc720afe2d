"""HTTP proxy on a Unix socket that adds the model key: the only way out of the sandbox.

The agent has the turn's token instead of the key. The gateway adds the real key to requests and redacts it in
responses, so the key never enters the sandbox. It forwards only model calls, follows no redirect and ignores the
environment (proxies, .netrc).
"""

import re
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from agent.sandbox.unix_server import serving

REQUEST_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of a request body, in bytes."""
REQUESTS_AT_ONCE = 16
"""Maximum number of concurrent requests to the model server."""
QUEUE_S = 600.0
"""Time that a request may wait for one of the REQUESTS_AT_ONCE to end, in seconds."""
CONNECT_S = 10
"""Timeout of a connection attempt, in seconds."""
READ_S = 600.0
"""Timeout of a response, in seconds: a model may need minutes for its first token."""
FAILING_S_MAX = 30.0
"""Seconds of failed requests after which the turn fails: some agents would retry until the time limit of the turn."""
ERROR_BYTES = 300
"""Maximum number of bytes of an error response that the job's failure reason quotes, from its beginning."""
KEY_REFUSED = (401, 403)
BUSY = 429

DROPPED_REQUEST_HEADERS = re.compile(
    r"host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect|accept-encoding"
    r"|cookie|authorization|.*api-key|forwarded|x-forwarded-.*"
)
RESPONSE_HEADERS = re.compile(
    r"content-type|retry-after(-ms)?|x-should-retry|(x-)?request-id|(x|anthropic)-ratelimit-.*"
)


REFUSALS_LOGGED_MAX = 20
"""Maximum number of different refused requests in the log of a turn."""
TARGET_CHARACTERS = 100
"""Maximum length of a refused request's target in the log."""


class RequestTooLarge(Exception):
    """The body of a request exceeds REQUEST_BYTES_MAX."""


@dataclass(slots=True)
class ModelCalls:
    """Allow-list of a turn, and the number of its requests.

    `allowed` has methods and paths, such as `POST /chat/completions`. `on_refusal` receives a line for the log.
    """

    allowed: Collection[str]
    count_max: int
    on_refusal: Callable[[str], None] = lambda text: None
    count: int = 0
    _refused: set[str] = field(default_factory=set)

    def refusal(self, method: str, target: str) -> str | None:
        """Return why a request is refused, and log the reason once; or count the request and return None.

        The path is compared without decoding, so that no other spelling of a path is equal to an allowed one.
        """
        if f"{method} {target.partition('?')[0]}" in self.allowed:
            self.count += 1
            return self.fault()
        request = ascii(f"{method[:10]} {target[:TARGET_CHARACTERS]}")[1:-1]
        reason = f"the gateway refused {request}: the agent may only send {', '.join(sorted(self.allowed))}"
        if reason not in self._refused and len(self._refused) < REFUSALS_LOGGED_MAX:
            self._refused.add(reason)
            self.on_refusal(reason)
        return reason

    def fault(self) -> str | None:
        """Return why the turn must stop, or None."""
        is_exceeded = self.count > self.count_max
        return f"it sent more than {self.count_max} requests to the model server in one turn" if is_exceeded else None


@dataclass(slots=True)
class Gateway:
    """ASGI app that listens at `socket_path` inside its `with` block.

    `key_header` is the name of the header for the key: `authorization` (as a Bearer token) or another, such as
    `x-api-key`. A request needs `token` as its key or as the first part of its path: without a sandbox, every user of
    the machine can connect. Only the thread of the server changes the state.
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
    _client: httpx.AsyncClient = field(init=False, repr=False)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "Gateway":
        timeout = httpx.Timeout(READ_S, connect=CONNECT_S, pool=QUEUE_S)
        limits = httpx.Limits(max_connections=REQUESTS_AT_ONCE, max_keepalive_connections=REQUESTS_AT_ONCE)
        trusted = ssl.create_default_context()
        self._client = httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False, verify=trusted)
        self._stack.enter_context(serving(self, self.socket_path, self._client.aclose))
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def has_failed(self) -> bool:
        """Return whether every request of the last `failing_s_max` seconds failed, or there were too many."""
        return self._has_failed or self.calls.fault() is not None

    def fault(self) -> str | None:
        """Return the current fault of the model server, or None."""
        fault = self.calls.fault() or self._fault
        if fault is None and self._unanswered:
            return f"the model server at {self.upstream} has received a request and not responded"
        return fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        """Return the response of the model server as a stream, or a refusal."""
        target = self._target(request)
        refusal = self.calls.refusal(request.method, target) if target else "the request lacks the token of the turn"
        try:
            if refusal is not None:
                async for _ in _body(request):  # a client may not read a response before it has sent the body
                    pass
                return _refusal(403, refusal)
            response = await self._send(request, f"{self.upstream.rstrip('/')}{target}")
        except RequestTooLarge:
            return _refusal(413, f"a request body is limited to {REQUEST_BYTES_MAX} bytes")
        except httpx.PoolTimeout:
            return _refusal(503, f"the limit is {REQUESTS_AT_ONCE} concurrent requests to the model server")
        except httpx.TransportError as error:
            self._set_unreachable(error)
            return _refusal(502, self.fault() or "the model server cannot be reached")
        passed = {
            name: value
            for name, value in response.headers.items()
            if RESPONSE_HEADERS.fullmatch(name.lower()) and not (self.key and self.key in value)
        }
        return StreamingResponse(
            self._content(response), response.status_code, passed, background=BackgroundTask(response.aclose)
        )

    def _target(self, request: Request) -> str | None:
        """Return the target of the request without the token; None if the request has no token."""
        path: str = request.scope["raw_path"].decode()
        query: str = request.scope["query_string"].decode()
        first, slash, rest = path.removeprefix("/").partition("/")
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        keys = [text.encode() for text in (first, bearer, request.headers.get("x-api-key", ""))]
        in_path, *in_headers = [secrets.compare_digest(text, self.token.encode()) for text in keys]
        if not in_path and not any(in_headers):
            return None
        return (slash + rest if in_path else path) + (f"?{query}" if query else "")

    async def _send(self, request: Request, url: str) -> httpx.Response:
        """Send a request with the key. Return the response as soon as its headers have arrived."""
        passed = {name: each for name, each in request.headers.items() if not DROPPED_REQUEST_HEADERS.fullmatch(name)}
        headers = passed | {"accept-encoding": "identity"}
        if "transfer-encoding" not in request.headers:
            headers["content-length"] = request.headers.get("content-length", "0")
        if self.key is not None:
            headers[self.key_header] = f"Bearer {self.key}" if self.key_header == "authorization" else self.key
        content, traced = _body(request), {"trace": self._count_unanswered}
        forwarded = self._client.build_request(request.method, url, headers=headers, content=content, extensions=traced)
        return await self._client.send(forwarded, stream=True)

    async def _count_unanswered(self, event: str, _: object) -> None:
        """Count the requests that were sent, and whose response has not begun."""
        if "receive_response_headers" in event:
            self._unanswered += 1 if event.endswith("started") else -1

    async def _content(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield the content without the key. Record the beginning of an error for the job's failure reason."""
        beginning = b""
        if response.is_success:
            self.record_response(response.status_code, "")
        try:
            async for chunk in self.redacted(response.aiter_bytes()):
                beginning = (beginning + chunk)[:ERROR_BYTES]
                yield chunk
        except httpx.TransportError as error:
            self._set_unreachable(error)
            raise
        if not response.is_success:
            self.record_response(response.status_code, " ".join(beginning.decode(errors="replace").split()))

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

    async def redacted(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks of a response with the key replaced by `***`.

        A possible beginning of the key at the end of a chunk is delayed until the next chunk.
        """
        key = (self.key or "").encode()
        delayed = b""
        async for chunk in chunks:
            text = (delayed + chunk).replace(key, b"***") if key else chunk
            end = len(text) - _prefix_length(key, text)
            delayed = text[end:]
            yield text[:end]
        yield delayed

    def _set_unreachable(self, error: httpx.TransportError) -> None:
        cause: BaseException = error  # the text of httpx is only "All connection attempts failed"
        while deeper := cause.__cause__ or cause.__context__:
            cause = deeper
        reason = str(cause) or type(error).__name__
        self._set_fault(f"the model server at {self.upstream} cannot be reached: {reason}", counts=True)

    def _set_fault(self, fault: str | None, *, counts: bool) -> None:
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


async def _body(request: Request) -> AsyncIterator[bytes]:
    """Yield the body in chunks. Raises RequestTooLarge above REQUEST_BYTES_MAX."""
    if int(request.headers.get("content-length", "0")) > REQUEST_BYTES_MAX:
        raise RequestTooLarge
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
        if total > REQUEST_BYTES_MAX:
            raise RequestTooLarge
        yield chunk


def _refusal(status: int, reason: str) -> Response:
    """Return an error in the JSON form of model servers, after which the connection is closed."""
    return JSONResponse({"error": {"message": reason}}, status, {"Connection": "close"})
