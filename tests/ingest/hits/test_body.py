"""A body into hits: each row by itself, each fault with its index, field and reason, and no bytes that break it."""

import gzip
import json
import re
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.errors import BodyTooLarge, IngestError, InvalidBody, InvalidField
from ingest.hits.body import BODY_BYTES_MAX, HITS_MAX, Parsed, Rejection, gunzipped, of_beacon, of_post
from ingest.hits.hit import EPOCH, Hit

NOW = datetime(2026, 9, 15, 12, tzinfo=UTC)
NOW_US = 1_789_473_600_000_000
LIMIT = 1_000

Json = Any


def parsed(rows: list[Json], lines: bool) -> Parsed:
    """A post of these rows, as one array or a row a line."""
    written = [json.dumps(row) for row in rows]
    body = "\n".join(written) if lines else "[" + ",".join(written) + "]"
    return of_post(body.encode(), lines, NOW)


def hit(path: str, **fields: Any) -> Hit:
    """A hit of which no more is said."""
    none = dict.fromkeys(("referrer", "utm_source", "format", "status", "event_id"))
    return Hit(**{**none, "path": path, "ts_us": NOW_US, "user_agent": "", **fields})


# What is taken


def test_all_fields_of_a_server_post_come_through() -> None:
    row = {
        "url": "https://example.com/a/?utm_source=news&b=c#top",
        "referrer": "https://example.org/?q=1",
        "eventId": "event-1",
        "userAgent": "GPTBot/1.3",
        "timestamp": "2026-09-01T12:34:56.789012+02:00",
        "status": 304,
        "format": "text/markdown",
    }
    ts_us = (datetime(2026, 9, 1, 10, 34, 56, 789_012, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert of_post(json.dumps(row).encode(), lines=False, now=NOW) == Parsed(
        [Hit("/a", ts_us, "GPTBot/1.3", "https://example.org/?q=1", "news", "text/markdown", 304, "event-1")], []
    )


def test_fields_left_out_and_fields_that_are_null_are_the_same() -> None:
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
        ("1969-12-31T23:59:59.999999Z", datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00-23:59", datetime(1, 1, 1, tzinfo=timezone(-timedelta(hours=23, minutes=59)))),
    ],
)
def test_timestamp_is_taken_to_the_microsecond_in_any_zone(written: str, instant: datetime) -> None:
    found = parsed([{"path": "/", "timestamp": written}], lines=False)
    assert [EPOCH + timedelta(microseconds=each.ts_us) for each in found.hits] == [instant]


@pytest.mark.parametrize(
    ("query", "utm_source"),
    [
        ("?utm_source=news", "news"),
        ("?a=b&utm_source=news%20letter+1&c", "news letter 1"),
        ("?utm_source=first&utm_source=second", "first"),
        ("?utm_source=caf%C3%A9#utm_source=x", "caf\xe9"),
        ("?utm_source=" + "a" * 300, "a" * 256),
        ("?utm_source=a%00b%0Ac", "abc"),
        ("?utm_source=", None),
        ("?utm_source=%00", None),
        ("?xutm_source=a", None),
        ("#?utm_source=a", None),
        ("", None),
    ],
)
def test_utm_source_is_the_first_of_the_query(query: str, utm_source: str | None) -> None:
    for row in ({"path": f"/a{query}"}, {"url": f"https://example.com/a{query}"}):
        assert parsed([row], lines=False).hits == [hit("/a", utm_source=utm_source)]


# What is rejected, and why


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ({}, "path", "give one of `url` and `path`"),
        ({"path": "/", "url": "https://example.com/"}, "path", "not both"),
        ({"path": ""}, "path", "must not be empty"),
        ({"path": 1}, "path", ""),
        ({"path": "/\x00"}, "path", "control character"),
        ({"path": "/\ud800"}, None, ""),
        ({"path": "/", "userAgent": "cut within an emoji \ud83d"}, None, ""),
        ({"path": "/" + "a" * 2_048}, "path", "at most 2048"),
        ({"path": "https://example.com/"}, "path", "send it as `url`"),
        ({"url": "/a"}, "url", "absolute http or https URL"),
        ({"path": "/", "referrer": "a\nb"}, "referrer", "control character"),
        ({"path": "/", "referrer": "a" * 8_193}, "referrer", "at most 8192"),
        ({"path": "/", "userAgent": "a\x1bb"}, "userAgent", "control character"),
        ({"path": "/", "userAgent": "a" * 16_385}, "userAgent", "at most 16384"),
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
        ({"path": "/", "timestamp": "2026-09-15T12:05:00.000001Z"}, "timestamp", "more than 5 minutes in the future"),
        ({"path": "/", "timestamp": "9999-12-31T23:59:59-23:59"}, "timestamp", "more than 5 minutes in the future"),
        ({"path": "/", "timestamp": "0001-01-01T00:00:00+00:01"}, "timestamp", "before the year 1"),
        ({"path": "/", "timestamp": "yesterday"}, "timestamp", "2026-09-01T12:00:00Z"),
        ({"path": "/", "timestamp": "2026-02-30T00:00:00Z"}, "timestamp", ""),
        ({"path": "/", "timestamp": NOW_US}, "timestamp", ""),
        ({"path": "/", "project": "other"}, "project", "unknown field; known are url, path, referrer, eventId"),
        ({"path": "/", "a" * 500: None}, "a" * 100, "unknown field"),
        ([], None, ""),
        ("/", None, ""),
        (None, None, ""),
    ],
    ids=lambda value: ascii(value)[:60],
)
@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_row_that_is_no_hit_is_rejected_by_itself(row: Json, field: str | None, reason: str, lines: bool) -> None:
    found = parsed([{"path": "/before"}, row, {"path": "/after"}], lines)
    assert found.hits == [hit("/before"), hit("/after")]
    assert [(each.index, each.field) for each in found.rejected] == [(1, field)]
    assert reason in found.rejected[0].reason


