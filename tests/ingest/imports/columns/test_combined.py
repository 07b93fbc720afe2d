"""Parsing by columns, with the remaining lines left to the parser, gives the result of the parser alone."""

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidLine
from ingest.formats import detect
from ingest.formats.page_filter import DEFAULT_PAGES, Pages, page_view
from ingest.formats.request import LINE_BYTES_MAX
from ingest.hits.hit import Hit
from ingest.imports.columns import combined
from ingest.imports.columns.asked import ASKED, asked_table
from ingest.imports.columns.combined import SHAPES
from ingest.imports.request_cache import RequestCache
from ingest.imports.rows import PARSED_HITS, hits_table
from tests.ingest.formats.test_clf import FIREFOX, line
from tests.rounds import rounds
from tests.warehouse.site import ROOT

SAMPLE = ROOT / "sample_data" / "access.log"
PAGES = Pages(include=("/feed.xml",), exclude=("/admin*",))
Views = Counter[tuple[object, ...]]


def by_the_parser(lines: list[bytes], name: str, pages: Pages) -> tuple[Views, Counter[str], Views]:
    """Return the views of lines that are parsed one by one, the number of skipped lines by reason, and the requests."""
    parse = detect.named(name, ()).parse
    views: Views = Counter()
    skipped: Counter[str] = Counter()
    asked = []
    for each in lines:
        try:
            request = parse(each[:LINE_BYTES_MAX])
            view = page_view(request, pages) if request else "not_a_request"
            asked += [request] if request else []
        except InvalidLine:
            view = "malformed"
        if isinstance(view, Hit):
            views[tuple(hits_table([view]).to_pylist()[0].values())] += 1
        else:
            skipped[view] += 1
    counted: Views = Counter()
    for request in asked:  # one by one, so that only the table of one request is used
        counted += counts(asked_table([request]))
    return views, skipped, counted


def counts(table: pa.Table) -> Views:
    """Return the number of each of the requests of a table of ASKED."""
    assert table.schema == ASKED
    return Counter(rows(table))


def by_columns(lines: list[bytes], name: str, pages: Pages) -> tuple[Views, Counter[str], Views]:
    block = b"".join(each + b"\n" for each in lines)
    columns = combined.parse(block, SHAPES[name], RequestCache(pages))
    assert columns.lines == len(lines)
    views, skipped, counted = by_the_parser([lines[place] for place in columns.unparsed], name, pages)
    assert columns.hits.schema == PARSED_HITS
    counted += counts(columns.requests)
    return views + Counter(rows(columns.hits)), skipped + Counter(columns.skipped), counted


def rows(views: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in views.to_pylist()]


def vhost(request: bytes = b"GET /a HTTP/1.1", **fields: bytes) -> bytes:
    return b"example.com:443 " + line(request, **fields)


def common(request: bytes = b"GET /a HTTP/1.1", **fields: bytes) -> bytes:
    return line(request, **fields).rsplit(b' "', 2)[0]


# Generated lines: most fields are plain, at most two of a line are odd

