"""A log cut into blocks says the same wherever it is cut, and waits for a last line that has no end."""

import io
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats import detect
from ingest.formats.page_filter import DEFAULT_PAGES
from ingest.imports import chunk, source
from ingest.imports.chunk import LINE_BYTES_MAX, Block, Said, blocks, joined, read
from ingest.imports.request_cache import Memory
from ingest.imports.source import unpacked
from tests.ingest.formats.test_clf import line
from tests.ingest.imports.test_columnar import by_the_parser, rows

COMBINED = detect.named("combined", ())


def numbered(number: int) -> bytes:
    return line(b"GET /%d HTTP/1.1" % number)


def said(content: bytes, block_bytes: int, monkeypatch: pytest.MonkeyPatch, is_growing: bool = False) -> list[Said]:
    with monkeypatch.context() as patched:
        patched.setattr("ingest.imports.source.BLOCK_BYTES", block_bytes)
        memory = Memory(DEFAULT_PAGES)
        cut = blocks(unpacked("log", io.BytesIO(content)), False, is_growing)
        parts = [read(each, COMBINED, memory) for each in cut]
        return [joined(parts[first : first + 2]) for first in range(0, len(parts), 2)]


pieces = st.sampled_from(
    [b"", b"no", b"\r", line(), line(b"POST /a HTTP/1.1"), line(user_agent=b'a\\"'), b"x" * 700, b"x" * 700 + line()]
)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(pieces, max_size=12), st.integers(1, 2_000))
def test_blocks_say_the_same_wherever_they_are_cut(lines: list[bytes], block_bytes: int) -> None:
    content = b"".join(each + b"\n" for each in lines)
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = said(content, block_bytes, monkeypatch)
    # Of a line that is longer than a block no more than the block is looked at.
    lines = [each[:block_bytes] if len(each) >= block_bytes else each for each in lines]
    views, skipped = by_the_parser(lines, "combined", DEFAULT_PAGES)
    assert sum((Counter(rows(each.views)) for each in found), Counter()) == views
    assert sum((each.skipped for each in found), Counter()) == skipped
    assert sum(each.lines for each in found) == len(lines)
    assert sum(each.bytes for each in found) == len(content)
    assert not found or not found[-1].is_cut


@pytest.mark.parametrize("block_bytes", [1, 7, 40, 1_000])
@pytest.mark.parametrize("last_line_bytes", [1, 5, 2_000])
def test_plain_file_is_cut_where_a_stream_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, last_line_bytes: int
) -> None:
    content = b"\n".join([b"a", b"", b"bc" * 20, b"d" * 50, b"e"] * 9) + b"\nend"
    file = tmp_path / "log"
    file.write_bytes(content)
    monkeypatch.setattr(source, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(source, "LAST_LINE_BYTES", last_line_bytes)
    counts: list[int] = []
    with source.opened(str(file), counts.append) as plain:
        plain.peek(3)
        cut = list(blocks(plain, False))
    assert cut == list(blocks(unpacked("log", io.BytesIO(content)), False))
    assert b"".join(block.data for block in cut) == content
    assert sum(counts) == len(content)


@pytest.mark.parametrize(("size", "rest"), [(0, b""), (22, b"ab"), (31, b"abcd\nabcd\na"), (70, b"abcd\n" * 10)])
def test_plain_file_that_was_shortened_meanwhile_ends_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, rest: bytes
) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"abcd\n" * 20)
    monkeypatch.setattr(source, "BLOCK_BYTES", 23)
    with source.opened(str(file)) as content:
        assert content.lines() == b"abcd\n" * 4
        os.truncate(file, size)
        assert b"".join(iter(content.lines, b"")) == rest


@pytest.mark.parametrize("ahead", [1, 22, 23, 24, 60, 200])
def test_lines_go_on_with_what_was_peeked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    content = b"".join(b"line %d\n" % number for number in range(30))
    file = tmp_path / "log"
    file.write_bytes(content)
    monkeypatch.setattr(source, "BLOCK_BYTES", 23)
    counts: list[int] = []
    with source.opened(str(file), counts.append) as plain:
        assert plain.take(7) == content[:7]
        assert plain.peek(ahead) == content[7 : 7 + ahead]
        assert b"".join(iter(plain.lines, b"")) == content[7:]
    assert sum(counts) == len(content)


def test_malformed_lines_are_numbered_within_the_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = said(b"no\n" + line() + b"\nno\n" + line() + b"\nno\n", 200, monkeypatch)
    assert [number for number, _ in found.malformed] == [1, 3, 5]


