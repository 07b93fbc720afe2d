"""Parsing ahead: chunks in order, a bounded number ahead of the caller, and no thread left behind."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from ingest.errors import LedgerIncomplete
from ingest.formats import detect
from ingest.formats.page_filter import DEFAULT_PAGES
from ingest.imports import prefetch
from ingest.imports.chunk import Block, ParseResult
from ingest.imports.fingerprint import Fingerprint, fingerprint
from tests.ingest.formats.test_clf import line

COMBINED = detect.named("combined", ())
Prepared = tuple[list[str], bytes]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", 2)
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("import")] == []


def block(number: int, last: int) -> bytes:
    return line(b"GET /%d HTTP/1.1" % number) + (b"\nunfinished" if number == last else b"\n")


def blocks(count: int, read: list[int]) -> Iterator[Block]:
    for number in range(count):
        read.append(number)
        yield Block(block(number, count - 1), starts_mid_line=False, is_last=number == count - 1)


def prepare(result: ParseResult, fingerprint: Fingerprint) -> Prepared:
    return result.hits["path"].to_pylist(), fingerprint.digest


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_chunks_come_in_order_with_the_fingerprint_of_their_bytes(count: int, is_stream: bool) -> None:
    with closing(prefetch.chunks(blocks(count, []), COMBINED, DEFAULT_PAGES, prepare, is_stream)) as chunks:
        results = list(chunks)
    expected = []
    for first in range(0, count, 2):
        numbers = range(first, min(first + 2, count))
        data = b"".join(block(number, count - 1) for number in numbers).removesuffix(b"unfinished")
        expected.append(([f"/{number}" for number in numbers], fingerprint(data).digest))
    assert results == expected


@pytest.mark.parametrize(("is_stream", "read_before_the_first"), [(False, 4), (True, 2)])
def test_one_chunk_is_prepared_ahead_but_none_of_a_stream(is_stream: bool, read_before_the_first: int) -> None:
    read: list[int] = []
    with closing(prefetch.chunks(blocks(9, read), COMBINED, DEFAULT_PAGES, prepare, is_stream)) as chunks:
        next(chunks)
        assert len(read) == read_before_the_first


@pytest.mark.parametrize(
    ("before_end", "sizes"), [(None, [4, 4, 2]), (3, [4, 4, 2]), (4, [4, 4, 2]), (5, [4, 2, 4]), (6, [4, 3, 3])]
)
def test_end_of_a_log_is_a_chunk_by_itself_unless_the_chunk_before_it_is_short(
    before_end: int | None, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", 4)
    read = (replace(each, is_before_end=number == before_end) for number, each in enumerate(blocks(10, [])))
    with closing(prefetch.chunks(read, COMBINED, DEFAULT_PAGES, prepare, False)) as chunks:
        assert [len(paths) for paths, _ in chunks] == sizes


def test_error_of_a_thread_is_raised_where_its_chunk_is_due() -> None:
    def fail(result: ParseResult, fingerprint: Fingerprint) -> Prepared:
        if "/2" in result.hits["path"].to_pylist():
            raise LedgerIncomplete("gone")
        return prepare(result, fingerprint)

    with closing(prefetch.chunks(blocks(9, []), COMBINED, DEFAULT_PAGES, fail, is_stream=False)) as chunks:
        assert next(chunks)[0] == ["/0", "/1"]
        with pytest.raises(LedgerIncomplete, match="gone"):
            next(chunks)
