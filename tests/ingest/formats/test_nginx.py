"""Lines of any log_format are parsed as nginx wrote them; a log_format without a required variable is refused."""

import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidFormat, InvalidLine
from ingest.formats.nginx import compile_format
from ingest.formats.request import Request
from tests.rounds import rounds

NOON_US = 1_789_473_600_000_000  # 2026-09-15T12:00:00Z
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
ASKED = Request(NOON_US, "GET", "/a?b=c", 200, "https://example.org/", FIREFOX)  # without an address

# Text of `combined`, and its directive: https://nginx.org/en/docs/http/ngx_http_log_module.html
COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
DIRECTIVE = """log_format compression '$remote_addr - $remote_user [$time_local] '
                       '"$request" $status $bytes_sent '
                       '"$http_referer" "$http_user_agent" "$gzip_ratio"';"""
JSON = """log_format json escape=json '{'
  '"time": "$time_iso8601", "remote_addr": "$remote_addr", "method": "$request_method",'
  '"uri": "$request_uri", "status": $status, "size": "$body_bytes_sent",'
  '"referer": "$http_referer", "agent": "$http_user_agent", "upstream": "$upstream_response_time"'
'}';"""
JSON_LINE = (
    b'{"time": "2026-09-15T14:00:00+02:00", "remote_addr": "2001:db8::1", "method": "GET",'
    b'"uri": "/a?b=c", "status": 200, "size": "1234",'
    b'"referer": "https://example.org/", "agent": "' + FIREFOX.encode() + b'", "upstream": ""}'
)
# https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/log-format/
INGRESS = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" '
    "$request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr "
    "$upstream_response_length $upstream_response_time $upstream_status $req_id"
)


def tail(referrer: bytes = b"https://example.org/", user_agent: bytes = FIREFOX.encode()) -> bytes:
    return b'"%s" "%s"' % (referrer, user_agent)


@pytest.mark.parametrize(
    ("log_format", "line"),
    [
        (COMBINED, b'192.0.2.1 - - [15/Sep/2026:12:00:00 +0000] "GET /a?b=c HTTP/1.1" 200 0 ' + tail()),
        (COMBINED, b'::1 - Ana Maria [15/Sep/2026:17:30:00 +0530] "GET /a?b=c HTTP/2.0" 200 0 ' + tail() + b"\r\n"),
        (DIRECTIVE, b'::1 - - [15/Sep/2026:12:00:00 +0000] "GET /a?b=c HTTP/3.0" 200 9 ' + tail() + b' "-"\n'),
        (JSON, JSON_LINE),
        (
            INGRESS,
            b'192.0.2.1 - - [15/Sep/2026:12:00:00 +0000] "GET /a?b=c HTTP/1.1" 200 12 ' + tail() + b" 512 0.003 "
            b"[default-web-80] [] 10.0.0.7:8080, 10.0.0.8:8080 0, 12 0.001, 0.002 502, 200 0a1b2c",
        ),
        (
            "$msec|$request_method|$uri$is_args$args|$status|$http_user_agent|$http_referer",
            b"1789473600.000|GET|/a?b=c|200|" + FIREFOX.encode() + b"|https://example.org/",
        ),
        (
            "$msec $status $request_method ${uri}?x $args '$http_referer' \"$http_user_agent\"",
            b"1789473600.000 200 GET /a?x b=c 'https://example.org/' \"" + FIREFOX.encode() + b'"',
        ),
        (
            '$host "$http_user_agent" "$http_user_agent" $time_iso8601 $status $status "$request" $http_referer',
            b'"%s" "%s" 2026-09-15T12:00:00Z 200 200 "GET /a?b=c HTTP/1.1" https://example.org/'.replace(b'"', b' "', 1)
            % (FIREFOX.encode(), FIREFOX.encode()),
        ),
        (
            "$time_local $msec $request_method $request_uri $status $http_referer $http_user_agent",
            b"15/Sep/2026:11:59:59 +0000 1789473600.000 GET /a?b=c 200 https://example.org/ " + FIREFOX.encode(),
        ),
    ],
)
def test_line_has_the_request_of_its_log_format(log_format: str, line: bytes) -> None:
    request = compile_format(log_format)(line)
    assert request is not None
    assert request._replace(address="", bytes=None, ms=None) == ASKED
    assert ("$remote_addr" in log_format) == (request.address in {"192.0.2.1", "::1", "2001:db8::1"})


