"""Fields of the lines of JSON logs, by product, and the decoders that check them.

- Caddy: https://caddyserver.com/docs/caddyfile/directives/log and https://caddyserver.com/docs/logging
- Cloudflare Logpush: https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/
- Vercel log drains: https://vercel.com/docs/drains/reference/logs
- Netlify log drains: https://docs.netlify.com/manage/monitoring/log-drains/

Numbers may be in quotes. The structs are not tracked by the garbage collector, because none of them can be in a cycle.
"""

import re
from collections.abc import Callable, Iterable, Sequence
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


class RequestColumns(NamedTuple):
    """Fields of log lines that record requests, as columns. A text that is not logged is empty.

    `sizes` are the bytes of the responses, `times_ms` their times in milliseconds, and `caches` the states of
    the cache.
    """

    times: list[Time]
    methods: list[str]
    targets: list[str]
    statuses: list[int]
    referrers: list[str]
    user_agents: list[str]
    addresses: list[str]
    accepts: list[str]
    sizes: list[int | None]
    times_ms: list[float | None]
    caches: list[str]


@dataclass(frozen=True, slots=True)
class Product:
    """Decoders of the lines of a product's log, and the functions that select and convert the lines of requests.

    `line` decodes a line of any kind. `request` decodes a line that records a request, into a struct with all fields of
    the struct of `line`. `is_request` returns whether a line with this result of `kind` records a request. `columns`
    returns the fields of decoded requests. `request_id` returns the id of a decoded request, and is None if no two
    lines record the same request.
    """

    line: msgspec.json.Decoder[Any]
    request: msgspec.json.Decoder[Any]
    kind: Callable[[Any], object]
    is_request: Callable[[Any], bool]
    columns: Callable[[Sequence[Any]], RequestColumns]
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


def _caddy_columns(rows: Sequence[_CaddyRequest]) -> RequestColumns:
    clients = [row.request for row in rows]
    headers = [client.headers for client in clients]
    return RequestColumns(
        times=[row.ts for row in rows],
        methods=[client.method for client in clients],
        targets=[client.uri for client in clients],
        statuses=[row.status for row in rows],
        referrers=_first_values([each.referer for each in headers]),
        user_agents=_first_values([each.user_agent for each in headers]),
        addresses=[client.client_ip or client.remote_ip or "" for client in clients],
        accepts=_first_values([each.accept for each in headers]),
        sizes=_sizes([row.size for row in rows]),
        times_ms=_times_ms([row.duration for row in rows], 1_000),
        caches=[""] * len(rows),
    )


class _CloudflareLine(msgspec.Struct, gc=False):
    """A line of any request: of a visitor, or a subrequest of a Worker that answers a visitor."""

    time: Time = msgspec.field(name="EdgeStartTimestamp")
    is_subrequest: bool = msgspec.field(name="WorkerSubrequest", default=False)


class _CloudflareHeaders(msgspec.Struct, gc=False):
    """Headers that the zone's rule for custom fields logs."""

    accept: Header = None


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


def _cloudflare_columns(rows: Sequence[_CloudflareRequest]) -> RequestColumns:
    headers = [row.headers for row in rows]
    return RequestColumns(
        times=[row.time for row in rows],
        methods=[row.method for row in rows],
        targets=[row.uri for row in rows],
        statuses=[row.status for row in rows],
        referrers=[row.referer or "" for row in rows],
        user_agents=[row.user_agent or "" for row in rows],
        addresses=[row.address or "" for row in rows],
        accepts=_first_values([each.accept if isinstance(each, _CloudflareHeaders) else None for each in headers]),
        sizes=_sizes([row.size for row in rows]),
        times_ms=_times_ms([row.origin_ms for row in rows], 1),
        caches=[row.cache or "" for row in rows],
    )


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


def _vercel_columns(rows: Sequence[_VercelRequest]) -> RequestColumns:
    """Return the fields of requests. The status is that of the proxy, or of the function if the proxy has none."""
    proxies = [row.proxy for row in rows]
    return RequestColumns(
        times=[proxy.timestamp for proxy in proxies],
        methods=[proxy.method for proxy in proxies],
        targets=[proxy.path for proxy in proxies],
        statuses=[(row.status_code if row.proxy.status_code is None else row.proxy.status_code) or 0 for row in rows],
        referrers=[proxy.referer or "" for proxy in proxies],
        user_agents=_first_values([proxy.user_agent for proxy in proxies]),
        addresses=[proxy.client_ip or "" for proxy in proxies],
        accepts=[""] * len(rows),
        sizes=_sizes([proxy.response_byte_size for proxy in proxies]),
        times_ms=[None] * len(rows),
        caches=[proxy.vercel_cache or "" for proxy in proxies],
    )


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


def _netlify_columns(rows: Sequence[_NetlifyRequest]) -> RequestColumns:
    return RequestColumns(
        times=[row.timestamp for row in rows],
        methods=[row.method for row in rows],
        targets=[row.path for row in rows],
        statuses=[row.status_code for row in rows],
        referrers=[row.referrer or "" for row in rows],
        user_agents=[row.user_agent or "" for row in rows],
        addresses=[row.client_ip or "" for row in rows],
        accepts=[""] * len(rows),
        sizes=[None] * len(rows),
        times_ms=_times_ms([row.duration for row in rows], 1),
        caches=[""] * len(rows),
    )


def _sizes(sizes: Iterable[Number]) -> list[int | None]:
    numbers = map(_number, sizes)
    return [int(each) if each is not None and 0 <= each < SIZE_END else None for each in numbers]


def _times_ms(times: Iterable[Number], factor: int) -> list[float | None]:
    numbers = map(_number, times)
    return [None if each is None else each * factor for each in numbers]


def _number(value: Number) -> float | None:
    if value.__class__ is int or value.__class__ is float:
        return value
    return float(value) if value.__class__ is str and _NUMBER.fullmatch(value) else None


def _first_values(headers: Iterable[Header]) -> list[str]:
    """Return the first value of each header; empty without one."""
    return [each if each.__class__ is str else each[0] if each else "" for each in headers]


def _decoder(of: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(of, strict=False)


CADDY = Product(_decoder(_CaddyLine), _decoder(_CaddyRequest), attrgetter("logger"), _is_access_logger, _caddy_columns)
CLOUDFLARE = Product(
    _decoder(_CloudflareLine),
    _decoder(_CloudflareRequest),
    attrgetter("is_subrequest"),
    lambda is_subrequest: not is_subrequest,
    _cloudflare_columns,
)
VERCEL = Product(
    _decoder(_VercelLine),
    _decoder(_VercelRequest),
    lambda line: _NO_VISITOR if line.proxy is None else line.proxy.status_code,
    lambda status: status != _NO_VISITOR,
    _vercel_columns,
    attrgetter("request_id"),
)
NETLIFY = Product(
    _decoder(_NetlifyLine),
    _decoder(_NetlifyRequest),
    attrgetter("log_type"),
    lambda log_type: log_type == "traffic",
    _netlify_columns,
)
