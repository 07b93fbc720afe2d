"""Fields of the lines of JSON logs, by product, and the decoders that check them.

- Caddy: https://caddyserver.com/docs/caddyfile/directives/log and https://caddyserver.com/docs/logging
- Cloudflare Logpush: https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/
- Vercel log drains: https://vercel.com/docs/drains/reference/logs
- Netlify log drains: https://docs.netlify.com/manage/monitoring/log-drains/

Numbers may be in quotes. The structs are not tracked by the garbage collector, because none of them can be in a cycle.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

Time = int | float | str
Number = Any
"""Number of bytes or time, also in quotes. Any other value, such as a time with its unit, counts as not logged."""
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
SIZE_END = 10**15  # bytes from which a size counts as not logged
Header = list[str] | str | None
"""Value of a header, a list of its values, or None if the request has no such header."""
_FROM_CACHE = ("hit", "stale", "updating")
"""States of Cloudflare's cache with which it answered without asking the origin."""


class Logged(NamedTuple):
    """Fields of a log line that records a request. A text that is not logged is empty.

    `size` is the number of bytes of the response, `ms` its time in milliseconds, and `cache` the state of the cache.
    `country` is the code of a country, and `language` the Accept-Language header.
    """

    time: Time
    method: str
    target: str
    status: int
    referrer: str
    user_agent: str
    address: str
    accept: str = ""
    size: int | None = None
    ms: float | None = None
    cache: str = ""
    country: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """Decoders of the lines of a product's log, and the functions that select and convert the lines of requests.

    `line` decodes a line of any kind. `request` decodes a line that records a request, into a struct with all fields of
    the struct of `line`. `is_request` returns whether a line with this result of `kind` records a request. `logged`
    returns the fields of a decoded request. `request_id` returns the id of a decoded request, and is None if no two
    lines record the same request.
    """

    line: msgspec.json.Decoder[Any]
    request: msgspec.json.Decoder[Any]
    kind: Callable[[Any], object]
    is_request: Callable[[Any], bool]
    logged: Callable[[Any], Logged]
    request_id: Callable[[Any], str | None] | None = None


class _CaddyLine(msgspec.Struct, gc=False):
    """A line of any logger."""

    ts: Time
    level: str
    logger: str = ""


class _CaddyHeaders(msgspec.Struct, gc=False):
    user_agent: list[str] | str = msgspec.field(name="User-Agent", default="")
    referer: list[str] | str = msgspec.field(name="Referer", default="")
    accept: Header = msgspec.field(name="Accept", default=None)
    language: Header = msgspec.field(name="Accept-Language", default=None)


class _CaddyClient(msgspec.Struct, gc=False):
    """The client's request. `client_ip` is `remote_ip`, or the address that a trusted proxy forwards."""

    method: str
    uri: str
    headers: _CaddyHeaders
    remote_ip: str | None = None
    client_ip: str | None = None


class _CaddyRequest(_CaddyLine, gc=False, kw_only=True):
    request: _CaddyClient
    status: int
    size: Number = None
    duration: Number = None


def _is_access_logger(logger: str) -> bool:
    """Return whether a logger writes one line per request; `http.log.error` repeats requests of `http.log.access`."""
    return logger == "http.log.access" or logger.startswith("http.log.access.")


def _caddy(row: _CaddyRequest) -> Logged:
    client, headers = row.request, row.request.headers
    fields = client.method, client.uri, row.status, _first_value(headers.referer), _first_value(headers.user_agent)
    address = client.client_ip or client.remote_ip or ""
    answer = _size(row.size), _ms(row.duration, 1_000), "", "", _first_value(headers.language)
    return Logged(row.ts, *fields, address, _first_value(headers.accept), *answer)


class _CloudflareLine(msgspec.Struct, gc=False):
    """A line of any request: of a visitor, or a subrequest of a Worker that answers a visitor."""

    time: Time = msgspec.field(name="EdgeStartTimestamp")
    is_subrequest: bool = msgspec.field(name="WorkerSubrequest", default=False)


class _CloudflareHeaders(msgspec.Struct, gc=False):
    """Headers that the zone's rule for custom fields logs."""

    accept: Header = None
    language: Header = msgspec.field(name="accept-language", default=None)


class _CloudflareRequest(_CloudflareLine, gc=False, kw_only=True):
    method: str = msgspec.field(name="ClientRequestMethod")
    uri: str = msgspec.field(name="ClientRequestURI")
    status: int = msgspec.field(name="EdgeResponseStatus")
    user_agent: str | None = msgspec.field(name="ClientRequestUserAgent")
    referer: str | None = msgspec.field(name="ClientRequestReferer", default=None)
    address: str | None = msgspec.field(name="ClientIP", default=None)
    headers: _CloudflareHeaders | str | None = msgspec.field(name="RequestHeaders", default=None)
    size: Number = msgspec.field(name="EdgeResponseBytes", default=None)
    origin_ms: Number = msgspec.field(name="OriginResponseDurationMs", default=None)
    cache: str | None = msgspec.field(name="CacheCacheStatus", default=None)
    country: str | None = msgspec.field(name="ClientCountry", default=None)