def parsed(line: bytes, log_format: str = '$msec "$request" $status "$http_referer" "$http_user_agent"') -> Request:
    request = compile_format(log_format)(line)
    assert request is not None
    return request


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"a \x22quoted\x22", 'a "quoted"'),  # escape=default
        (rb"caf\xC3\xA9", "café"),
        (rb"\x5Cx22", r"\x22"),
        (rb"a \"quoted\"", 'a "quoted"'),  # escape=json
        (rb"\\x22", r"\x22"),
        (rb"a\u0001b\nc\td", "a�b�c�d"),
        (rb"a\/b", "a/b"),
        ("café".encode(), "café"),
        ("café".encode("latin-1"), "café"),
        (b"-", ""),
        (b"", ""),
        (b"--", "--"),
        (rb"\ud800", "?"),
    ],
)
def test_default_and_json_escapes_are_undone(written: bytes, read: str) -> None:
    request = parsed(b'1789473600.000 "GET /a HTTP/1.1" 200 ' + tail(written, written))
    assert (request.referrer, request.user_agent) == (read, read)


def test_decoded_uri_is_a_path_with_any_characters() -> None:
    log_format = '$msec $request_method "$uri" $status "$http_user_agent"'
    assert parsed(b'1789473600.000 GET "/100%?#" 200 "x"', log_format).target == "/100%25%3F%23"


@pytest.mark.parametrize(
    "line",
    [
        b"", b"-", JSON_LINE, b'1789473600.000 "GET /a HTTP/1.1" 200 "-" "x',
        b'1789473600.000 "GET /a HTTP/1.1" 200 "-" "a"b"', b'1789473600.000 "GET /a HTTP/1.1" 200 "-" "x" 1',
        b'1789473600.000 "GET /a HTTP/1.1" - "-" "x"', b'yesterday "GET /a HTTP/1.1" 200 "-" "x"',
        b'99/Sep/2026:12:00:00 +0000 "-" 408 "-" "x"',
    ],
)  # fmt: skip
def test_line_of_another_form_is_malformed(line: bytes) -> None:
    with pytest.raises(InvalidLine):
        parsed(line)


@pytest.mark.parametrize("request_", [b"", b"-", rb"\x16\x03\x01", b"GET /a", b"SSH-2.0-Go"])
def test_line_whose_request_is_not_http_records_no_request(request_: bytes) -> None:
    parse = compile_format('$time_local "$request" $status "$http_referer" "$http_user_agent"')
    assert parse(b'15/Sep/2026:12:00:00 +0000 "%s" 400 "-" "x"' % request_) is None
    with pytest.raises(InvalidLine):
        parse(b'31/Sep/2026:12:00:00 +0000 "%s" 400 "-" "x"' % request_)


@pytest.mark.parametrize(
    ("log_format", "missing"),
    [
        ("$remote_addr", ["a time (add $time_iso8601", "a request (add $request,", "a status", "add $http_user_agent"]),
        ("$time_local $request $status", ["add $http_user_agent"]),
        ("$request $status $http_user_agent", ["a time"]),
        ("$msec $status $http_user_agent $request_method", ["a request"]),
        ("$msec $status $http_user_agent $request_uri", ["a request"]),
        ("$msec $request $http_user_agent", ["a status"]),
        ("", ["a time", "a request", "a status", "a user agent"]),
    ],
)
def test_log_format_without_a_required_variable_is_refused_with_its_name(log_format: str, missing: list[str]) -> None:
    with pytest.raises(InvalidFormat) as error:
        compile_format(log_format)
    assert all(part in str(error.value) for part in missing)
    assert str(error.value).count("(add") == len(missing)