def test_line_that_is_no_json_is_rejected_by_itself() -> None:
    body = b'{"path":"/a"}\n{"path":\n\xff\xfe\n{"path":"/b"} {"path":"/c"}\n{"path":"/d"}'
    found = of_post(body, lines=True, now=NOW)
    assert [each.path for each in found.hits] == ["/a", "/d"]
    assert [(each.index, each.field) for each in found.rejected] == [(1, None), (2, None), (3, None)]


@pytest.mark.parametrize("blank", ["\n", "\r\n", "\n\n", "\n \t\r\n"])
def test_blank_lines_and_carriage_returns_between_lines_are_no_rows(blank: str) -> None:
    body = blank.join(['{"path":"/a"}', '{"path":"/b"}', "[]", '{"path":"/c"}', ""])
    found = of_post(body.encode(), lines=True, now=NOW)
    assert [each.path for each in found.hits] == ["/a", "/b", "/c"]
    assert [each.index for each in found.rejected] == [2]


@pytest.mark.parametrize("good", [b'{"path":\n"/a"}', b'{"path":"/a"} {"path":"/b"}', b'{"path":\n"/a"}{"path":"/b"}'])
def test_line_is_one_row_whether_another_is_rejected_or_not(good: bytes) -> None:
    alone, beside = of_post(good, lines=True, now=NOW), of_post(good + b"\nno", lines=True, now=NOW)
    assert alone.hits == beside.hits == []
    assert alone.rejected == beside.rejected[:-1]


@pytest.mark.parametrize("body", [b"", b" \n\t", b"[]", b" [ ] "])
def test_body_without_a_row_is_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(InvalidBody, match="holds no hit"):
        of_post(body, lines=False, now=NOW)


@pytest.mark.parametrize("body", [b"", b"\n", b" \r\n\n"])
def test_lines_without_a_row_are_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(InvalidBody, match="holds no hit"):
        of_post(body, lines=True, now=NOW)


@pytest.mark.parametrize("body", [b"[", b"[{]", b'[{"path":"/a"}', b'[{"path":"/a"},]', b"[\xff]", b"[" * 100_000])
def test_array_that_is_no_json_is_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(InvalidBody):
        of_post(body, lines=False, now=NOW)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize("row", [b"%s", b'{"path":"/b","status":%s}', b'{"path":"/\\ud83d","status":[%s]}'])
def test_array_that_has_a_number_which_is_no_json_is_refused_as_a_whole(row: bytes, number: bytes) -> None:
    with pytest.raises(InvalidBody, match=f"^the body is not JSON: {number.decode()} is no value of JSON$"):
        of_post(b'[{"path":"/a"},' + row % number + b"]", lines=False, now=NOW)


