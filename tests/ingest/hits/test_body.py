"""Each row of a body is a hit or is rejected with its index, field and reason; no bytes break the parser."""

import gzip
import json
import re
import tracemalloc
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.errors import BodyTooLarge, IngestError, InvalidBody, InvalidField
from ingest.hits.body import BODY_BYTES_MAX, HITS_MAX, Parsed, Rejection, decode_beacon, gunzip, parse_post
from ingest.hits.hit import EPOCH, FIRST, Hit, beacon_hit
from tests.rounds import rounds
from tests.warehouse.site import ROOT

NOW = datetime(2026, 9, 15, 12, tzinfo=UTC)
NOW_US = 1_789_473_600_000_000
LIMIT = 1_000

Json = Any


def test_limits_of_a_post_are_those_of_the_docs() -> None:
    docs = (ROOT / "docs" / "running.md").read_text()
    assert f"at most {HITS_MAX:,} hits and {BODY_BYTES_MAX / 2**20:g} MiB" in docs


def parsed(rows: list[Json], lines: bool) -> Parsed:
    """Return the result of a post of these rows, as one array or as NDJSON."""
    written = [json.dumps(row) for row in rows]
    body = "\n".join(written) if lines else "[" + ",".join(written) + "]"
    return parse_post(body.encode(), lines, NOW_US)


def hit(path: str, **fields: Any) -> Hit:
    """Return a hit with the given fields only."""
    none = dict.fromkeys(("referrer", "format", "status", "event_id"))
    return Hit(**{**none, "parameters": {}, "path": path, "ts_us": NOW_US, "user_agent": "", **fields})


# Valid rows


def test_hit_has_all_fields_of_a_server_post() -> None:
    row = {
        "url": "https://example.com/a/?utm_source=news&b=c#top",
        "referrer": "https://example.org/?q=1",
        "eventId": "event-1",
        "userAgent": "GPTBot/1.3",
        "timestamp": "2026-09-01T12:34:56.789012+02:00",
        "status": 304,
        "format": "text/markdown",
    }
    news = {"utm_source": "news"}
    ts_us = (datetime(2026, 9, 1, 10, 34, 56, 789_012, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert parse_post(json.dumps(row).encode(), is_ndjson=False, now_us=NOW_US) == Parsed(
        [Hit("/a", ts_us, "GPTBot/1.3", "https://example.org/?q=1", news, "text/markdown", 304, "event-1")], []
    )


def test_missing_fields_and_null_fields_are_the_same() -> None:
    nulls = dict.fromkeys(("url", "referrer", "eventId", "userAgent", "timestamp", "status", "format"))
    assert parsed([{"path": "/a"}, {"path": "/a", **nulls}], lines=False) == Parsed([hit("/a")] * 2, [])


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2026-09-15T12:05:00Z", NOW + timedelta(minutes=5)),
        ("2026-09-15T14:05:00+02:00", NOW + timedelta(minutes=5)),
        ("2026-09-15T12:00:00", NOW),
        ("2026-09-15T12:00:00.000001Z", NOW + timedelta(microseconds=1)),
        ("2026-09-15 12:00:00Z", NOW),
        ("1995-01-01T00:00:00Z", datetime(1995, 1, 1, tzinfo=UTC)),
        ("1994-12-31T23:59:59.999999-23:59", datetime(1995, 1, 1, 23, 58, 59, 999_999, tzinfo=UTC)),
    ],
)
def test_timestamp_has_microseconds_in_any_zone(written: str, instant: datetime) -> None:
    post = parsed([{"path": "/", "timestamp": written}], lines=False)
    assert [EPOCH + timedelta(microseconds=each.ts_us) for each in post.hits] == [instant]


def test_parameters_are_read_from_a_path_and_from_a_url() -> None:
    for row in ({"path": "/a?b&utm_source=x"}, {"url": "https://example.com/a?b&utm_source=x#top"}):
        assert parsed([row], lines=False).hits == [hit("/a", parameters={"utm_source": "x"})]


def parse_beacon(body: bytes, user_agent: str, now: datetime) -> Hit:
    return beacon_hit(decode_beacon(body), user_agent, now)