plain_paths = st.sampled_from([b"/", b"/a", b"/a/b/", b"/index.html", b"/a.css", b"/feed.xml", b"/admin/x", b"/a?x=1"])
odd_targets = st.sampled_from(
    [
        b"", b"-", b"*", b"a", b"//", b"/%41%2f%zz", b"/%e4", "/ä".encode(), "/ä".encode("latin-1"), b"/a\x00", b"/a b",
        b"/\\x41", b"/\\", b"/a#b?c", b"/?utm_source=x", b"/a?utm_source=%00%FF&utm_source=y", b"?utm_source=", b"/$1",
        b"http://example.com/a/", b"HTTPS://example.com", b"http://", b"http://?utm_source=a", b"example.com:443",
        b"/" + b"a" * 2_047, b"/" + b"a" * 2_048, b"/" + b"%" * 1_000, b"/a?" + b"b" * 8_190, b"/" + b"a" * 9_000,
        b"/a.CSS", b"/robots.txt", b"/.well-known/x", b"/a/index.html?q", b"/[a]", b"/{a}", b"/a|b", b"/a'b",
    ]
)  # fmt: skip
REQUESTS = [
    b"get /a HTTP/1.1", b"POST /a HTTP/1.1", b"GETA /a HTTP/1.1", b"G3T /a HTTP/1.1", b"GET /a", b"-", b"",
    b"GET /a HTTP/1.10", b"GET /a HTTP/11", b"GET  /a HTTP/1.1", b"GET /a http/1.1", b"GET /a HTTP/1.1 ",
    b"\\x16\\x03\\x01", b"\x16\x03\x01", b'GET /a\\" HTTP/1.1', b'GET /a" HTTP/1.1', b"GET /a HTTP/1.1\\",
    "GET /a HTTP/\u0661.1".encode(), "GÉT /a HTTP/1.1".encode(), b"GET /a\tHTTP/1.1", b"GET /a\xa0b HTTP/1.1",
]  # fmt: skip
requests = st.one_of(
    plain_paths.map(lambda path: b"GET " + path + b" HTTP/1.1"),
    plain_paths.map(lambda path: b"GET " + path + b" HTTP/2"),
    odd_targets.map(lambda target: b"GET " + target + b" HTTP/1.1"),
    st.sampled_from(REQUESTS),
)  # fmt: skip
TEXTS = [
    b"", b" ", b" -", b"--", b'\\"', b"\\", b"\\\\", b'\\\\"', b'a\\"b', b'a"b', b'"', b'""', b'" "', b'" "x',
    b"\\x22", b"\\x", b"\\t", b"\t", b"\x00", b"\x01", b"\x7f", b"\xff", b"\xe4", "ä".encode(), b"\xc2",
    "\u2028".encode(), "\x85".encode(), "\ufffd".encode(), "\ud800".encode(errors="surrogatepass"), b"\r",
    b"a\rb", b"a" * 1_024, b"a" * 1_025, b"$", b"$1", b"\xef\xbb\xbf", b"#",
    b"https://example.org/?q=1", b"GPTBot/1.3", "ä".encode() * 8_000, b"\xf0\x9f\x98\x80", b"x" * 70_000,
]  # fmt: skip
texts = st.one_of(
    st.just(b"-"),
    st.just(FIREFOX.encode()),
    st.sampled_from(TEXTS),
    st.binary(max_size=8).map(lambda text: text.replace(b"\n", b"")),
)  # fmt: skip
TIMES = [
    b"15/Sep/2026:12:34:56 -0730", b"29/Feb/2028:00:00:00 +0000", b"29/Feb/2027:00:00:00 +0000",
    b"30/Feb/2028:00:00:00 +0000", b"31/Apr/2026:00:00:00 +0000", b"31/Dec/2016:23:59:60 +0000",
    b"01/Jan/0001:00:00:00 +0100", b"01/Jan/0001:00:00:00 +0000", b"31/Dec/9999:23:59:59 -0100",
    b"31/Dec/9999:23:59:59 +0000", b"31/Dec/1969:23:59:59 +0000", b"00/Jan/2026:00:00:00 +0000",
    b"15/sep/2026:12:34:56 +0000", b"15/Sep/2026:24:00:00 +0000", b"15/Sep/2026:12:60:00 +0000",
    b"15/Sep/2026:12:34:56 +2400", b"15/Sep/2026:12:34:56 +1399", b"15/Sep/2026:12:34:56 0000", b"-", b"",
    b"15/Sep/2026:12:34:56 +1400", b"15/Sep/2026:12:34:56 +0060", b"2026-09-15T12:34:56Z", b"1/Sep/2026", b"[",
    "\u0661\u0665/Sep/2026:12:34:56 +0000".encode(),
    b"15/Sep/2026:12:34:56  +0000", b"a] [15/Sep/2026:12:34:56 +0000",
]  # fmt: skip
times = st.one_of(
    st.just(b"15/Sep/2026:12:34:56 +0000"),
    st.sampled_from(TIMES),
)  # fmt: skip
words = st.sampled_from(
    [b"-", b"ana", b"Ana Maria", b"a[b", b"[", b"]", b"", b" ", b'"', b"\\", b"a\xe4", b"$", b"a\tb", b"\x01", b"a\rb"]
)
hosts = st.sampled_from(
    [
        b"192.0.2.1", b"2001:db8::1", b"example.com", b"-", b"", b"\xff", b"#", b"a b", b" 192.0.2.1", b"x" * 9_000,
        b"\xef\xbb\xbf192.0.2.1", b"x^", b"x\x9c", b"\x1f\x8b", b"\x28\xb5\x2f\xfd",
    ]
)  # fmt: skip
statuses = st.sampled_from(
    [b"200", b"304", b"404", b"299", b"20", b"2000", b"-", b"", "\u0662\u0660\u0660".encode(), b"000"]
)
sizes = st.sampled_from([b"1234", b"-", b"", b"-1", b"1 2", "\u0661".encode(), b"9" * 30, b"0x1", b'"'])
fields = {
    "host": hosts,
    "user": words,
    "time": times,
    "status": statuses,
    "size": sizes,
    "referrer": texts,
    "user_agent": texts,
}
ends = st.sampled_from(
    [b"", b"", b"", b"\r", b"\r\r", b" ", b" -", b' "x" 0.003', b"x", b'"', b" \\", b' "', b'""', b"\xff"]
)


