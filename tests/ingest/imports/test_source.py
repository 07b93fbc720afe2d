"""A log as a stream: peeking takes nothing, blocks are whole lines, and a file truncated meanwhile ends there."""

import gzip
import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidLog
from ingest.imports import source
from ingest.imports.files import open_source, unpack
from ingest.imports.source import COMPARED_BYTES, HEAD_LINES, Source


def source_of(content: bytes) -> Source:
    return unpack("log", io.BytesIO(content))


def blocks(log: Source) -> list[bytes]:
    return list(iter(log.take_lines, b""))


@settings(deadline=None, derandomize=True)
@given(st.binary(max_size=60).map(b"a".__add__), st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=6))
def test_bytes_are_taken_once_in_order_after_any_peeks(content: bytes, steps: list[tuple[bool, int]]) -> None:
    """The content begins with an `a`, because the first bytes of compressed data may also be generated."""
    log, taken = source_of(content), 0
    for is_taken, size in steps:
        expected = content[taken : taken + size]
        assert log.peek(size) == expected
        if is_taken:
            assert log.take(size) == expected
            taken += len(expected)
        assert log.taken == taken
    assert log.take(100) == content[taken:]


@pytest.mark.parametrize("block_bytes", [1, 7, 40, 1_000])
def test_block_ends_with_a_line_unless_the_line_is_longer(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    lines = [b"a\n", b"\n", b"bc" * 20 + b"\n", b"d" * 50 + b"\n", b"e\n"] * 9
    monkeypatch.setattr(source, "BLOCK_BYTES", block_bytes)
    parts = blocks(source_of(b"".join(lines) + b"end"))
    assert b"".join(parts) == b"".join(lines) + b"end"
    assert all(len(block) <= block_bytes for block in parts)
    assert all(block.endswith(b"\n") or len(block) == block_bytes for block in parts[:-1])


@pytest.mark.parametrize("block_bytes", [1, 7, 40, 1_000])
@pytest.mark.parametrize("last_line_bytes", [1, 5, 2_000])
def test_file_is_split_into_the_blocks_of_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, last_line_bytes: int
) -> None:
    content = b"\n".join([b"a", b"", b"bc" * 20, b"d" * 50, b"e"] * 9) + b"\nend"
    file, counts = tmp_path / "log", list[int]()
    file.write_bytes(content)
    monkeypatch.setattr(source, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(source, "LAST_LINE_BYTES", last_line_bytes)
    with open_source(str(file), counts.append) as log:
        log.peek(3)
        assert blocks(log) == blocks(source_of(content))
    assert sum(counts) == len(content)


@pytest.mark.parametrize("ahead", [1, 22, 23, 24, 60, 200])
def test_blocks_continue_after_what_was_peeked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    content = b"".join(b"line %d\n" % number for number in range(30))
    file, counts = tmp_path / "log", list[int]()
    file.write_bytes(content)
    monkeypatch.setattr(source, "BLOCK_BYTES", 23)
    with open_source(str(file), counts.append) as log:
        assert log.take(7) == content[:7]
        assert log.peek(ahead) == content[7 : 7 + ahead]
        assert b"".join(blocks(log)) == content[7:]
    assert sum(counts) == len(content)


@pytest.mark.parametrize(("size", "rest"), [(0, b""), (22, b"ab"), (31, b"abcd\nabcd\na"), (70, b"abcd\n" * 10)])
def test_file_truncated_while_it_is_read_ends_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, rest: bytes
) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"abcd\n" * 20)
    monkeypatch.setattr(source, "BLOCK_BYTES", 23)
    with open_source(str(file)) as log:
        assert log.take_lines() == b"abcd\n" * 4
        os.truncate(file, size)
        assert b"".join(blocks(log)) == rest


def test_lines_added_after_the_end_was_read_are_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"one\n")
    with open_source(str(file)) as log:
        assert log.peek(100) == b"one\n"
        with file.open("ab") as writer:
            writer.write(b"two\n")
        assert log.take(100) == b"one\n"
        assert log.take(100) == b""


@pytest.mark.parametrize("block_bytes", [5, 300, 4_000])
def test_last_bytes_are_known_at_the_end_and_at_the_last_line_end(block_bytes: int) -> None:
    lines, half = b"".join(b"line %d\n" % number for number in range(200)), b"half a line"
    log = source_of(lines + half)
    while log.take(block_bytes):
        pass
    assert log.first == lines[:COMPARED_BYTES]
    assert log.before(len(lines)) == lines[-COMPARED_BYTES:]
    assert log.before(len(lines + half)) == (lines + half)[-COMPARED_BYTES:]


@pytest.mark.parametrize(
    ("content", "head"),
    [
        (b"", [b""]),
        (b"a\nb\nc", [b"a", b"b"]),
        (b"no line end", [b"no line end"]),
        (b"x\n" * 150, [b"x"] * HEAD_LINES),
    ],
)
def test_head_is_the_first_whole_lines(content: bytes, head: list[bytes]) -> None:
    log = source_of(content)
    assert log.head() == head
    assert log.take(len(content) + 1) == content


def test_truncated_compressed_data_is_an_invalid_log() -> None:
    log = source_of(gzip.compress(b"line\n" * 1_000)[:-10])
    with pytest.raises(InvalidLog, match="log is not complete gzip data"):
        log.take(10_000)