# Rejected rows


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ({}, "path", "give one of `url` and `path`"),
        ({"path": ""}, "path", "must not be empty"),
        ({"path": 1}, "path", ""),
        ({"path": "/\ud800"}, None, ""),
        ({"path": "/", "userAgent": "cut within an emoji \ud83d"}, None, ""),
        ({"url": "/a"}, "url", "absolute http or https URL"),
        ({"path": "/", "referrer": "a" * 8_193}, "referrer", "at most 8192"),
        ({"path": "/", "eventId": ""}, "eventId", "length >= 1"),
        ({"path": "/", "eventId": "a" * 129}, "eventId", "length <= 128"),
        ({"path": "/", "eventId": "\udfff"}, None, ""),
        ({"path": "/", "eventId": 1}, "eventId", ""),
        ({"path": "/", "status": 99}, "status", ">= 100"),
        ({"path": "/", "status": 600}, "status", "<= 599"),
        ({"path": "/", "status": 200.5}, "status", ""),
        ({"path": "/", "status": True}, "status", ""),
        ({"path": "/", "status": 10**30}, "status", ""),
        ({"path": "/", "format": "HTML"}, "format", ""),
        ({"path": "/", "format": "html\n"}, "format", ""),
        ({"path": "/", "address": "192.0.2.7:80"}, "address", ""),
        ({"path": "/", "accept": "a\n"}, "accept", ""),
        ({"path": "/", "headers": {"a b": ""}}, "headers", ""),
        ({"path": "/", "timestamp": "2026-09-15T12:05:00.000001Z"}, "timestamp", "more than 5 minutes in the future"),
        ({"path": "/", "timestamp": "yesterday"}, "timestamp", "2026-09-01T12:00:00Z"),
        ({"path": "/", "timestamp": "2026-02-30T00:00:00Z"}, "timestamp", ""),
        ({"path": "/", "timestamp": NOW_US}, "timestamp", ""),
        ({"path": "/", "project": "other"}, "project", "known fields: url, path, referrer, eventId, timeZone"),
        ({"path": "/", "a" * 500: None}, "a" * 100, "unknown field"),
        ([], None, ""),
        ("/", None, ""),
        (None, None, ""),
    ],
    ids=lambda value: ascii(value)[:60],
)
@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_invalid_row_is_rejected_by_itself(row: Json, field: str | None, reason: str, lines: bool) -> None:
    post = parsed([{"path": "/before"}, row, {"path": "/after"}], lines)
    assert post.hits == [hit("/before"), hit("/after")]
    assert [(each.index, each.field) for each in post.rejected] == [(1, field)]
    assert reason in post.rejected[0].reason


def test_line_that_is_not_json_is_rejected_by_itself() -> None:
    body = b'{"path":"/a"}\n{"path":\n\xff\xfe\n{"path":"/b"} {"path":"/c"}\n{"path":"/d"}'
    post = parse_post(body, is_ndjson=True, now_us=NOW_US)
    assert [each.path for each in post.hits] == ["/a", "/d"]
    assert [(each.index, each.field) for each in post.rejected] == [(1, None), (2, None), (3, None)]


@pytest.mark.parametrize("blank", ["\n", "\r\n", "\n\n", "\n \t\r\n"])
def test_blank_lines_and_carriage_returns_are_ignored(blank: str) -> None:
    body = blank.join(['{"path":"/a"}', '{"path":"/b"}', "[]", '{"path":"/c"}', ""])
    post = parse_post(body.encode(), is_ndjson=True, now_us=NOW_US)
    assert [each.path for each in post.hits] == ["/a", "/b", "/c"]
    assert [each.index for each in post.rejected] == [2]


@pytest.mark.parametrize("good", [b'{"path":\n"/a"}', b'{"path":"/a"} {"path":"/b"}', b'{"path":\n"/a"}{"path":"/b"}'])
def test_line_must_be_one_row_whether_another_is_rejected_or_not(good: bytes) -> None:
    alone, beside = (parse_post(body, is_ndjson=True, now_us=NOW_US) for body in (good, good + b"\nno"))
    assert alone.hits == beside.hits == []
    assert alone.rejected == beside.rejected[:-1]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        *((body, False) for body in (b"", b" \n\t", b"[]", b" [ ] ")),
        *((body, True) for body in (b"", b"\n", b" \r\n\n")),
    ],
)
def test_body_without_a_row_is_refused_as_a_whole(body: bytes, lines: bool) -> None:
    with pytest.raises(InvalidBody, match="contains no hit"):
        parse_post(body, lines, NOW_US)