@pytest.mark.parametrize(
    ("last", "lines", "skipped", "is_cut", "kept"),
    [
        (b"", 1, {}, False, 0),
        (line()[:40], 2, {"unfinished": 1}, False, 0),
        (line(), 2, {}, True, len(line())),
        (line() + b"\r", 2, {}, True, len(line()) + 1),
        (line() + b' "half', 2, {}, True, len(line()) + 6),
        (line(b"POST /a HTTP/1.1"), 2, {"method": 1}, True, len(line(b"POST /a HTTP/1.1"))),
    ],
)
def test_last_line_without_an_end_counts_if_it_can_be_read(
    last: bytes, lines: int, skipped: dict[str, int], is_cut: bool, kept: int
) -> None:
    first = line() + b"\n"
    found = read(Block(first + last, is_within=False, is_last=True), COMBINED, Memory(DEFAULT_PAGES))
    assert (found.lines, found.skipped, found.is_cut) == (lines, skipped, is_cut)
    assert found.bytes == len(first) + kept


@pytest.mark.parametrize("last", [line()[:40], line(), line() + b"\r"])
def test_last_line_of_a_log_that_grows_waits(last: bytes) -> None:
    first = line() + b"\n"
    growing = Block(first + last, is_within=False, is_last=True, is_growing=True)
    found = read(growing, COMBINED, Memory(DEFAULT_PAGES))
    assert (found.lines, found.skipped, found.is_cut, found.bytes) == (1, {}, False, len(first))


@pytest.mark.parametrize("rest", [b"\n", b"x\n", line() + b"\n"])
def test_rest_of_a_line_that_was_counted_is_not_looked_at(rest: bytes) -> None:
    found = read(Block(rest + numbered(1) + b"\n", is_within=True, is_last=True), COMBINED, Memory(DEFAULT_PAGES))
    assert (found.lines, found.views["path"].to_pylist(), found.is_cut) == (1, ["/1"], False)
    only = read(Block(rest, is_within=True, is_last=True), COMBINED, Memory(DEFAULT_PAGES))
    assert (only.lines, only.is_cut, only.bytes) == (0, False, len(rest))
    none = read(Block(rest[:-1] + b"x", is_within=True, is_last=True), COMBINED, Memory(DEFAULT_PAGES))
    assert (none.lines, none.is_cut, none.bytes) == (0, True, len(rest))


def test_stretch_that_ends_inside_of_a_line_says_so_although_the_log_goes_on() -> None:
    found = read(Block(b"x" * LINE_BYTES_MAX, is_within=False, is_last=False), COMBINED, Memory(DEFAULT_PAGES))
    assert (found.lines, found.is_cut) == (1, True)


def test_last_line_without_an_end_is_parsed_once_by_a_parser_that_remembers() -> None:
    """Vercel's requests write several lines, of which the first counts."""
    row = (
        b'{"id":"1","deploymentId":"d","source":"lambda","host":"h","timestamp":1789475696000,"requestId":"r",'
        b'"proxy":{"timestamp":1789475696000,"method":"GET","host":"h","path":"/a","userAgent":["GPTBot/1.3"],'
        b'"statusCode":200,"region":"x"}}'
    )
    vercel = detect.named("vercel", ())
    found = read(Block(row, is_within=False, is_last=True), vercel, Memory(DEFAULT_PAGES))
    assert (found.views["path"].to_pylist(), found.skipped) == (["/a"], {})


class Growing(io.BytesIO):
    """A file to which a line is added whenever its end was seen."""

    def read(self, size: int | None = -1) -> bytes:
        read = super().read(size)
        if not read:
            self.write(b"added\n")
            self.seek(-6, io.SEEK_CUR)
        return read


def test_what_is_added_once_the_end_was_seen_is_left_for_the_next_time() -> None:
    half = line()[:40]
    (only,) = blocks(unpacked("log", Growing(line() + b"\n" + half)), False)
    assert only == Block(line() + b"\n" + half, is_within=False, is_last=True)


@pytest.mark.parametrize("name", ["combined", "cloudflare"])
def test_short_lines_say_the_same_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a log of short lines would fill the memory with is read a piece at a time, numbered as one."""
    lines = [line(), *[b"x"] * 300, line(b"GET /b HTTP/1.1"), b"", *[b"y"] * 300, line(b"GET /c HTTP/1.1")]
    format = detect.named(name, [])
    whole = read(Block(b"\n".join(lines) + b"\n", is_within=False, is_last=True), format, Memory(DEFAULT_PAGES))
    monkeypatch.setattr(chunk, "SAMPLED_EVERY_BYTES", 64)
    monkeypatch.setattr(chunk, "SAMPLE_LINES_MAX", 3)
    in_pieces = read(Block(b"\n".join(lines) + b"\n", is_within=False, is_last=True), format, Memory(DEFAULT_PAGES))
    assert in_pieces.views.to_pylist() == whole.views.to_pylist()
    assert (in_pieces.lines, in_pieces.skipped) == (whole.lines, whole.skipped)
    assert in_pieces.malformed == whole.malformed


def test_only_the_first_malformed_lines_are_kept() -> None:
    content = b"\n".join([line(), *[b"no"] * 50]) + b"\n"
    format = detect.named("combined", [])
    found = read(Block(content, is_within=False, is_last=True), format, Memory(DEFAULT_PAGES))
    assert found.skipped == {"malformed": 50}
    assert [number for number, _ in found.malformed] == list(range(2, 2 + chunk.MALFORMED_KEPT))
