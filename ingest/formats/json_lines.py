"""A line of a log that is one JSON object, as a server or an edge writes it, into a request.

- Caddy: https://caddyserver.com/docs/caddyfile/directives/log and https://caddyserver.com/docs/logging
- Cloudflare Logpush: https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/
- Vercel log drains: https://vercel.com/docs/drains/reference/logs
- Netlify log drains: https://docs.netlify.com/manage/monitoring/log-drains/

Bytes that are not UTF-8 are read as Latin-1, and a number may be in quotes. A log that leaves the user agent out of its
fields has no line that can be read: without it nothing tells people from bots.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from ingest.errors import InvalidLine
from ingest.formats.fields import decoded, shown, time_us
from ingest.formats.request import Request

VERCEL_REQUESTS_KEPT = 65_536

Time = int | float | str
Header = list[str] | str


class _Line(Protocol):
    """What every line of a product's log has, be it of a request or not."""

    def is_request(self) -> bool: ...


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Product(Generic[R]):
    line: msgspec.json.Decoder[_Line]
    request: msgspec.json.Decoder[R]


class _Caddy(msgspec.Struct, gc=False):
    """`http.log.error` tells again of requests that `http.log.access` tells of."""

    ts: Time
    level: str
    logger: str = ""

    def is_request(self) -> bool:
        return self.logger == "http.log.access" or self.logger.startswith("http.log.access.")


class _CaddyHeaders(msgspec.Struct):
    user_agent: Header = msgspec.field(name="User-Agent", default="")
    referer: Header = msgspec.field(name="Referer", default="")


class _CaddyAsked(msgspec.Struct):
    method: str
    uri: str
    headers: _CaddyHeaders


class _CaddyRequest(msgspec.Struct):
    ts: Time
    request: _CaddyAsked
    status: int


class _Cloudflare(msgspec.Struct, gc=False):
    """A worker's subrequest is a part of the answer to a visitor's request."""

    time: Time = msgspec.field(name="EdgeStartTimestamp")
    is_subrequest: bool = msgspec.field(name="WorkerSubrequest", default=False)

    def is_request(self) -> bool:
        return not self.is_subrequest


class _CloudflareRequest(msgspec.Struct, gc=False):
    time: Time = msgspec.field(name="EdgeStartTimestamp")
    method: str = msgspec.field(name="ClientRequestMethod")
    uri: str = msgspec.field(name="ClientRequestURI")
    status: int = msgspec.field(name="EdgeResponseStatus")
    user_agent: str | None = msgspec.field(name="ClientRequestUserAgent")
    referer: str | None = msgspec.field(name="ClientRequestReferer", default=None)


class _VercelStatus(msgspec.Struct, gc=False, rename="camel"):
    status_code: int | None = None


class _Vercel(msgspec.Struct, gc=False, rename="camel"):
    """What has no proxy is a build's or a function's own; a status of -1 is a page made anew in the background."""

    deployment_id: str
    source: str
    proxy: _VercelStatus | None = None

    def is_request(self) -> bool:
        return self.proxy is not None and self.proxy.status_code != -1


class _VercelProxy(msgspec.Struct, rename="camel"):
    timestamp: Time
    method: str
    path: str
    user_agent: Header
    referer: str | None = None
    status_code: int | None = None


class _VercelRequest(msgspec.Struct, rename="camel"):
    proxy: _VercelProxy
    request_id: str | None = None
    status_code: int | None = None


class _Netlify(msgspec.Struct, gc=False):
    timestamp: Time
    log_type: str = "traffic"

    def is_request(self) -> bool:
        return self.log_type == "traffic"


class _NetlifyRequest(msgspec.Struct, gc=False):
    timestamp: Time
    method: str
    path: str
    status_code: int
    user_agent: str | None
    referrer: str | None = None


def _decoder(of: type[R]) -> msgspec.json.Decoder[R]:
    return msgspec.json.Decoder(of, strict=False)


_CADDY = _Product(_decoder(_Caddy), _decoder(_CaddyRequest))
_CLOUDFLARE = _Product(_decoder(_Cloudflare), _decoder(_CloudflareRequest))
_VERCEL = _Product(_decoder(_Vercel), _decoder(_VercelRequest))
_NETLIFY = _Product(_decoder(_Netlify), _decoder(_NetlifyRequest))


def parse_caddy(line: bytes) -> Request | None:
    """Read one line of Caddy's log: None of what another logger than an access logger wrote.

    Raises:
        InvalidLine: it is not of Caddy, or its headers are filtered out.
    """
    said = _said(_CADDY, line)
    if said is None:
        return None
    headers = said.request.headers
    return _request(said.ts, said.request.method, said.request.uri, said.status, headers.referer, headers.user_agent)


def parse_cloudflare(line: bytes) -> Request | None:
    """Read one line of the dataset http_requests: None of a subrequest.

    Raises:
        InvalidLine: it is not of that dataset, or lacks a field of those that are needed.
    """
    said = _said(_CLOUDFLARE, line)
    if said is None:
        return None
    return _request(said.time, said.method, said.uri, said.status, said.referer, said.user_agent)


class VercelParser:
    """Reads a drain line by line. Middleware and functions write further lines of a request: the first one counts.

    The last VERCEL_REQUESTS_KEPT ids of requests are remembered.
    """

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def __call__(self, line: bytes) -> Request | None:
        """Read one line: None of what tells of no request, or of one that another line told of.

        Raises:
            InvalidLine: it is not of a Vercel drain.
        """
        said = _said(_VERCEL, line)
        if said is None or self._is_told(said.request_id):
            return None
        asked = said.proxy
        status = said.status_code if asked.status_code is None else asked.status_code
        return _request(asked.timestamp, asked.method, asked.path, status or 0, asked.referer, asked.user_agent)

    def _is_told(self, request_id: str | None) -> bool:
        if request_id is None:
            return False
        if request_id in self._seen:
            return True
        self._seen[request_id] = None
        if len(self._seen) > VERCEL_REQUESTS_KEPT:
            del self._seen[next(iter(self._seen))]
        return False


def parse_netlify(line: bytes) -> Request | None:
    """Read one line of a Netlify drain: None of other logs than traffic.

    Raises:
        InvalidLine: it is not of a Netlify drain, or personal data are left out of it, and so the user agent.
    """
    said = _said(_NETLIFY, line)
    if said is None:
        return None
    return _request(said.timestamp, said.method, said.path, said.status_code, said.referrer, said.user_agent)


def _said(product: _Product[R], line: bytes) -> R | None:
    text = decoded(line)
    return _read(product.request, text) if _read(product.line, text).is_request() else None


def _read(decoder: msgspec.json.Decoder[R], text: str) -> R:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:  # the second of a line of ten thousand brackets
        raise InvalidLine(f"not a line of this format: {error}") from None


def _request(  # the six of a Request, as they were written
    time: Time, method: str, target: str, status: int, referrer: Header | None, user_agent: Header | None
) -> Request:
    return Request(time_us(time), shown(method), shown(target), status, _text(referrer), _text(user_agent))


def _text(said: Header | None) -> str:
    first = said if isinstance(said, str) else next(iter(said or ()), "")
    return shown(first)