@pytest.mark.parametrize("body", [b"[", b"[{]", b'[{"path":"/a"}', b'[{"path":"/a"},]', b"[\xff]", b"[" * 100_000])
def test_array_that_is_not_json_is_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(InvalidBody):
        parse_post(body, is_ndjson=False, now_us=NOW_US)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize("row", [b"%s", b'{"path":"/b","status":%s}', b'{"path":"/\\ud83d","status":[%s]}'])
def test_array_with_a_number_that_is_not_json_is_refused_as_a_whole(row: bytes, number: bytes) -> None:
    with pytest.raises(InvalidBody, match=f"^the body is not JSON: {number.decode()} is not a JSON value$"):
        parse_post(b'[{"path":"/a"},' + row % number + b"]", is_ndjson=False, now_us=NOW_US)


@pytest.mark.parametrize(
    "number", [b"9" * 5_000, b"-" + b"9" * 5_000, b"1" + b"0" * 5_000 + b".5", b"1e999", b"-1e999"]
)
@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_row_with_a_number_beyond_all_limits_is_rejected_by_itself(number: bytes, lines: bool) -> None:
    rows = [b'{"path":"/a"}', b'{"path":"/b","status":%s}' % number, number, b'{"path":"/c"}']
    post = parse_post(b"\n".join(rows) if lines else b"[" + b",".join(rows) + b"]", lines, NOW_US)
    assert [each.path for each in post.hits] == ["/a", "/c"]
    assert [(each.index, each.field) for each in post.rejected] == [(1, "status"), (2, None)]
    assert all(re.search("out of range|<= 599|>= 100", each.reason) for each in post.rejected)


@pytest.mark.parametrize(
    "text", ["\\ud83d", "\\ud83d and more than that", "\\ude00", "\\ud83d\\ud83d and more than that"]
)
@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_half_of_a_surrogate_pair_is_reported_without_the_byte_of_a_rewritten_row(text: str, lines: bool) -> None:
    rows = ['{"path":"/a"}', f'{{"path":"/b","userAgent":"{text}"}}']
    post = parse_post(("\n".join(rows) if lines else f"[{','.join(rows)}]").encode(), lines, NOW_US)
    assert [each.path for each in post.hits] == ["/a"]
    assert "a string contains half of a surrogate pair" in post.rejected[0].reason
    assert "byte" not in post.rejected[0].reason


@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_post_of_as_many_hits_as_the_limit_is_accepted_and_no_larger_one(lines: bool) -> None:
    rows: list[Json] = [{"path": "/a"}] * HITS_MAX
    assert len(parsed(rows, lines).hits) == HITS_MAX == 10_000
    with pytest.raises(BodyTooLarge, match="contains 10001 hits; at most 10000 are accepted"):
        parsed([*rows, {}], lines)


def fill(row: bytes, opening: bytes = b"", closing: bytes = b"") -> bytes:
    """Return as many copies of a row as a body may have bytes, between an opening and a closing."""
    return opening + row * ((BODY_BYTES_MAX - len(opening) - len(closing)) // len(row)) + closing


HEADERS = fill(b'"":"",', b'{"path":"/","headers":{', b'"":""}}')


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "lines"),
    [
        pytest.param(fill(b"{},", b"[", b"{}]"), False, id="objects", marks=pytest.mark.night),
        pytest.param(fill(b"[],", b"[", b"0]"), False, id="arrays", marks=pytest.mark.night),
        pytest.param(fill(b"1.5,", b"[", b"0]"), False, id="numbers", marks=pytest.mark.night),
        pytest.param(fill(b'"",', b'["\\"",', b"0]"), False, id="texts"),
        pytest.param(
            fill(b'"":"",', b'{"path":"/","headers":{', b'"":""}}'), False, id="headers", marks=pytest.mark.night
        ),
        pytest.param(HEADERS, True, id="headers of a line"),
        pytest.param(fill(b"{}\n"), True, id="lines"),
        pytest.param(fill(b"\n"), True, id="blank lines", marks=pytest.mark.night),
        pytest.param(fill(b'\\"', b'[{},"'), False, id="no end of a text"),
    ],
)
def test_body_of_many_small_values_is_refused_before_it_is_decoded(body: bytes, lines: bool) -> None:
    assert len(gzip.compress(body)) < 20_000
    tracemalloc.start()
    try:
        with suppress(BodyTooLarge, InvalidBody):
            assert parse_post(body, lines, NOW_US).hits == []
        assert tracemalloc.get_traced_memory()[1] < 4 * BODY_BYTES_MAX
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_commas_and_braces_in_texts_are_not_counted() -> None:
    assert len(parsed([{"path": "/a", "userAgent": '\\"' + ",{" * 8_000}] * 70, lines=False).hits) == 70