@pytest.mark.parametrize(
    "number", [b"9" * 5_000, b"-" + b"9" * 5_000, b"1" + b"0" * 5_000 + b".5", b"1e999", b"-1e999"]
)
@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_row_with_a_number_past_all_limits_is_rejected_by_itself(number: bytes, lines: bool) -> None:
    rows = [b'{"path":"/a"}', b'{"path":"/b","status":%s}' % number, number, b'{"path":"/c"}']
    found = of_post(b"\n".join(rows) if lines else b"[" + b",".join(rows) + b"]", lines, NOW)
    assert [each.path for each in found.hits] == ["/a", "/c"]
    assert [(each.index, each.field) for each in found.rejected] == [(1, "status"), (2, None)]
    assert all(re.search("out of range|<= 599|>= 100", each.reason) for each in found.rejected)


@pytest.mark.parametrize(
    "text", ["\\ud83d", "\\ud83d and more than that", "\\ude00", "\\ud83d\\ud83d and more than that"]
)
@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_half_of_a_surrogate_pair_is_told_without_a_place_in_what_nobody_sent(text: str, lines: bool) -> None:
    rows = ['{"path":"/a"}', f'{{"path":"/b","userAgent":"{text}"}}']
    found = of_post(("\n".join(rows) if lines else f"[{','.join(rows)}]").encode(), lines, NOW)
    assert [each.path for each in found.hits] == ["/a"]
    assert "a string holds half of a surrogate pair" in found.rejected[0].reason
    assert "byte" not in found.rejected[0].reason


@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_as_many_hits_as_the_limit_are_taken_and_no_more(lines: bool) -> None:
    rows: list[Json] = [{"path": "/a"}] * HITS_MAX
    assert len(parsed(rows, lines).hits) == HITS_MAX == 10_000
    with pytest.raises(BodyTooLarge, match="holds 10001 hits; at most 10000 are taken at once"):
        parsed([*rows, {}], lines)


# Beacons


def test_beacon_has_the_user_agent_and_the_time_of_its_request() -> None:
    body = b'{"url": "https://example.com/a/?utm_source=x", "referrer": "https://example.org/", "eventId": "1"}'
    found = of_beacon(body, "Firefox", NOW)
    assert found == hit("/a", user_agent="Firefox", referrer="https://example.org/", utm_source="x", event_id="1")


@pytest.mark.parametrize("field", ["userAgent", "timestamp", "status", "format", "project"])
def test_beacon_may_not_say_what_only_a_server_knows(field: str) -> None:
    with pytest.raises(InvalidField, match=r"unknown field; known are url, path, referrer, eventId$") as told:
        of_beacon(json.dumps({"path": "/", field: None}).encode(), "", NOW)
    assert told.value.field == field


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'[{"path":"/"}]', b'"/"', b"null", b'{"path":"/"}{}', b"\xff", b"[" * 9_999]
)
def test_beacon_is_one_json_object(body: bytes) -> None:
    with pytest.raises(InvalidBody, match=r"^a beacon is one JSON object: "):
        of_beacon(body, "", NOW)


# gzip


def test_gzip_body_is_unpacked_members_and_all() -> None:
    assert gunzipped(gzip.compress(b"abc") + gzip.compress(b"") + gzip.compress(b"def"), LIMIT) == b"abcdef"
    assert gunzipped(b"", LIMIT) == b""


@pytest.mark.parametrize("members", [[LIMIT], [LIMIT - 1, 1], [1] * LIMIT, [0, LIMIT, 0]])
def test_gzip_body_unpacks_to_as_much_as_the_limit_and_no_more(members: list[int]) -> None:
    body = b"".join(gzip.compress(bytes(size)) for size in members)
    assert gunzipped(body, LIMIT) == bytes(LIMIT)
    with pytest.raises(BodyTooLarge, match="more than 1000 bytes"):
        gunzipped(body + gzip.compress(b"\0"), LIMIT)


def test_small_body_that_unpacks_to_gigabytes_is_refused() -> None:
    bomb = gzip.compress(gzip.compress(bytes(1 << 28)))
    with pytest.raises(BodyTooLarge):
        gunzipped(gunzipped(bomb, BODY_BYTES_MAX), BODY_BYTES_MAX)


WHOLE = gzip.compress(b"whole" * 100, mtime=0)


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_gzip_body_that_ends_too_early_is_refused(cut: int) -> None:
    with pytest.raises(InvalidBody):
        gunzipped(WHOLE[:cut], LIMIT)
    with pytest.raises(InvalidBody):
        gunzipped(gzip.compress(b"before") + WHOLE[:cut], LIMIT)