@pytest.mark.parametrize(
    "log_format", [COMBINED, INGRESS, JSON, " ".join(f"$a{n}" for n in range(40)) + " " + COMBINED]
)
@pytest.mark.parametrize(
    "line",
    [
        b'" "' * 21_845, b" [] " * 16_384, b"\\" * 65_536, b" " * 65_536,
        b'1 - - [15/Sep/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 0 ' * 1_100,
        b'{"time": "2026-09-15T14:00:00+02:00", "remote_addr": "' + b'", "method": "' * 4_600,
    ],
    ids=["quotes", "brackets", "backslashes", "spaces", "lines", "keys"],
)  # fmt: skip
def test_time_of_a_hostile_line_grows_with_its_length(log_format: str, line: bytes) -> None:
    """Parse a line and an eighth of it: a parser that begins again at each character takes 64 times as long."""
    parse = compile_format(log_format)

    def seconds(part: bytes) -> float:
        started = time.process_time()
        with suppress(InvalidLine):
            parse(part)
        return time.process_time() - started

    whole, eighth = (min(seconds(line[:length]) for _ in range(3)) for length in (65_536, 8_192))
    assert whole < 32 * max(eighth, 0.000_1)


junk = st.binary(max_size=60) | st.lists(
    st.sampled_from(
        [b'"', b"\\", b" ", b"[", b"] ", b"200", b"1789473600.000", b"GET / HTTP/1.1", b"\\u12", b"\xff", b"{"]
    )
).map(b"".join)


@pytest.mark.long
@settings(max_examples=rounds(1_800))
@given(junk)
def test_any_bytes_are_a_request_or_malformed(line: bytes) -> None:
    for log_format in (
        COMBINED,
        JSON,
        '$msec "$request" $status "$http_user_agent"',
        "$msec$request$status$http_user_agent",
    ):
        with suppress(InvalidLine):
            compile_format(log_format)(line)


texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=30)
targets = st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), max_size=30).map("/{}".format)


@pytest.mark.parametrize(
    ("variable", "ms"), [("request_time", 1_500_000), ("request_time_ms", 1_500), ("request_time_us", 1.5)]
)
def test_time_of_the_response_has_the_unit_of_its_variable(variable: str, ms: float) -> None:
    line = b'192.0.2.1 - - [15/Sep/2026:12:00:00 +0000] "GET /a?b=c HTTP/1.1" 200 0 ' + tail() + b" 1500"
    request = compile_format(f"{COMBINED} ${variable}")(line)
    assert request is not None
    assert request.ms == ms


def default_escaped(text: str) -> bytes:
    """Return the text with quotes, backslashes, and bytes below 32 and above 126 as \\xXX.

    Source: https://nginx.org/en/docs/http/ngx_http_log_module.html
    """
    escaped = b"".join(b"\\x%02X" % b if b in b'"\\' or b < 32 or b > 126 else bytes([b]) for b in text.encode())
    return escaped or b"-"


def json_escaped(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace('"', '\\"').encode()


@pytest.mark.long
@settings(max_examples=rounds(1_200))
@given(st.integers(0, 4_102_444_800).map(lambda s: datetime.fromtimestamp(s, UTC)), targets, texts, texts)
def test_values_escaped_by_nginx_are_unescaped(instant: datetime, target: str, referrer: str, user_agent: str) -> None:
    asked = Request(
        int(instant.timestamp()) * 1_000_000,
        "GET",
        target,
        200,
        *("" if t == "-" else t for t in (referrer, user_agent)),
        "192.0.2.1",
    )
    plain = b'192.0.2.1 - - [%s] "GET %s HTTP/1.1" 200 0 "%s" "%s"' % (
        instant.strftime("%d/%b/%Y:%H:%M:%S +0000").encode(),
        default_escaped(target),
        default_escaped(referrer),
        default_escaped(user_agent),
    )
    as_json = (
        b'{"time": "%s", "remote_addr": "192.0.2.1", "method": "GET","uri": "%s", "status": 200, "size": "1",'
        b'"referer": "%s", "agent": "%s", "upstream": "0.1"}'
        % (instant.isoformat().encode(), *map(json_escaped, (target, referrer, user_agent)))
    )
    for log_format, logged in ((COMBINED, plain), (JSON, as_json)):
        request = compile_format(log_format)(logged)
        assert request is not None
        assert request._replace(bytes=None, ms=None) == asked