@st.composite
def near_lines(draw: st.DrawFn, make: Callable[..., bytes]) -> bytes:
    """Return a line with up to two odd fields, which may be truncated or have text after its end."""
    odd = draw(st.lists(st.sampled_from([*fields, "request"]), max_size=2))
    values = {name: draw(fields[name]) for name in odd if name != "request"}
    request = draw(requests) if "request" in odd else b"GET " + draw(plain_paths) + b" HTTP/1.1"
    whole = make(request, **values) + draw(ends)
    end = draw(st.integers(0, len(whole))) if draw(st.integers(0, 9)) == 0 else len(whole)
    return whole[:end]


junk = st.one_of(
    st.sampled_from(
        [b"", b" ", b"\r", b"-", b"\t", b'"' * 9, b"\x01", b'"\x01', b"#Fields: a", b"{}", b"\xef\xbb\xbf"]
    ),
    st.binary(max_size=30).map(lambda text: text.replace(b"\n", b"")),
)
anything = st.one_of(near_lines(line), near_lines(line), near_lines(vhost), near_lines(common), junk)
plain = st.builds(line, plain_paths.map(lambda path: b"GET " + path + b" HTTP/1.1"))
hosted = st.builds(vhost, plain_paths.map(lambda path: b"GET " + path + b" HTTP/1.1"))
uncommon = st.builds(common, plain_paths.map(lambda path: b"GET " + path + b" HTTP/1.1"))


@pytest.mark.long
@settings(max_examples=rounds(1_200))
@given(st.lists(anything | plain | hosted | uncommon, min_size=1, max_size=12), st.sampled_from(sorted(SHAPES)))
def test_columns_and_parser_together_give_the_result_of_the_parser_alone(lines: list[bytes], name: str) -> None:
    assert by_columns(lines, name, PAGES) == by_the_parser(lines, name, PAGES)