# Beacons


def test_beacon_has_the_user_agent_and_the_time_of_its_request() -> None:
    body = b'{"url": "https://example.com/a/?utm_source=x", "referrer": "https://example.org/", "eventId": "1"}'
    beacon = parse_beacon(body, "Firefox", NOW)
    assert beacon == hit(
        "/a", user_agent="Firefox", referrer="https://example.org/", parameters={"utm_source": "x"}, event_id="1"
    )


@pytest.mark.parametrize("field", ["userAgent", "timestamp", "status", "format", "project"])
def test_beacon_with_a_field_of_servers_is_refused(field: str) -> None:
    with pytest.raises(InvalidField, match=r"known fields: url, path, referrer, eventId, timeZone$") as raised:
        parse_beacon(json.dumps({"path": "/", field: None}).encode(), "", NOW)
    assert raised.value.field == field


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'[{"path":"/"}]', b'"/"', b"null", b'{"path":"/"}{}', b"\xff", b"[" * 9_999]
)
def test_beacon_is_one_json_object(body: bytes) -> None:
    with pytest.raises(InvalidBody, match=r"^a beacon is one JSON object: "):
        parse_beacon(body, "", NOW)


# gzip


def test_gzip_body_of_several_members_is_decompressed() -> None:
    assert gunzip(gzip.compress(b"abc") + gzip.compress(b"") + gzip.compress(b"def"), LIMIT) == b"abcdef"
    assert gunzip(b"", LIMIT) == b""


@pytest.mark.parametrize("members", [[LIMIT], [LIMIT - 1, 1], [1] * LIMIT, [0, LIMIT, 0]])
def test_gzip_body_may_decompress_to_as_many_bytes_as_the_limit_and_no_more(members: list[int]) -> None:
    body = b"".join(gzip.compress(bytes(size)) for size in members)
    assert gunzip(body, LIMIT) == bytes(LIMIT)
    with pytest.raises(BodyTooLarge, match="more than 1000 bytes"):
        gunzip(body + gzip.compress(b"\0"), LIMIT)


@pytest.mark.long
def test_small_body_that_decompresses_to_gigabytes_is_refused() -> None:
    bomb = gzip.compress(gzip.compress(bytes(1 << 28)))
    with pytest.raises(BodyTooLarge):
        gunzip(gunzip(bomb, BODY_BYTES_MAX), BODY_BYTES_MAX)


WHOLE = gzip.compress(b"whole" * 100, mtime=0)


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_truncated_gzip_body_is_refused(cut: int) -> None:
    with pytest.raises(InvalidBody):
        gunzip(WHOLE[:cut], LIMIT)
    with pytest.raises(InvalidBody):
        gunzip(gzip.compress(b"before") + WHOLE[:cut], LIMIT)


@pytest.mark.parametrize(
    "body", [
        b"no", b"{}", WHOLE + b"trailing", zlib.compress(b"zlib"), WHOLE + zlib.compress(b"zlib"),
        WHOLE[:-8] + bytes(8), WHOLE[:2] + b"\xff" * 9,
    ]
)  # fmt: skip
def test_body_that_is_not_gzip_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBody):
        gunzip(body, LIMIT)


@given(st.lists(st.binary(max_size=20_000), min_size=1, max_size=4))
def test_compressed_bytes_are_decompressed(contents: list[bytes]) -> None:
    assert gunzip(b"".join(map(gzip.compress, contents)), 80_000) == b"".join(contents)


# Laws

