"""A JSON line is the request that a server or an edge network logged, or records no request, or is malformed."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidLine
from ingest.formats import json_products
from ingest.formats.json_lines import JsonParser
from ingest.formats.request import Parse, Request
from tests.rounds import rounds

NOON_S = 1_789_473_600  # 2026-09-15T12:00:00Z
NOON_US = NOON_S * 1_000_000
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
ASKED = Request(NOON_US, "GET", "/a?b=c", 200, "https://example.org/", FIREFOX, "2001:db8::1")

# https://caddyserver.com/docs/logging
CADDY: dict[str, Any] = {
    "level": "info",
    "ts": NOON_S,
    "logger": "http.log.access.log0",
    "msg": "handled request",
    "request": {
        "remote_ip": "2001:db8::1",
        "remote_port": "41342",
        "client_ip": "2001:db8::1",
        "proto": "HTTP/3.0",
        "method": "GET",
        "host": "example.com",
        "uri": "/a?b=c",
        "headers": {
            "User-Agent": [FIREFOX],
            "Referer": ["https://example.org/"],
            "Cookie": "REDACTED",
            "Accept-Encoding": ["gzip, deflate, br"],
        },
        "tls": {"resumed": False, "version": 772, "cipher_suite": 4865, "proto": "h3", "server_name": "example.com"},
    },
    "bytes_read": 0,
    "user_id": "",
    "duration": 0.000929675,
    "size": 10900,
    "status": 200,
    "resp_headers": {"Server": ["Caddy"], "Content-Type": ["text/html; charset=utf-8"]},
}
# https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/
CLOUDFLARE: dict[str, Any] = {
    "CacheCacheStatus": "dynamic",
    "ClientASN": 63949,
    "ClientIP": "2001:db8::1",
    "ClientRequestHost": "example.com",
    "ClientRequestMethod": "GET",
    "ClientRequestPath": "/a",
    "ClientRequestProtocol": "HTTP/2",
    "ClientRequestReferer": "https://example.org/",
    "ClientRequestURI": "/a?b=c",
    "ClientRequestUserAgent": FIREFOX,
    "Cookies": {},
    "EdgeEndTimestamp": "2026-09-15T12:00:01Z",
    "EdgeResponseContentType": "text/html",
    "EdgeResponseStatus": 200,
    "EdgeStartTimestamp": "2026-09-15T12:00:00Z",
    "RayID": "8ec7c1d9c8a5a96b",
    "WorkerSubrequest": False,
}
# https://vercel.com/docs/drains/reference/logs
VERCEL: dict[str, Any] = {
    "id": "1573817187330377061717300000",
    "deploymentId": "dpl_233NRGRjVZX1caZrXWtz5g1TAksD",
    "source": "static",
    "host": "example.vercel.app",
    "timestamp": NOON_S * 1_000 + 7,
    "projectId": "gdufoJxB6b9b1fEqr1jUtFkyavUU",
    "level": "info",
    "path": "/[a]",
    "requestId": "643af4e3-975a-4cc7-9e7a-1eda11539d90",
    "environment": "production",
    "statusCode": 200,
    "proxy": {
        "timestamp": NOON_S * 1_000,
        "method": "GET",
        "host": "example.com",
        "path": "/a?b=c",
        "userAgent": [FIREFOX],
        "referer": "https://example.org/",
        "region": "sfo1",
        "statusCode": 200,
        "clientIp": "2001:db8::1",
        "scheme": "https",
        "pathType": "prerender",
    },
}
# https://docs.netlify.com/manage/monitoring/log-drains/
NETLIFY: dict[str, Any] = {
    "account_id": "5b0",
    "client_ip": "2001:db8::1",
    "content_type": "text/html; charset=UTF-8",
    "country": "de",
    "deploy_id": "5b1",
    "domain": "example.com",
    "duration": 12,
    "log_type": "traffic",
    "method": "GET",
    "path": "/a?b=c",
    "referrer": "https://example.org/",
    "request_id": "01J",
    "site_id": "5b2",
    "status_code": 200,
    "timestamp": NOON_S * 1_000,
    "url": "https://example.com/a?b=c",
    "user_agent": FIREFOX,
}


def vercel(line: bytes) -> Request | None:
    """Parse one line of a new Vercel log drain."""
    return JsonParser(json_products.VERCEL)(line)


def of_request(parse: Parse) -> Parse:
    """Return a parser without the fields of the response (see tests/ingest/imports/prepared/test_requests.py) and the
    places (see test_places.py)."""

    def parse_request(line: bytes) -> Request | None:
        request = parse(line)
        return request and request._replace(bytes=None, ms=None, cache="", country="", language="")

    return parse_request


SAMPLES: dict[str, tuple[Parse, dict[str, Any]]] = {
    "caddy": (of_request(JsonParser(json_products.CADDY)), CADDY),
    "cloudflare": (of_request(JsonParser(json_products.CLOUDFLARE)), CLOUDFLARE),
    "vercel": (of_request(vercel), VERCEL),
    "netlify": (of_request(JsonParser(json_products.NETLIFY)), NETLIFY),
}
PATHS = {
    "caddy": ("ts", "request.method", "request.uri", "status", "request.headers.Referer", "request.headers.User-Agent"),
    "cloudflare": (
        "EdgeStartTimestamp", "ClientRequestMethod", "ClientRequestURI", "EdgeResponseStatus",
        "ClientRequestReferer", "ClientRequestUserAgent",
    ),
    "vercel": (
        "proxy.timestamp", "proxy.method", "proxy.path", "proxy.statusCode", "proxy.referer", "proxy.userAgent",
    ),
    "netlify": ("timestamp", "method", "path", "status_code", "referrer", "user_agent"),
}  # fmt: skip
"""Paths of the six fields of a Request in the line of each product."""
LISTED = {"caddy": (4, 5), "vercel": (5,)}
"""Fields of each product that are lists."""

products = pytest.mark.parametrize("product", list(SAMPLES))


def line(product: str, **changed: Any) -> bytes:
    """Return the line of a product with changes, by dotted path; Ellipsis removes a field."""
    fields = json.loads(json.dumps(SAMPLES[product][1]))
    for path, value in changed.items():
        *parents, name = path.split(".")
        parent = fields
        for key in parents:
            parent = parent[key]
        if value is ...:
            del parent[name]
        else:
            parent[name] = value
    return json.dumps(fields, ensure_ascii=False).encode()


def read(product: str, **changed: Any) -> Request | None:
    return SAMPLES[product][0](line(product, **changed))


@products
def test_line_has_the_request_that_the_product_logged(product: str) -> None:
    assert read(product) == ASKED
    assert SAMPLES[product][0](line(product) + b"\r\n") == ASKED
    assert SAMPLES[product][0](json.dumps(SAMPLES[product][1]).encode()) == ASKED


@products
@pytest.mark.parametrize(
    "time", [NOON_S, str(NOON_S), NOON_S * 1_000, NOON_S * 10**9, f"{NOON_S}.000", "2026-09-15T14:00:00+02:00"]
)
def test_time_may_be_in_any_unit(product: str, time: Any) -> None:
    assert read(product, **{PATHS[product][0]: time}) == ASKED


@pytest.mark.parametrize(
    ("written", "us"),
    [
        (1789473600.1234567, 123_457),
        ("2026/09/15 12:00:00.250", 250_000),
        ("2026-09-15T12:00:00.250Z", 250_000),
        ("15/Sep/2026:12:00:00 +0000", 0),
    ],
)
def test_time_of_caddy_may_be_in_any_of_its_formats(written: Any, us: int) -> None:
    assert read("caddy", ts=written) == ASKED._replace(ts_us=NOON_US + us)


@products
def test_status_may_be_a_string(product: str) -> None:
    assert read(product, **{PATHS[product][3]: "404"}) == ASKED._replace(status=404)


@products
def test_bytes_that_are_not_utf_8_are_latin_1(product: str) -> None:
    log_line = line(product, **{PATHS[product][2]: "/café"})
    parse = SAMPLES[product][0]
    assert parse(log_line) == parse(log_line.decode().encode("latin-1")) == ASKED._replace(target="/café")


@products
def test_line_without_a_user_agent_field_is_malformed_with_the_reason(product: str) -> None:
    left_out = {"caddy": "request.headers"}.get(product, PATHS[product][5])
    with pytest.raises(InvalidLine, match=left_out.rpartition(".")[2]):
        read(product, **{left_out: ...})


@pytest.mark.parametrize(
    ("product", "changed"),
    [
        ("caddy", {"request.headers": {}}),
        ("cloudflare", {"ClientRequestUserAgent": "", "ClientRequestReferer": ...}),
        ("cloudflare", {"ClientRequestUserAgent": None, "ClientRequestReferer": None}),
        ("vercel", {"proxy.userAgent": [], "proxy.referer": ...}),
        ("vercel", {"proxy.userAgent": "", "proxy.referer": None}),
        ("netlify", {"user_agent": "", "referrer": ""}),
        ("netlify", {"user_agent": None, "referrer": ...}),
    ],
)
def test_request_without_a_user_agent_or_referrer_has_empty_ones(product: str, changed: dict[str, Any]) -> None:
    assert read(product, **changed) == ASKED._replace(referrer="", user_agent="")


@pytest.mark.parametrize(
    ("product", "changed"),
    [
        ("caddy", {"logger": "http.log.error.log0"}),
        ("caddy", {"logger": "tls.obtain", "request": ..., "status": ...}),
        ("caddy", {"logger": ..., "request": ..., "status": ..., "msg": "using provided configuration"}),
        ("caddy", {"logger": "http.log.accessory"}),
        ("cloudflare", {"WorkerSubrequest": True}),
        ("vercel", {"source": "build", "proxy": ..., "statusCode": ..., "requestId": ..., "buildId": "bld_1"}),
        ("vercel", {"source": "lambda", "proxy": None, "message": "Adding customer to database...", "type": "stdout"}),
        ("vercel", {"proxy.statusCode": -1}),
        ("netlify", {"log_type": "function", "method": ..., "status_code": ..., "user_agent": ..., "message": "hi"}),
        ("netlify", {"log_type": "deploy"}),
        ("netlify", {"log_type": "waf"}),
    ],
)
def test_line_of_no_visitor_records_no_request(product: str, changed: dict[str, Any]) -> None:
    assert read(product, **changed) is None


def test_cloudflare_line_without_the_field_of_subrequests_is_of_a_visitor() -> None:
    assert read("cloudflare", WorkerSubrequest=...) == ASKED


@pytest.mark.parametrize(
    ("cache", "origin_ms", "expected"),
    [
        ("hit", 0, None),
        ("hit", "0", None),
        ("stale", 0, None),
        ("hit", 7, 7),
        ("miss", 0, 0),
        ("dynamic", 12, 12),
        (None, 0, 0),
    ],
)
def test_cloudflare_answer_from_the_cache_has_no_time_of_the_origin(
    cache: str | None, origin_ms: int | str, expected: int | None
) -> None:
    changed = {"CacheCacheStatus": cache, "OriginResponseDurationMs": origin_ms}
    request = JsonParser(json_products.CLOUDFLARE)(line("cloudflare", **changed))
    assert request is not None
    assert request.ms == expected


def test_vercel_request_in_several_lines_counts_once() -> None:
    parse = JsonParser(json_products.VERCEL)
    lines = [line("vercel", source="edge"), line("vercel", source="lambda"), line("vercel", requestId="other")]
    assert [parse(log_line) for log_line in lines] == [ASKED, None, ASKED]
    unnamed = line("vercel", requestId=...)
    assert [parse(unnamed), parse(unnamed)] == [ASKED, ASKED]


def test_vercel_parser_remembers_a_limited_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.formats.json_lines.REQUEST_IDS_MAX", 100)
    parse = JsonParser(json_products.VERCEL)
    for number in range(101):
        parse(line("vercel", requestId="first" if number == 0 else str(number)))
    assert parse(line("vercel", requestId="1")) is None
    assert parse(line("vercel", requestId="first")) == ASKED


def test_vercel_status_is_that_of_the_proxy_or_of_the_function() -> None:
    assert read("vercel", statusCode=500) == ASKED
    assert read("vercel", **{"proxy.statusCode": ..., "statusCode": 404}) == ASKED._replace(status=404)
    assert read("vercel", **{"proxy.statusCode": ..., "statusCode": ...}) == ASKED._replace(status=0)


@products
@pytest.mark.parametrize(
    "log_line",
    [
        b"", b"{}", b"[]", b"null", b'"a"', b"1", b"{", b'{"ts":1}',
        b'192.0.2.1 - - [15/Sep/2026:12:34:56 +0000] "GET /a HTTP/1.1" 200 1234 "-" "a"',
        b'{"level":"info","ts":1,"a":' + b"[" * 65_000, b'{"a":' + b"[" * 65_000,
    ],
)  # fmt: skip
def test_line_of_another_form_is_malformed(product: str, log_line: bytes) -> None:
    with pytest.raises(InvalidLine):
        SAMPLES[product][0](log_line)


@products
@pytest.mark.parametrize("other", list(SAMPLES))
def test_line_of_another_product_is_malformed(product: str, other: str) -> None:
    if other != product:
        with pytest.raises(InvalidLine):
            SAMPLES[product][0](line(other))


@products
def test_truncated_line_is_malformed(product: str) -> None:
    log_line = line(product)
    for end in range(1, len(log_line), 7):
        with pytest.raises(InvalidLine):
            SAMPLES[product][0](log_line[:end])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.long
@settings(max_examples=rounds(1_800))
@given(st.sampled_from(list(SAMPLES)), st.binary(max_size=60), st.integers(0, 5), values)
@example("caddy", b"\xff", 0, 10**5_000)
@example("caddy", b"\xff", 0, "\ud800")
def test_any_bytes_are_a_request_or_none_or_malformed(product: str, junk: bytes, index: int, value: Any) -> None:
    parse = SAMPLES[product][0]
    changed = json.loads(line(product))
    *parents, name = PATHS[product][index].split(".")
    parent = changed
    for key in parents:
        parent = parent[key]
    parent[name] = "@@"
    log_line = json.dumps(changed).encode().replace(b'"@@"', _dumped(value))
    for each in (junk, log_line):
        with suppress(InvalidLine):
            parse(each)


def _dumped(value: Any) -> bytes:
    return b"9" * 5_000 if isinstance(value, int) and abs(value) > 10**1_000 else json.dumps(value).encode()


texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=30)


@pytest.mark.long
@settings(max_examples=rounds(1_800))
@given(
    st.sampled_from(list(SAMPLES)),
    st.integers(150_000_000, 4_102_444_800),
    st.sampled_from(["GET", "POST", "HEAD"]),
    texts,
    st.integers(100, 599),
    texts,
    texts,
)
def test_values_logged_by_a_product_are_parsed_unchanged(
    product: str, second: int, method: str, target: str, status: int, referrer: str, user_agent: str
) -> None:
    written: list[Any] = [second, method, target, status, referrer, user_agent]
    for index in LISTED.get(product, ()):
        written[index] = [written[index]]
    assert read(product, **dict(zip(PATHS[product], written, strict=True))) == Request(
        second * 1_000_000, method, target, status, referrer, user_agent, "2001:db8::1"
    )