@pytest.mark.parametrize(("name", "make"), [("combined", line), ("vhost-combined", vhost), ("common", common)])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_plain_lines_are_parsed_by_columns(name: str, make: Callable[..., bytes], end: bytes) -> None:
    lines = [make(), make(b"POST /b HTTP/2"), make(b"GET /c?q HTTP/1.0", status=b"404", size=b"-"), make(user=b"ana")]
    lines.append(make(b"GET /c.css HTTP/1.0", status=b"500"))
    columns = combined.parse(b"".join(each + end for each in lines), SHAPES[name], RequestCache(DEFAULT_PAGES))
    assert (columns.lines, columns.unparsed, columns.skipped) == (5, [], {"method": 1, "status": 1})
    assert columns.hits.select(["path", "status"]).to_pylist() == [
        {"path": "/a", "status": 200},
        {"path": "/c", "status": 404},
        {"path": "/a", "status": 200},
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_missing_quote_of_a_line_is_not_replaced_by_a_quote_of_another_line(name: str) -> None:
    make = {"combined": line, "vhost-combined": vhost, "common": common}[name]
    cut = {"combined": make()[:-1], "vhost-combined": make()[:-1], "common": make().replace(b'1.1"', b"1.1")}[name]
    others = [
        b"", b'"', b'""""""', make() + b'"', make() + b'""', make() + b' "x', BOM_UTF8 + make(), b"\x01",
        make() + b'"\x01', b" ",
    ]  # fmt: skip
    for other in others:
        for lines in (
            [other, cut, make()],
            [make(), cut, other],
            [make(), other, other, cut, cut],
            [other, other, cut],
            [other, cut, cut, cut],
        ):
            assert by_columns(lines, name, PAGES) == by_the_parser(lines, name, PAGES), lines


def test_lines_with_escaped_quotes_are_left_to_the_parser_and_plain_lines_are_not() -> None:
    escaped = [line(referrer=b'a\\"b'), line(user_agent=b'\\"'), line(b'GET /a\\" HTTP/1.1'), b'\\"', b'\\"' * 9]
    others = [line(), line(user_agent=b"a\\\\x22"), line(), line(b"GET /\\x22 HTTP/1.1")]
    for lines in (
        escaped + others,
        others + escaped,
        [each for pair in zip(others, escaped, strict=False) for each in pair],
    ):
        block = b"".join(each + b"\n" for each in lines)

        columns = combined.parse(block, SHAPES["combined"], RequestCache(PAGES))
        assert {place for place, each in enumerate(lines) if each in escaped} <= set(columns.unparsed)
        assert not {place for place, each in enumerate(lines) if each == line()} & set(columns.unparsed)
        assert by_columns(lines, "combined", PAGES) == by_the_parser(lines, "combined", PAGES)


@pytest.mark.long
@pytest.mark.parametrize("odd", [b"", line()[:-1], line() + b'"', line(referrer=b'\\"')])
def test_only_the_odd_lines_of_a_large_block_are_left_to_the_parser(odd: bytes) -> None:
    lines = [line(b"GET /%d HTTP/1.1" % number) for number in range(20_000)]
    places = [0, 1, 9_999, 10_000, 10_001, 19_999]
    for place in places:
        lines[place] = odd
    columns = combined.parse(b"".join(each + b"\n" for each in lines), SHAPES["combined"], RequestCache(PAGES))
    assert (columns.lines, columns.unparsed, columns.hits.num_rows) == (20_000, places, 20_000 - len(places))


def test_sample_log_is_parsed_by_columns_except_for_a_few_odd_lines() -> None:
    block = SAMPLE.read_bytes()
    columns = combined.parse(block, SHAPES["combined"], RequestCache(DEFAULT_PAGES))
    lines = block.split(b"\n")[:-1]
    left = [lines[place] for place in columns.unparsed]
    assert columns.lines == len(lines)
    assert 0 < len(left) < len(lines) / 100
    assert all(b"\\" in each or not each.isascii() for each in left if by_the_parser([each], "combined", PAGES)[0])


ODD = [
    *({"time": time} for time in TIMES),
    *({"referrer": text} for text in TEXTS),
    *({"user_agent": text} for text in TEXTS),
    *({"referrer": b'a" ' + text + b' "b'} for text in (b"", b"x", b'"', b"\\")),
    *({"request": request} for request in REQUESTS),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "make", "changed"),
    [
        ("combined", line, {}),
        ("combined", line, {"request": b"POST /a HTTP/1.1"}),
        ("combined", line, {"status": b"404"}),
        ("vhost-combined", vhost, {}),
        ("common", common, {}),
    ],
)
def test_line_with_one_odd_field_gives_the_result_of_the_parser_for_any_method_and_status(
    name: str, make: Callable[..., bytes], changed: dict[str, bytes]
) -> None:
    for odd in ODD:
        odd_line = make(**{**changed, **odd})
        assert by_columns([odd_line], name, PAGES) == by_the_parser([odd_line], name, PAGES), odd_line[:300]


