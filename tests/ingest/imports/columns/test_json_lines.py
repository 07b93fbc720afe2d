"""Blocks of JSON lines that are parsed by columns give the result of the parser of their format."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats import detect
from ingest.formats.page_filter import Pages
from ingest.formats.request import LINE_BYTES_MAX
from ingest.imports import chunk
from ingest.imports.chunk import Block
from ingest.imports.columns import json_lines
from ingest.imports.request_cache import RequestCache
from ingest.imports.rows import PARSED_HITS
from tests.ingest.formats.test_json_lines import PATHS, SAMPLES, line
from tests.ingest.imports.columns.test_combined import Views, by_the_parser, counts, rows
from tests.rounds import rounds

PAGES = Pages(include=("/feed.xml",), exclude=("/admin*",))
EVIDENCE = {
    "caddy": ("request.client_ip", "request.headers.Accept", "request.headers.Accept-Language"),
    "cloudflare": ("ClientIP", "RequestHeaders", "ClientCountry"),
    "vercel": ("proxy.clientIp", "requestId"),
    "netlify": ("client_ip", "log_type", "country"),
}
FIELDS = {product: (*paths, *EVIDENCE[product]) for product, paths in PATHS.items()}
KINDS = {
    "caddy": ("logger", ["http.log.access", "http.log.access.x", "http.log.error", "tls", "", 1, None]),
    "cloudflare": ("WorkerSubrequest", [True, False, "true", 0, None]),
    "vercel": ("source", ["build", "lambda", None]),
    "netlify": ("log_type", ["traffic", "function", "", None]),
}


def by_columns(lines: list[bytes], product: str, pieces: int = 1) -> tuple[Views, Counter[str], Views]:
    """Return the views of lines that are parsed in blocks of equally many lines, and the number of skipped lines."""
    format, requests = detect.named(product, ()), RequestCache(PAGES)
    views: Views = Counter()
    skipped: Counter[str] = Counter()
    counted: Views = Counter()
    for number in range(pieces):
        part = lines[len(lines) * number // pieces : len(lines) * (number + 1) // pieces]
        result = chunk.parse(Block(b"".join(each + b"\n" for each in part), False, is_last=False), format, requests)
        assert (result.lines, result.hits.schema) == (len(part), PARSED_HITS)
        views += Counter(rows(result.hits))
        skipped += result.skipped
        counted += sum(map(counts, result.requests), Views())
    return views, skipped, counted


def left_to_the_parser(lines: list[bytes], product: str) -> list[int]:
    parser = detect.named(product, ()).json
    assert parser is not None
    return json_lines.parse(b"".join(each + b"\n" for each in lines), parser, RequestCache(PAGES)).unparsed


# Generated lines: up to three fields are odd

TEXTS = [
    "", "-", "a", "\x00", "a\x1fb", "\x7f", "\x85", "\u2028", "\ud800", "\ufffd", "ä", "\U0001f600", "\\", '"',
    "\ufeff", "a" * 64, "a" * 65, "a" * 1_024, "a" * 1_025, "ä" * 1_024, "a" * 8_192, "a" * 8_193, "x" * 70_000,
    "/a/", "/a?utm_source=x", "/a.css", "/feed.xml", "/admin/x", "/a b", "-?x", "?a", "/ä", "/%zz", "/a#b", "*",
    "https://example.com/b/", "http://", "POST", "get", "M-SEARCH", "G T", "text/markdown", "192.0.2.1", "404", "0",
    "2026-09-15T12:00:00Z", "2026-02-30T12:00:00Z", "2028-02-29T23:59:60Z", "15/Sep/2026:12:00:00 +0000",
    "2026-09-15 12:00:00", "2026-12-31T23:59:59.123456Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00",
    "1789473600",
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 1.5, -0.5, 200, 299, 299.5, 300, 304, 404, 999, 40_000, 10**30, 1e300, 1789473600, 1789473600.1234567,
    1789473600.5, 1789473600123, 1789473600123.5, 1789473600123456, 1789473600123456789, 2**63 - 1, 2**63, 9 * 10**9,
    9_007_199_254.740993, 99_999_999_999, 10**11, 10**14, 10**17, 0.0000005, 0.0000015, 1e9,
]  # fmt: skip
NESTED: list[Any] = [
    None, True, False, [], {}, [""], ["a", "b"], [1], [None], [[]], {"a": 1}, {"accept": "text/markdown"},
    {"accept": ["a"]}, {"accept": None}, {"accept": 1}, ["\ud800"], ["a" * 16_385], ...,
]  # fmt: skip
odd = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(TEXTS).map(lambda text: [text]),
    st.sampled_from(NUMBERS),
    st.sampled_from(NESTED),
)
RAW = [
    b"", b" ", b"\r", b"{", b"}", b"{}", b"[]", b"null", b"1", b'"', b"{}{}", b'{"a":', b'"}', b'{"a":"', b"\xff",
    b"\xef\xbb\xbf{}", b'{"a":' + b"[" * 3_000 + b"]" * 3_000 + b"}", b"{" * 3_000 + b"}",
    b'192.0.2.1 - - [x] "GET / HTTP/1.1" 200 1 "-" "-"',
]  # fmt: skip


@st.composite
def log_lines(draw: st.DrawFn, product: str) -> bytes:
    """Return a line of a product, which may be damaged or have odd or repeated fields."""
    paths = draw(st.lists(st.sampled_from(FIELDS[product]), max_size=3, unique=True))
    changed = {path: draw(odd) for path in paths}
    if draw(st.integers(0, 5)) == 0:
        name, kinds = KINDS[product]
        changed[name] = draw(st.sampled_from(kinds))
    if product == "vercel":
        changed.setdefault("requestId", str(draw(st.integers(0, 6))))
    text = written(product, changed, is_ascii=draw(st.booleans()))
    damage = draw(st.sampled_from(["", "", "", "", "cut", "twice", "key", "latin", "space", "return", "long"]))
    key = f'"{FIELDS[product][0].split(".")[0]}":'.encode()
    return {
        "": text,
        "cut": text[: draw(st.integers(0, len(text)))],
        "twice": text + text,
        "key": text[:-1] + b"," + key + draw(st.sampled_from([b"1", b'"a"', b"null", b"{}"])) + b"}",
        "latin": text[:-1] + b',"x":"caf\xe9"}',
        "space": b" " + text + b" ",
        "return": text + b"\r",
        "long": text + b" " * (LINE_BYTES_MAX - len(text) + draw(st.integers(-1, 1))),
    }[damage]


def written(product: str, changed: dict[str, Any], *, is_ascii: bool) -> bytes:
    """Return a line with changed fields. A lone surrogate can only be written as an escape."""
    fields = json.loads(line(product))
    for path, value in changed.items():
        *parents, name = path.split(".")
        parent = fields
        for key in parents:
            parent = parent[key] if isinstance(parent, dict) and isinstance(parent.get(key), dict) else {}
        if value is ...:
            parent.pop(name, None)
        else:
            parent[name] = value
    try:
        return json.dumps(fields, ensure_ascii=is_ascii, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(fields).encode()


def blocks(product: str) -> st.SearchStrategy[tuple[str, list[bytes]]]:
    one = st.one_of(log_lines(product), log_lines(product), st.just(line(product)), st.sampled_from(RAW))
    return st.tuples(st.just(product), st.lists(one, min_size=1, max_size=9))


@pytest.mark.long
@settings(max_examples=rounds(1_500))
@given(st.sampled_from(list(SAMPLES)).flatmap(blocks), st.integers(1, 3))
def test_lines_parsed_by_columns_are_those_of_the_parser(
    product_and_lines: tuple[str, list[bytes]], pieces: int
) -> None:
    product, lines = product_and_lines
    assert by_columns(lines, product, pieces) == by_the_parser(lines, product, PAGES)


@pytest.mark.long
@pytest.mark.parametrize("product", list(SAMPLES))
def test_each_odd_value_of_each_field_gives_the_result_of_the_parser(product: str) -> None:
    for path in FIELDS[product]:
        values = [*TEXTS, *([text] for text in TEXTS), *NUMBERS, *NESTED]
        lines = [written(product, {path: value}, is_ascii=True) for value in values]
        if product == "vercel":
            lines = [each.replace(b"643af4e3", b"%d" % number) for number, each in enumerate(lines)]
        assert by_columns(lines, product) == by_the_parser(lines, product, PAGES), path


@pytest.mark.parametrize("product", list(SAMPLES))
@pytest.mark.parametrize("end", [b"", b"\r"])
def test_plain_lines_are_not_left_to_the_parser(product: str, end: bytes) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {PATHS[product][1]: "POST"},
        {PATHS[product][3]: 404},
        {PATHS[product][2]: "/a.css"},
        {PATHS[product][4]: ["https://example.org/ä"] if product == "caddy" else "https://example.org/ä"},
    ]
    lines = [line(product, **changed) + end for changed in changes]
    if product == "vercel":
        lines = [each.replace(b"643af4e3", b"%d" % number) for number, each in enumerate(lines)]
    assert left_to_the_parser(lines, product) == []
    assert by_columns(lines, product) == by_the_parser(lines, product, PAGES)
    assert by_columns(lines, product)[0].total() == 4  # one of them was answered with 404, and one is an asset


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 600])
def test_only_the_malformed_line_of_a_block_is_left_to_the_parser(number: int) -> None:
    lines = [line("netlify", path=f"/{place}") for place in range(601)]
    lines[number] = lines[number][:-1]
    assert left_to_the_parser(lines, "netlify") == [number]
    assert by_columns(lines, "netlify") == by_the_parser(lines, "netlify", PAGES)


def test_request_ids_of_a_limited_number_are_remembered_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.formats.json_lines.REQUEST_IDS_MAX", 30)
    lines = [line("vercel", requestId=str(number)) for number in [*range(40), *reversed(range(40))]]
    expected = by_the_parser(lines, "vercel", PAGES)
    assert by_columns(lines, "vercel", pieces=3) == expected
    assert (expected[0].total(), expected[1]) == (50, {"not_a_request": 30})


def test_malformed_lines_have_their_numbers_and_reasons() -> None:
    lines = [line("caddy"), b"no", line("caddy", ts="x"), b"", line("caddy")]
    block = Block(b"".join(each + b"\n" for each in lines), starts_mid_line=False, is_last=True)
    result = chunk.parse(block, detect.named("caddy", ()), RequestCache(PAGES))
    assert [number for number, _ in result.malformed] == [2, 3]
    assert "its time is not like" in result.malformed[1][1]
    assert result.skipped == {"malformed": 2, "not_a_request": 1}