@pytest.mark.parametrize(
    "body", [b"no", b"{}", WHOLE + b"trailing", zlib.compress(b"zlib"), WHOLE[:-8] + bytes(8), WHOLE[:2] + b"\xff" * 9]
)
def test_body_that_is_not_gzip_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBody):
        gunzipped(body, LIMIT)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.binary(max_size=20_000), min_size=1, max_size=4))
def test_what_was_packed_is_unpacked(contents: list[bytes]) -> None:
    assert gunzipped(b"".join(map(gzip.compress, contents)), 80_000) == b"".join(contents)


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
        "timestamp": st.datetimes(max_value=NOW.replace(tzinfo=None), timezones=st.just(UTC)).map(datetime.isoformat),
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
    """The post of one row; one that holds no row at all counts as rejected for that."""
    return of_post(b"[" + json.dumps(row).encode() + b"]", lines=False, now=NOW)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(rows, min_size=1, max_size=8), st.booleans())
def test_rows_of_a_post_do_not_touch_each_other(sent: list[Json], lines: bool) -> None:
    found = parsed(sent, lines)
    each = [alone(row) for row in sent]
    assert found.hits == [hit for parts in each for hit in parts.hits]
    assert found.rejected == [
        Rejection(index, rejection.field, rejection.reason)
        for index, parts in enumerate(each)
        for rejection in parts.rejected
    ]
    assert len(found.hits) + len(found.rejected) == len(sent)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(good_rows, min_size=1, max_size=8), st.booleans(), st.sampled_from(["first", "last"]))
def test_good_rows_give_the_same_hits_beside_a_bad_one(good: list[Json], lines: bool, place: str) -> None:
    bad: list[Json] = [{"path": 1}]
    assert parsed(good, lines) == parsed(good, not lines)
    found = parsed(bad + good if place == "first" else good + bad, lines)
    assert found.hits == parsed(good, lines).hits
    assert len(found.hits) == len(good)
    assert [each.index for each in found.rejected] == [0 if place == "first" else len(good)]


@settings(deadline=None, derandomize=True, max_examples=300)
@given(values)
@example([[[[]]]])
def test_any_json_is_taken_or_refused(value: Json) -> None:
    body = json.dumps(value).encode()
    for lines in (False, True):
        with suppress(IngestError):
            of_post(body, lines, NOW)
    with suppress(IngestError):
        of_beacon(body, "", NOW)


fragments = st.sampled_from(
    [b'{"path":"/a"}', b'{"path":"', b'"}', b"[", b"]", b"{", b"}", b",", b"\n", b"\\u", b"\xc3", b"1e999", WHOLE]
)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(st.binary() | st.lists(fragments | st.binary(max_size=3), max_size=12).map(b"".join))
def test_any_bytes_are_taken_or_refused(body: bytes) -> None:
    for lines in (False, True):
        with suppress(IngestError):
            of_post(body, lines, NOW)
    with suppress(IngestError):
        of_beacon(body, body.decode("latin-1"), NOW)
    with suppress(IngestError):
        gunzipped(body, LIMIT)
    with suppress(IngestError):
        gunzipped(b"\x1f\x8b\x08" + body, LIMIT)


@pytest.mark.parametrize("row", [b'{"path":"/a"}', b'{"path":1}', b"1"])
@pytest.mark.parametrize("lines", [False, True], ids=["array", "lines"])
def test_rows_past_the_limit_are_refused_whatever_they_are(row: bytes, lines: bool) -> None:
    many = [row] * (HITS_MAX + 1)
    with pytest.raises(BodyTooLarge, match="holds 10001 hits"):
        of_post(b"\n".join(many) if lines else b"[" + b",".join(many) + b"]", lines, NOW)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-le", "utf-8-sig"])
def test_array_in_another_encoding_than_utf_8_is_refused(encoding: str) -> None:
    body = '[{"path":"/a"}]'.encode(encoding)
    for lines in (False, True):
        with suppress(InvalidBody):
            assert of_post(body, lines, NOW).hits == []


def test_nesting_as_deep_as_a_parser_just_takes_is_taken_or_refused() -> None:
    for depth in range(900, 1_010):
        with suppress(IngestError):
            of_post(b"[" * depth + b"]" * depth, lines=False, now=NOW)


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
            assert of_post(body, lines, NOW).hits == []
        except IngestError:
            continue
    with pytest.raises(IngestError):
        of_beacon(body, "", NOW)