@pytest.mark.long
@pytest.mark.parametrize("field", ["referrer", "user_agent"])
def test_field_near_its_maximum_length_gives_the_result_of_the_parser_anywhere_in_a_block(field: str) -> None:
    for before in (0, 40, 79, 81):
        for characters in (1_023, 1_024, 1_025, 12_000):
            lines = [line(b"GET /%d HTTP/1.1" % number) for number in range(before)]
            lines.append(line(**{field: b"a" * characters}))
            views, *others = by_columns(lines, "combined", PAGES)
            assert (views, *others) == by_the_parser(lines, "combined", PAGES)
            assert views.total() == before + 1


@pytest.mark.parametrize(
    "magic", [b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd", b"BZh9", b"\xef\xbb\xbf"]
)
def test_block_that_begins_like_compressed_data_is_parsed_as_lines(magic: bytes) -> None:
    lines = [line(host=magic + b"a"), line(b"GET /b HTTP/1.1")]
    assert by_columns(lines, "combined", PAGES) == by_the_parser(lines, "combined", PAGES)
    assert by_columns(lines, "combined", PAGES)[0].total() == 2


def test_time_is_parsed_in_the_zone_of_its_line() -> None:
    zones = (b"+0000", b"-0730", b"+0200", b"+0000")
    lines = [line(time=b"15/Sep/2026:12:00:00 " + zone) for zone in zones]
    assert by_columns(lines, "combined", PAGES) == by_the_parser(lines, "combined", PAGES)
    assert len({ts_us for _, ts_us, *_ in by_columns(lines, "combined", PAGES)[0]}) == 3


@pytest.mark.parametrize(
    "target",
    [
        "/a?utm_source=x&b", "/a?b&utm_source=x", "?a", "/?", "/a??", "-?", "/a%?b", "/ä?b", "/\\?b", "/a#?b",
        "/?" + "b" * 3_000,
    ],
)  # fmt: skip
def test_request_with_a_query_gives_the_result_of_the_parser(target: str) -> None:
    for method in ("GET", "POST", "get", "G3T"):
        for end in (" HTTP/1.1", " HTTP/2", " HTTP/1", "", " HTTP", " x HTTP/1.1"):
            lines = [line(f"{method} {target}{end}".encode()), line()]
            assert by_columns(lines, "combined", PAGES) == by_the_parser(lines, "combined", PAGES)


@pytest.mark.long
@pytest.mark.parametrize(
    "first", [line(), line(host=b"a\\b"), line(user=b"ana"), line(size=b"-"), b"", line(time=b"-")]
)
def test_odd_line_before_or_after_others_gives_the_result_of_the_parser(first: bytes) -> None:
    others = [line(host=b""), line(host=b"a b"), line(host=b"["), line(host=b" "), line(user=b"-["), line(user=b"- -"),
              line(size=b""), line(size=b" "), line(size=b"1 "), line(size=b"1-"), line(size=b"1:"), line(size=b"- "),
              line(host=b"\x7f"), line(user=b""), line(host=b"a - - [b")]  # fmt: skip
    for other in others:
        for lines in ([first, other], [other, first, first], [first, other, other, line()]):
            assert by_columns(lines, "combined", PAGES) == by_the_parser(lines, "combined", PAGES), lines


@pytest.mark.long
@pytest.mark.parametrize(
    "odd",
    [
        line(b"GET /a?" + b"y" * 8_190 + b" HTTP/1.1"), line(b"GET /a?" + b"y" * 2_040 + b" HTTP/1.1"),
        line(b"GET /a?" + b"y" * 2_048 + b" HTTP/1.1"), line(size=b"9" * 70 + b"x"), line(size=b"9" * 7_000),
    ],
)  # fmt: skip
def test_long_field_among_ordinary_lines_gives_the_result_of_the_parser(odd: bytes) -> None:
    for name, make in (("combined", bytes), ("common", lambda combined: combined.rsplit(b' "', 2)[0])):
        lines = [make(each) for each in (*[line()] * 50, odd, *[line()] * 50)]
        assert by_columns(lines, name, PAGES) == by_the_parser(lines, name, PAGES)


def test_empty_block_has_no_page_view() -> None:
    columns = combined.parse(b"", SHAPES["combined"], RequestCache(DEFAULT_PAGES))
    assert (columns.lines, columns.hits.num_rows, columns.unparsed) == (0, 0, [])
