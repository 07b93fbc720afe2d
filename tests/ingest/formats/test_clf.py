"""A line with quoted fields is the request that the server logged, or is malformed; no bytes break a parser."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidLine
from ingest.formats.clf import parse, parse_common, parse_vhost_combined
from ingest.formats.page_filter import page_view
from ingest.formats.request import Request
from ingest.hits.evidence import Evidence
from ingest.hits.hit import EPOCH, Hit
from tests.rounds import rounds

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
TS = datetime(2026, 9, 15, 12, 34, 56, tzinfo=UTC)


def microseconds(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)


def line(
    request: bytes = b"GET /a HTTP/1.1",
    *,
    host: bytes = b"192.0.2.1",
    user: bytes = b"-",
    time: bytes = b"15/Sep/2026:12:34:56 +0000",
    status: bytes = b"200",
    size: bytes = b"1234",
    referrer: bytes = b"-",
    user_agent: bytes = FIREFOX.encode(),
) -> bytes:
    return b'%s - %s [%s] "%s" %s %s "%s" "%s"' % (host, user, time, request, status, size, referrer, user_agent)


def parsed(log_line: bytes) -> Request:
    request = parse(log_line)
    assert request is not None
    return request


def test_line_has_the_request_that_the_server_logged() -> None:
    log_line = line(b"GET /a/?utm_source=news HTTP/2.0", referrer=b"https://example.org/?q=1", status=b"304", size=b"-")
    request = Request(
        microseconds(TS), "GET", "/a/?utm_source=news", 304, "https://example.org/?q=1", FIREFOX, "192.0.2.1", bytes=0
    )
    assert parse(log_line) == request
    assert page_view(request) == Hit(
        path="/a",
        ts_us=microseconds(TS),
        user_agent=FIREFOX,
        referrer="https://example.org/?q=1",
        parameters={"utm_source": "news"},
        format=None,
        status=304,
        event_id=None,
        evidence=Evidence(address="192.0.2.1"),
    )


def test_dash_is_an_empty_value() -> None:
    request = parsed(line(referrer=b"-", user_agent=b"-", size=b"-"))
    assert (request.referrer, request.user_agent) == ("", "")
    hit = page_view(request)
    assert isinstance(hit, Hit)
    assert (hit.referrer, hit.user_agent) == (None, "")


# Forms of lines


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r"])
def test_line_end_is_ignored(end: bytes) -> None:
    assert parsed(line() + end).user_agent == FIREFOX


@pytest.mark.parametrize(
    "log_line",
    [
        line(host=b"2001:db8::1"), line(host=b"::ffff:192.0.2.1"), line(host=b"client.example.com"), line(host=b"-"),
        line(user=b"ana"), line(user=b"Ana Maria"), line(size=b"0"), line(size=b"99999999999"),
        line(b"GET /a HTTP/3"), line(b"GET /a HTTP/1.0"), line() + b' "192.0.2.7" 0.003', line() + b" -",
    ],
)  # fmt: skip
def test_line_of_combined_format_is_parsed_with_any_other_fields(log_line: bytes) -> None:
    request = parsed(log_line)
    assert (request.target, request.user_agent, request.ts_us) == ("/a", FIREFOX, microseconds(TS))


@pytest.mark.parametrize(
    "log_line",
    [
        b"", b" ", b"\n", b"-", line()[:-1], line()[: len(line()) // 2], line()[20:], line() + b"x", line() + line(),
        b'192.0.2.1 - - [15/Sep/2026:12:34:56 +0000] "GET /a HTTP/1.1" 200 1234', line(status=b"20"),
        line(status=b"2000"), line(status=b"-"), line(size=b""), line(size=b"-1"), line(b"-", status=b"20"),
        line(b"-", time=b"yesterday"), line(referrer=b'"'), line(user_agent=b'a"b'), line(user_agent=b"a\\"),
        b"2026/09/15 12:34:56 [error] 7#7: *1 open() failed", b"\0" * 100,
    ],
)  # fmt: skip
def test_line_of_another_form_is_malformed(log_line: bytes) -> None:
    with pytest.raises(InvalidLine):
        parse(log_line)


@pytest.mark.parametrize(
    "request_",
    [
        b"", b"-", b"GET", b"GET /a", b"GET  HTTP/1.1", b"GET /a b HTTP/1.1", b"GET /a HTTP/1.1 x",
        b"GET /a http/1.1", rb"\x16\x03\x01", b"\x16\x03\x01", b"SSH-2.0-OpenSSH_9.9",
    ],
)  # fmt: skip
def test_line_whose_request_is_not_http_records_no_request(request_: bytes) -> None:
    for log_line in (line(request_), line(request_, status=b"400", size=b"-", user_agent=b"-")):
        assert parse(log_line) is None
    assert parse_common(common(request=request_)) is None
    assert parse_vhost_combined(vhost(request=request_)) is None


# Times


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        (b"15/Sep/2026:12:34:56 +0000", TS),
        (b"15/Sep/2026:12:34:56 -0000", TS),
        (b"15/Sep/2026:14:34:56 +0200", TS),
        (b"15/Sep/2026:05:34:56 -0700", TS),
        (b"15/Sep/2026:18:04:56 +0530", TS),
        (b"15/Sep/2026:03:04:56 -0930", TS),
        (b"16/Sep/2026:02:34:56 +1400", TS),
        (b"01/Jan/2027:00:59:59 +0100", datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"31/Dec/2026:16:00:00 -0800", datetime(2027, 1, 1, tzinfo=UTC)),
        (b"29/Feb/2028:00:00:00 +0000", datetime(2028, 2, 29, tzinfo=UTC)),
        (b"31/Dec/1969:23:59:59 +0000", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"31/Dec/9999:23:59:59 +0000", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (b"01/Jan/0001:00:00:00 +0000", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_time_is_parsed_in_its_zone(written: bytes, instant: datetime) -> None:
    assert parsed(line(time=written)).ts_us == microseconds(instant)


@pytest.mark.parametrize(
    "written",
    [
        b"32/Sep/2026:12:34:56 +0000", b"31/Sep/2026:12:34:56 +0000", b"29/Feb/2026:12:34:56 +0000",
        b"00/Sep/2026:12:34:56 +0000", b"15/Sep/0000:12:34:56 +0000", b"15/Sep/2026:24:00:00 +0000",
        b"15/Sep/2026:12:60:00 +0000", b"15/Sep/2026:12:34:56 +2400", b"15/Sep/2026:12:34:56 +9999",
        b"01/Jan/0001:00:00:00 +0001", b"31/Dec/9999:23:59:59 -0001", b"15/Sept/2026:12:34:56 +0000",
        b"15/sep/2026:12:34:56 +0000", b"15/Xyz/2026:12:34:56 +0000", b"15/09/2026:12:34:56 +0000",
        b"15/Sep/2026:12:34:56", b"15/Sep/2026:12:34:56 UTC", b"2026-09-15T12:34:56+00:00",
        "\uff11\uff15/Sep/2026:12:34:56 +0000".encode(), b"\xb9\xb2/Sep/2026:12:34:56 +0000", b"",
    ],
)  # fmt: skip
def test_time_that_does_not_exist_is_malformed(written: bytes) -> None:
    with pytest.raises(InvalidLine):
        parse(line(time=written))


months = dict(enumerate(("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec").split(), start=1))
zones = st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59)).map(
    lambda offset: timedelta(minutes=offset // timedelta(minutes=1))
)


@settings(max_examples=rounds(1_800))
@given(st.datetimes(timezones=st.just(UTC)), zones)
def test_any_time_is_parsed_to_the_second(utc: datetime, offset: timedelta) -> None:
    assume(1 < utc.year < 9999)
    local, minutes = utc + offset, abs(offset) // timedelta(minutes=1)
    day = f"{local.day:02}/{months[local.month]}/{local.year:04}"
    zone = f"{'-' if offset < timedelta() else '+'}{minutes // 60:02}{minutes % 60:02}"
    written = f"{day}:{local:%H:%M:%S} {zone}"
    assert parsed(line(time=written.encode())).ts_us == microseconds(utc.replace(microsecond=0))


# Escapes and encodings


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"Mozilla \"quoted\"", 'Mozilla "quoted"'),  # Apache
        (rb"Mozilla \x22quoted\x22", 'Mozilla "quoted"'),  # nginx
        (rb"ends in \\", "ends in \\"),
        (rb"ends in \x5C", "ends in \\"),
        (rb"\\x22", "\\x22"),
        (rb"\\\"", '\\"'),
        (rb"caf\xc3\xa9", "caf\xe9"),
        (rb"caf\xC3\xA9", "caf\xe9"),
        (rb"caf\xe9", "caf\xe9"),
        ("caf\xe9".encode(), "caf\xe9"),
        ("caf\xe9".encode("latin-1"), "caf\xe9"),
        ("\U0001f4a9".encode(), "\U0001f4a9"),
        (b"\xff\xfe", "\xff\xfe"),
        (rb"a\x00b", "a\N{REPLACEMENT CHARACTER}b"),
        (rb"a\x0ab", "a\N{REPLACEMENT CHARACTER}b"),
        (b"a\x1bb", "a\N{REPLACEMENT CHARACTER}b"),
        (rb"a\nb\tc\rd\ve\bf", "\N{REPLACEMENT CHARACTER}".join("abcdef")),
        (b"a\x7fb", "a\N{REPLACEMENT CHARACTER}b"),
        (rb"\xed\xa0\x80", "\xed\xa0\x80"),  # a lone surrogate is not UTF-8
        (rb"\xZZ", "xZZ"),
        (b"[brackets]", "[brackets]"),
        (b"--", "--"),
    ],
)
def test_escapes_and_encodings_are_undone(written: bytes, read: str) -> None:
    request = parsed(line(referrer=written, user_agent=written))
    assert (request.referrer, request.user_agent) == (read, read)


# The other formats with quoted fields


def common(**fields: bytes) -> bytes:
    return line(**fields).rpartition(b' "-" ')[0]  # type: ignore[arg-type]


def vhost(server: bytes = b"example.com:443", **fields: bytes) -> bytes:
    return server + b" " + line(**fields)  # type: ignore[arg-type]


ASKED = Request(microseconds(TS), "GET", "/a", 200, "", FIREFOX, "192.0.2.1")
UNNAMED = ASKED._replace(user_agent="")


@pytest.mark.parametrize(
    "log_line",
    [
        b'192.0.2.1 - - [15/Sep/2026:12:34:56 +0000] "GET /a HTTP/1.1" 200 1234',
        b'192.0.2.1 - - [15/Sep/2026:14:34:56 +0200] "GET /a HTTP/2.0" 200 -\r\n',
        b'2001:db8::1 - Ana Maria [15/Sep/2026:12:34:56 +0000] "GET /a HTTP/3" 200 0 0.003 -',
    ],
)
def test_common_format_is_combined_without_referrer_and_user_agent(log_line: bytes) -> None:
    request = parse_common(log_line)
    assert request is not None
    assert request._replace(address="192.0.2.1", bytes=None) == UNNAMED
    assert log_line.startswith(request.address.encode())


@pytest.mark.parametrize(
    "log_line", [line(), common()[:-5], common() + b' "-', common() + b' "-" "-"', vhost(), b"", b"-"]
)
def test_line_with_more_quotes_is_not_of_common_format(log_line: bytes) -> None:
    with pytest.raises(InvalidLine):
        parse_common(log_line)


@pytest.mark.parametrize(
    "log_line",
    [
        vhost(), vhost(b"127.0.1.1:80"), vhost(b"[2001:db8::1]:8443"), vhost(host=b"2001:db8::1"),
        vhost(user=b"Ana Maria"), vhost(host=b"-"), vhost() + b" 0.003",
    ],
)  # fmt: skip
def test_vhost_combined_format_is_combined_after_a_host_and_port(log_line: bytes) -> None:
    request = parse_vhost_combined(log_line)
    assert request is not None
    assert request._replace(address="192.0.2.1", bytes=None) == ASKED
    assert request.address in {"192.0.2.1", "2001:db8::1", ""}


@pytest.mark.parametrize(
    "log_line",
    [
        line(), line(host=b"2001:db8::1"), line(host=b"2001:db8::1", user=b"Ana Maria"),
        line(host=b"192.0.2.1:5678"), vhost(b"example.com"), vhost(b"example.com:"), vhost(b"2001:db8::1"),
        vhost(b"example.com:123456"), vhost()[:-1],
    ],
)  # fmt: skip
def test_line_without_a_leading_host_and_port_is_not_of_vhost_combined_format(log_line: bytes) -> None:
    with pytest.raises(InvalidLine):
        parse_vhost_combined(log_line)


# Laws

pieces = st.sampled_from(
    [
        b" ", b'"', b"\\", b"\\x", b"\\x2", b"[", b"]", b"-", b"15/Sep/2026:12:34:56 +0000", b"GET / HTTP/1.1",
        b"200", b"\0", b"\xff",
    ]
)  # fmt: skip
junk = st.binary(max_size=40) | st.lists(pieces | st.binary(max_size=2), max_size=20).map(b"".join)
near_lines = st.builds(
    line, junk, host=junk, user=junk, time=junk, status=st.just(b"200"), referrer=junk, user_agent=junk
)


@pytest.mark.long
@settings(max_examples=rounds(3_000))
@given(junk | near_lines | near_lines.map(lambda log_line: b"example.com:443 " + log_line))
@example(b'"' * 10_000)
@example(b"\\" * 10_001)
@example(b"a " * 10_000 + b"[" * 10_000)
@example(b"a:1 " + b"a " * 10_000 + b"[" * 10_000)
def test_any_bytes_are_a_page_view_or_skipped_or_malformed_in_each_format(log_line: bytes) -> None:
    for parser in (parse, parse_common, parse_vhost_combined):
        with suppress(InvalidLine):
            request = parser(log_line)
            hit = page_view(request) if request else None
            if isinstance(hit, Hit):
                assert hit.path.isascii()
                for text in (hit.path, hit.user_agent, hit.referrer or "", *hit.parameters.values()):
                    text.encode()
                    assert not set(text) & {"\n", "\0", "\x7f"}


fields = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=rounds(3_000))
@given(fields, fields, st.sampled_from(["apache", "nginx"]))
def test_fields_escaped_by_a_server_are_parsed_unchanged(referrer: str, user_agent: str, server: str) -> None:
    request = parsed(line(referrer=escaped(referrer, server), user_agent=escaped(user_agent, server)))
    assert (request.referrer, request.user_agent) == (shown(referrer), shown(user_agent))


def escaped(text: str, server: str) -> bytes:
    """Return the text as Apache or nginx writes it: with escapes, except for printable ASCII without `"` and `\\`."""

    def write(byte: int) -> bytes:
        if byte in b'"\\' and server == "apache":
            return b"\\" + bytes([byte])
        if server == "apache" and byte in APACHE:
            return APACHE[byte]
        if byte in b'"\\' or byte < 0x20 or byte >= 0x7F:
            return b"\\x%02x" % byte if server == "apache" else b"\\x%02X" % byte
        return bytes([byte])

    return b"".join(map(write, text.encode()))


APACHE = {0x08: rb"\b", 0x09: rb"\t", 0x0A: rb"\n", 0x0B: rb"\v", 0x0D: rb"\r"}
"""Escapes of Apache: https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#format-notes"""


def shown(text: str) -> str:
    """Return the text as it is stored: without control characters, and empty if it is a dash."""
    return (
        ""
        if text == "-"
        else "".join("\N{REPLACEMENT CHARACTER}" if ord(c) < 0x20 or ord(c) == 0x7F else c for c in text)
    )