FIELDS = ["url", "path", "referrer", "eventId", "userAgent", "timestamp", "status", "format"]
odd_texts = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(categories=["Cs", "Cc"]), max_size=3),
    st.sampled_from(
        ["", "/", "https://", "https://example.com/", "2026-09-15T12:00:00Z", "\ud83d\ude00", "a" * 20_000]
    ),
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63, 2**64, 1e308, 5e-324, -0.0]),
    st.floats(allow_nan=False, allow_infinity=False),
    odd_texts,
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | odd_texts, inner, max_size=4),
    max_leaves=12,
)
good_paths = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30)
good_rows = st.fixed_dictionaries(
    {"path": good_paths.map(lambda text: "/" + text)},
    optional={
        "referrer": good_paths,
        "eventId": st.uuids().map(str),
        "userAgent": st.sampled_from(["", "GPTBot/1.3", "caf\xe9 \U0001f4a9"]),
        "timestamp": st.datetimes(FIRST.replace(tzinfo=None), NOW.replace(tzinfo=None), timezones=st.just(UTC)).map(
            datetime.isoformat
        ),
        "status": st.integers(100, 599) | st.none(),
        "format": st.sampled_from(["html", "text/markdown"]),
    },
)
rows = st.one_of(
    good_rows,
    st.builds(lambda row, more: {**row, **more}, good_rows, st.dictionaries(st.sampled_from(FIELDS), leaves)),
    values,
)


def alone(row: Json) -> Parsed:
    """Return the result of a post of one row."""
    return parse_post(b"[" + json.dumps(row).encode() + b"]", is_ndjson=False, now_us=NOW_US)


@pytest.mark.long
@settings(max_examples=rounds(1_800))
@given(st.lists(rows, min_size=1, max_size=8), st.booleans())
def test_rows_of_a_post_do_not_affect_each_other(sent: list[Json], lines: bool) -> None:
    post = parsed(sent, lines)
    each = [alone(row) for row in sent]
    assert post.hits == [hit for parts in each for hit in parts.hits]
    assert post.rejected == [
        Rejection(index, rejection.field, rejection.reason)
        for index, parts in enumerate(each)
        for rejection in parts.rejected
    ]
    assert len(post.hits) + len(post.rejected) == len(sent)


@pytest.mark.long
@settings(max_examples=rounds(1_800))
@given(values)
@example([[[[]]]])
def test_any_json_is_accepted_or_refused(value: Json) -> None:
    body = json.dumps(value).encode()
    for lines in (False, True):
        with suppress(IngestError):
            parse_post(body, lines, NOW_US)
    with suppress(IngestError):
        parse_beacon(body, "", NOW)


fragments = st.sampled_from(
    [b'{"path":"/a"}', b'{"path":"', b'"}', b"[", b"]", b"{", b"}", b",", b"\n", b"\\u", b"\xc3", b"1e999", WHOLE]
)


@pytest.mark.long
@settings(max_examples=rounds(3_000))
@given(st.binary() | st.lists(fragments | st.binary(max_size=3), max_size=12).map(b"".join))
def test_any_bytes_are_accepted_or_refused(body: bytes) -> None:
    for lines in (False, True):
        with suppress(IngestError):
            parse_post(body, lines, NOW_US)
    with suppress(IngestError):
        parse_beacon(body, body.decode("latin-1"), NOW)
    with suppress(IngestError):
        gunzip(body, LIMIT)
    with suppress(IngestError):
        gunzip(b"\x1f\x8b\x08" + body, LIMIT)


def test_nesting_near_the_limit_of_a_parser_is_accepted_or_refused() -> None:
    for depth in range(900, 1_010):
        with suppress(IngestError):
            parse_post(b"[" * depth + b"]" * depth, is_ndjson=False, now_us=NOW_US)


@pytest.mark.parametrize("opening", [b"[", b'{"path":', b'{"a":', b'[{"path":'])
@pytest.mark.parametrize("closed", [False, True])
def test_deep_nesting_is_refused(opening: bytes, closed: bool) -> None:
    depth = 100_000
    body = (
        opening * depth
        + b"1"
        + b"".join({ord("["): b"]", ord("{"): b"}"}[c] for c in reversed(opening) if c in b"[{") * depth * closed
    )
    for lines in (False, True):
        try:
            assert parse_post(body, lines, NOW_US).hits == []
        except IngestError:
            continue
    with pytest.raises(IngestError):
        parse_beacon(body, "", NOW)
