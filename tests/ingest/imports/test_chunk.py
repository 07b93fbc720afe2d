"""Blocks of a log: the result does not depend on where the log is split, and an unfinished last line is left."""

import io
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats import detect
from ingest.formats.detect import Format
from ingest.formats.page_filter import DEFAULT_PAGES
from ingest.formats.request import LINE_BYTES_MAX
from ingest.imports import chunk, log_stream
from ingest.imports.chunk import Block, ParseResult, join, parse, split
from ingest.imports.files import unpack
from ingest.imports.request_cache import RequestCache
from tests.ingest.formats.test_clf import line
from tests.ingest.imports.columns.test_combined import by_the_parser, counts, rows
from tests.rounds import rounds

COMBINED = detect.named("combined", ())


def numbered(number: int) -> bytes:
    return line(b"GET /%d HTTP/1.1" % number)


def parsed(block: Block, format: Format = COMBINED) -> ParseResult:
    return parse(block, format, RequestCache(DEFAULT_PAGES))


def results(content: bytes, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> list[ParseResult]:
    """Return the results of chunks of two blocks each."""
    with monkeypatch.context() as patched:
        patched.setattr("ingest.imports.log_stream.BLOCK_BYTES", block_bytes)
        blocks = split(unpack("log", io.BytesIO(content)), False)
        results = [parsed(block) for block in blocks]
        return [join(results[first : first + 2]) for first in range(0, len(results), 2)]


pieces = st.sampled_from(
    [b"", b"no", b"\r", line(), line(b"POST /a HTTP/1.1"), line(user_agent=b'a\\"'), b"x" * 700, b"x" * 700 + line()]
)


@pytest.mark.long
@settings(max_examples=rounds(100))
@given(st.lists(pieces, max_size=12), st.integers(1, 2_000))
def test_result_is_the_same_wherever_a_log_is_split_into_blocks(lines: list[bytes], block_bytes: int) -> None:
    content = b"".join(each + b"\n" for each in lines)
    with pytest.MonkeyPatch.context() as monkeypatch:
        chunks = results(content, block_bytes, monkeypatch)
    # Of a line that is longer than a block, only the first block is parsed.
    lines = [each[:block_bytes] if len(each) >= block_bytes else each for each in lines]
    views, skipped, counted = by_the_parser(lines, "combined", DEFAULT_PAGES)
    assert sum((counts(part) for each in chunks for part in each.requests), Counter()) == counted
    assert sum((Counter(rows(each.hits)) for each in chunks), Counter()) == views
    assert sum((each.skipped for each in chunks), Counter()) == skipped
    assert sum(each.lines for each in chunks) == len(lines)
    assert sum(each.bytes for each in chunks) == len(content)
    assert not chunks or not chunks[-1].ends_mid_line


def test_malformed_lines_are_numbered_within_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    (result,) = results(b"no\n" + line() + b"\nno\n" + line() + b"\nno\n", 200, monkeypatch)
    assert [number for number, _ in result.malformed] == [1, 3, 5]


@pytest.mark.parametrize(
    ("last", "lines", "skipped", "ends_mid_line", "read_bytes"),
    [
        (b"", 1, {}, False, 0),
        (line()[:40], 2, {"unfinished": 1}, False, 0),
        (line(), 2, {}, True, len(line())),
        (line() + b"\r", 2, {}, True, len(line()) + 1),
        (line() + b' "half', 2, {}, True, len(line()) + 6),
        (line(b"POST /a HTTP/1.1"), 2, {"method": 1}, True, len(line(b"POST /a HTTP/1.1"))),
    ],
)
def test_last_line_without_a_line_end_counts_if_it_can_be_parsed(
    last: bytes, lines: int, skipped: dict[str, int], ends_mid_line: bool, read_bytes: int
) -> None:
    first = line() + b"\n"
    result = parsed(Block(first + last, starts_mid_line=False, is_last=True))
    assert (result.lines, result.skipped, result.ends_mid_line) == (lines, skipped, ends_mid_line)
    assert result.bytes == len(first) + read_bytes


@pytest.mark.parametrize("last", [line()[:40], line(), line() + b"\r"])
def test_last_line_of_a_growing_log_is_left_until_it_ends(last: bytes) -> None:
    first = line() + b"\n"
    growing = Block(first + last, starts_mid_line=False, is_last=True, is_growing=True)
    result = parsed(growing)
    assert (result.lines, result.skipped, result.ends_mid_line, result.bytes) == (1, {}, False, len(first))


@pytest.mark.parametrize("rest", [b"\n", b"x\n", line() + b"\n"])
def test_rest_of_a_counted_line_is_skipped(rest: bytes) -> None:
    result = parsed(Block(rest + numbered(1) + b"\n", starts_mid_line=True, is_last=True))
    assert (result.lines, result.hits["path"].to_pylist(), result.ends_mid_line) == (1, ["/1"], False)
    only = parsed(Block(rest, starts_mid_line=True, is_last=True))
    assert (only.lines, only.ends_mid_line, only.bytes) == (0, False, len(rest))
    none = parsed(Block(rest[:-1] + b"x", starts_mid_line=True, is_last=True))
    assert (none.lines, none.ends_mid_line, none.bytes) == (0, True, len(rest))


def test_block_that_ends_inside_a_line_of_a_longer_log_is_marked() -> None:
    result = parsed(Block(b"x" * LINE_BYTES_MAX, starts_mid_line=False, is_last=False))
    assert (result.lines, result.ends_mid_line) == (1, True)


def test_last_line_is_parsed_once_by_a_parser_with_state() -> None:
    # Vercel writes several lines for one request; the parser counts the first.
    row = (
        b'{"id":"1","deploymentId":"d","source":"lambda","host":"h","timestamp":1789475696000,"requestId":"r",'
        b'"proxy":{"timestamp":1789475696000,"method":"GET","host":"h","path":"/a","userAgent":["GPTBot/1.3"],'
        b'"statusCode":200,"region":"x"}}'
    )
    vercel = detect.named("vercel", ())
    result = parsed(Block(row, starts_mid_line=False, is_last=True), vercel)
    assert (result.hits["path"].to_pylist(), result.skipped) == (["/a"], {})


class Growing(io.BytesIO):
    """A file to which a line is added after each read of its end."""

    def read(self, size: int | None = -1) -> bytes:
        read = super().read(size)
        if not read:
            self.write(b"added\n")
            self.seek(-6, io.SEEK_CUR)
        return read


def test_lines_added_after_the_end_was_read_are_not_in_a_block() -> None:
    half = line()[:40]
    (only,) = split(unpack("log", Growing(line() + b"\n" + half)), False)
    assert only == Block(line() + b"\n" + half, starts_mid_line=False, is_last=True)


SHORT = [line(), *[b"x"] * 300, line(b"GET /b HTTP/1.1"), b"", *[b"y", b"\r", b" \t"] * 100, line(b"GET /c HTTP/1.1")]
"""Lines of a log, a list of which would be many times the size of the log."""


@pytest.mark.parametrize("lines", [SHORT, [*[b""] * 400, b"x", line(), *[b"\r"] * 400, b"y"]])
@pytest.mark.parametrize("name", ["combined", "cloudflare"])
def test_short_lines_give_the_same_in_pieces(name: str, lines: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    format, block = detect.named(name, []), Block(b"\n".join(lines) + b"\n", starts_mid_line=False, is_last=True)
    whole = parsed(block, format)
    monkeypatch.setattr(chunk, "SAMPLED_EVERY_BYTES", 64)
    monkeypatch.setattr(chunk, "SAMPLE_LINES_MAX", 3)
    in_pieces = parsed(block, format)
    assert in_pieces.hits.to_pylist() == whole.hits.to_pylist()
    assert (in_pieces.lines, in_pieces.skipped) == (whole.lines, whole.skipped)
    assert in_pieces.malformed == whole.malformed


def test_blank_lines_are_counted_without_a_call_of_the_parser() -> None:
    """Parse 8 MB of blank lines, which gzip packs into 8 kB."""
    lines = list[bytes]()
    format = Format("other", lines.append)
    result = parsed(Block(b"first\n" + b"\n" * 2_000_000 + b" \r\n" * 2_000_000 + b"last\n", False, True), format)
    assert (result.lines, result.skipped) == (4_000_002, {"not_a_request": 4_000_002})
    assert lines == [b"first", b"last"]


def test_only_the_first_malformed_lines_are_described() -> None:
    content = b"\n".join([line(), *[b"no"] * 50]) + b"\n"
    format = detect.named("combined", [])
    result = parsed(Block(content, starts_mid_line=False, is_last=True), format)
    assert result.skipped == {"malformed": 50}
    assert [number for number, _ in result.malformed] == list(range(2, 2 + chunk.MALFORMED_SHOWN))


def test_hits_with_a_cut_text_are_counted() -> None:
    lines = [b"/" + b"a" * 2_048, b"/a", b"/a.css?" + b"a" * 3_000, b"/a?utm_source=" + b"a" * 257]
    log = (
        b"".join(line(b"GET %b HTTP/1.1" % target) + b"\n" for target in lines) + line(user_agent=b"a" * 1_025) + b"\n"
    )
    result = parsed(Block(log, False, True))
    assert (result.hits.num_rows, result.cut) == (5, 3)  # one is an asset
    assert join([result, result]).cut == 6


def test_one_block_of_a_plain_file_is_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 100)
    monkeypatch.setattr(log_stream, "LAST_LINE_BYTES", 100)
    monkeypatch.setattr(chunk, "END_BYTES", 200)
    file = tmp_path / "log"
    file.write_bytes(b"123456789\n" * 95)
    with file.open("rb", buffering=0) as opened:
        plain = [block.is_before_end for block in split(unpack("log", opened), False)]
    stream = [block.is_before_end for block in split(unpack("log", io.BytesIO(file.read_bytes())), False)]
    assert (plain, stream) == ([False] * 7 + [True, False, False], [False] * 10)