def _cloudflare(row: _CloudflareRequest) -> Logged:
    """Return the fields of a request. The time 0 of an answer of the cache is none: no origin was asked."""
    headers = row.headers if isinstance(row.headers, _CloudflareHeaders) else _CloudflareHeaders()
    fields = row.method, row.uri, row.status, row.referer or "", row.user_agent or "", row.address or ""
    origin_ms = None if row.cache in _FROM_CACHE and _number(row.origin_ms) == 0 else _ms(row.origin_ms)
    answer = _size(row.size), origin_ms, row.cache or "", row.country or "", _first_value(headers.language)
    return Logged(row.time, *fields, _first_value(headers.accept), *answer)


class _VercelStatus(msgspec.Struct, gc=False, rename="camel"):
    status_code: int | None = None


class _VercelLine(msgspec.Struct, gc=False, rename="camel"):
    """A line of any source. Builds and functions have no `proxy`."""

    deployment_id: str
    source: str
    proxy: _VercelStatus | None = None


class _VercelProxy(msgspec.Struct, gc=False, rename="camel"):
    timestamp: Time
    method: str
    path: str
    user_agent: list[str] | str
    referer: str | None = None
    status_code: int | None = None
    client_ip: str | None = None
    response_byte_size: Number = None
    vercel_cache: str | None = None


class _VercelRequest(msgspec.Struct, gc=False, rename="camel"):
    deployment_id: str
    source: str
    proxy: _VercelProxy
    request_id: str | None = None
    status_code: int | None = None


_NO_VISITOR = -1
"""Status, in Vercel's logs, of a page that was rendered in the background."""


def _vercel(row: _VercelRequest) -> Logged:
    """Return the fields of a request. The status is the proxy's, or else the function's."""
    proxy = row.proxy
    status = (row.status_code if proxy.status_code is None else proxy.status_code) or 0
    user_agent = _first_value(proxy.user_agent)
    fields = proxy.method, proxy.path, status, proxy.referer or "", user_agent, proxy.client_ip or ""
    return Logged(proxy.timestamp, *fields, size=_size(proxy.response_byte_size), cache=proxy.vercel_cache or "")


class _NetlifyLine(msgspec.Struct, gc=False):
    timestamp: Time
    log_type: str = "traffic"


class _NetlifyRequest(_NetlifyLine, gc=False, kw_only=True):
    method: str
    path: str
    status_code: int
    user_agent: str | None
    referrer: str | None = None
    client_ip: str | None = None
    duration: Number = None
    country: str | None = None


def _netlify(row: _NetlifyRequest) -> Logged:
    fields = row.method, row.path, row.status_code, row.referrer or "", row.user_agent or "", row.client_ip or ""
    return Logged(row.timestamp, *fields, ms=_ms(row.duration), country=row.country or "")


def _size(size: Number) -> int | None:
    number = _number(size)
    return int(number) if number is not None and 0 <= number < SIZE_END else None


def _ms(time: Number, factor: int = 1) -> float | None:
    number = _number(time)
    return None if number is None else number * factor


def _number(value: Number) -> float | None:
    if value.__class__ is int or value.__class__ is float:
        return value
    return float(value) if value.__class__ is str and _NUMBER.fullmatch(value) else None


def _first_value(header: Header) -> str:
    """Return the first value of a header; empty without one."""
    return header if isinstance(header, str) else header[0] if header else ""


def _decoder(of: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(of, strict=False)


CADDY = Product(_decoder(_CaddyLine), _decoder(_CaddyRequest), attrgetter("logger"), _is_access_logger, _caddy)
CLOUDFLARE = Product(
    _decoder(_CloudflareLine),
    _decoder(_CloudflareRequest),
    attrgetter("is_subrequest"),
    lambda is_subrequest: not is_subrequest,
    _cloudflare,
)
VERCEL = Product(
    _decoder(_VercelLine),
    _decoder(_VercelRequest),
    lambda line: _NO_VISITOR if line.proxy is None else line.proxy.status_code,
    lambda status: status != _NO_VISITOR,
    _vercel,
    attrgetter("request_id"),
)
NETLIFY = Product(
    _decoder(_NetlifyLine),
    _decoder(_NetlifyRequest),
    attrgetter("log_type"),
    lambda log_type: log_type == "traffic",
    _netlify,
)
