"""Parsers of logs with one JSON object per line, as servers and edge networks write them.

- Caddy: https://caddyserver.com/docs/caddyfile/directives/log and https://caddyserver.com/docs/logging
- Cloudflare Logpush: https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/
- Vercel log drains: https://vercel.com/docs/drains/reference/logs
- Netlify log drains: https://docs.netlify.com/manage/monitoring/log-drains/

A line that is not UTF-8 is decoded as Latin-1, and a number may be in quotes. If a log has no user agent, all its lines
are invalid: without a user agent, people and bots cannot be distinguished.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec
from cachetools import FIFOCache

from ingest.errors import InvalidLine
from ingest.formats.fields import decode, storable, time_us
from ingest.formats.request import Request

VERCEL_REQUEST_IDS_MAX = 65_536
"""Maximum number of request ids that the parser of one Vercel log remembers."""

Time = int | float | str
Header = list[str] | str


class _Line(Protocol):
    """Fields of all lines of a product's log, which decide whether the line records a request."""

    def is_request(self) -> bool: ...


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Product(Generic[R]):
    """Decoders of a product's lines: of any line, and of a line that records a request."""

    line: msgspec.json.Decoder[_Line]
    request: msgspec.json.Decoder[R]


class _Caddy(msgspec.Struct, gc=False):
    """A line of any logger. `http.log.error` repeats requests of `http.log.access`."""

    ts: Time
    level: str
    logger: str = ""

    def is_request(self) -> bool:
        return self.logger == "http.log.access" or self.logger.startswith("http.log.access.")


class _CaddyHeaders(msgspec.Struct):
    user_agent: Header = msgspec.field(name="User-Agent", default="")
    referer: Header = msgspec.field(name="Referer", default="")


class _CaddyInnerRequest(msgspec.Struct):
    method: str
    uri: str
    headers: _CaddyHeaders


class _CaddyRequest(msgspec.Struct):
    ts: Time
    request: _CaddyInnerRequest
    status: int


class _Cloudflare(msgspec.Struct, gc=False):
    """A line of any request. A worker makes subrequests to answer a visitor's request."""

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
    """A line of any source. Builds and functions have no `proxy`. Status -1 is a page rendered in the background."""

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
    """Parse one line of Caddy's log; return None unless an access logger wrote it.

    Raises:
        InvalidLine: the line is not of Caddy, or its headers are filtered out.
    """
    fields = _request_fields(_CADDY, line)
    if fields is None:
        return None
    request, headers = fields.request, fields.request.headers
    return _request(fields.ts, request.method, request.uri, fields.status, headers.referer, headers.user_agent)


def parse_cloudflare(line: bytes) -> Request | None:
    """Parse one line of the dataset http_requests; return None for a subrequest.

    Raises:
        InvalidLine: the line is not of that dataset, or lacks a required field.
    """
    fields = _request_fields(_CLOUDFLARE, line)
    if fields is None:
        return None
    return _request(fields.time, fields.method, fields.uri, fields.status, fields.referer, fields.user_agent)


class VercelParser:
    """Parser of one Vercel log. Middleware and functions repeat a request in further lines: only the first one counts.

    The parser remembers the last VERCEL_REQUEST_IDS_MAX request ids.
    """

    def __init__(self) -> None:
        self._request_ids: FIFOCache[str, None] = FIFOCache(VERCEL_REQUEST_IDS_MAX)

    def __call__(self, line: bytes) -> Request | None:
        """Parse one line; return None if it records no request, or repeats one.

        Raises:
            InvalidLine: the line is not of a Vercel log drain.
        """
        fields = _request_fields(_VERCEL, line)
        if fields is None or self._is_repeated(fields.request_id):
            return None
        proxy = fields.proxy
        status = fields.status_code if proxy.status_code is None else proxy.status_code
        return _request(proxy.timestamp, proxy.method, proxy.path, status or 0, proxy.referer, proxy.user_agent)

    def _is_repeated(self, request_id: str | None) -> bool:
        if request_id is None:
            return False
        if request_id in self._request_ids:
            return True
        self._request_ids[request_id] = None
        return False


def parse_netlify(line: bytes) -> Request | None:
    """Parse one line of a Netlify log drain; return None if its log is not the traffic log.

    Raises:
        InvalidLine: the line is not of a Netlify log drain, or the drain omits personal data, such as the user agent.
    """
    fields = _request_fields(_NETLIFY, line)
    if fields is None:
        return None
    return _request(
        fields.timestamp, fields.method, fields.path, fields.status_code, fields.referrer, fields.user_agent
    )


def _request_fields(product: _Product[R], line: bytes) -> R | None:
    text = decode(line)
    return _decode(product.request, text) if _decode(product.line, text).is_request() else None


def _decode(decoder: msgspec.json.Decoder[R], text: str) -> R:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:  # RecursionError: ten thousand brackets in one line
        raise InvalidLine(f"not a line of this format: {error}") from None


def _request(
    time: Time, method: str, target: str, status: int, referrer: Header | None, user_agent: Header | None
) -> Request:
    return Request(time_us(time), storable(method), storable(target), status, _text(referrer), _text(user_agent))


def _text(header: Header | None) -> str:
    first = header if isinstance(header, str) else next(iter(header or ()), "")
    return storable(first)
