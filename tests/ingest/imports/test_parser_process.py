"""A child process parses blocks of JSON logs: the same results as in this process, also if the child process dies."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ingest.formats import detect
from ingest.formats.page_filter import DEFAULT_PAGES, Pages
from ingest.imports import chunk, prefetch, source
from ingest.imports.chunk import Block, ParseResult
from ingest.imports.fingerprint import Fingerprint
from ingest.imports.parser_process import OtherProcess, parser_process
from ingest.imports.request_cache import RequestCache
from tests.ingest.formats.test_json_lines import line
from tests.processes.waiting import until

PAGES = Pages(include=("/feed.xml",), exclude=("/admin*",))
NETLIFY = detect.named("netlify", ())
LINES = [line("netlify", path=f"/{number}") for number in range(300)]
LINES[7], LINES[9] = LINES[7][:-1], line("netlify", method="POST")
LINES[11], LINES[12] = line("netlify", path="/admin/x"), line("netlify", path="/feed.xml")
WHOLE = Block(b"\n".join(LINES) + b"\n", starts_mid_line=False, is_last=False)


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[OtherProcess]:
    log = tmp_path / "log"
    log.write_bytes(WHOLE.data)
    with parser_process([str(log)]) as parse:
        assert parse is not None
        yield parse
    assert multiprocessing.active_children() == []


def pid() -> int:
    (process,) = multiprocessing.active_children()
    assert process.pid is not None
    return process.pid


def shown(result: ParseResult | None) -> tuple[object, ...]:
    assert result is not None
    views = result.hits.to_pylist()
    return views, result.lines, result.skipped, result.malformed, result.bytes, result.ends_mid_line


def here(block: Block) -> tuple[object, ...]:
    return shown(chunk.parse(block, NETLIFY, RequestCache(PAGES)))


def test_child_process_returns_the_results_of_this_process(other_process: OtherProcess) -> None:
    blocks = [
        WHOLE,
        Block(WHOLE.data[40:] + LINES[0][:60], starts_mid_line=True, is_last=True),
        Block(LINES[0], starts_mid_line=False, is_last=True, is_growing=True),
        Block(LINES[0], starts_mid_line=False, is_last=True),
    ]
    for block in blocks:
        assert shown(other_process(block, NETLIFY, PAGES)) == here(block)
    assert here(WHOLE)[1:3] == (300, {"malformed": 1, "method": 1, "excluded": 1})


@pytest.mark.parametrize("name", ["combined", "vercel"])
def test_blocks_of_other_formats_are_left_to_this_process(other_process: OtherProcess, name: str) -> None:
    assert other_process(WHOLE, detect.named(name, ()), PAGES) is None


def test_block_that_is_longer_than_the_shared_memory_is_left_to_this_process(other_process: OtherProcess) -> None:
    assert other_process(Block(b"x" * (source.BLOCK_BYTES + 1), False, is_last=False), NETLIFY, PAGES) is None


def test_block_is_left_to_this_process_while_the_child_process_is_busy(other_process: OtherProcess) -> None:
    os.kill(pid(), signal.SIGSTOP)
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(other_process, WHOLE, NETLIFY, PAGES) for _ in range(2)]
        until(lambda: any(each.done() for each in both))
        assert [each.result() for each in both if each.done()] == [None]
        os.kill(pid(), signal.SIGCONT)
        results = [result for result in (each.result() for each in both) if result is not None]
    assert [shown(result) for result in results] == [here(WHOLE)]


def test_blocks_are_left_to_this_process_once_the_child_process_was_killed(other_process: OtherProcess) -> None:
    os.kill(pid(), signal.SIGINT)  # Ctrl-C, which is for the import
    assert shown(other_process(WHOLE, NETLIFY, PAGES)) == here(WHOLE)
    os.kill(pid(), signal.SIGKILL)
    assert other_process(WHOLE, NETLIFY, PAGES) is None
    assert other_process(WHOLE, NETLIFY, PAGES) is None


def test_chunks_of_a_log_are_the_same_with_and_without_the_child_process(
    other_process: OtherProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(result: ParseResult, fingerprint: Fingerprint) -> tuple[object, ...]:
        return *shown(result), fingerprint.digest

    def chunks(process: OtherProcess | None) -> list[tuple[object, ...]]:
        blocks = (Block(b"\n".join(LINES[n : n + 60]) + b"\n", False, is_last=n == 240) for n in range(0, 300, 60))
        with closing(prefetch.chunks(blocks, NETLIFY, DEFAULT_PAGES, prepare, False, process)) as prepared:
            return list(prepared)

    monkeypatch.setattr(prefetch, "JSON_CHUNK_BLOCKS", 2)
    assert chunks(other_process) == chunks(None)
    assert len(chunks(None)) == 3


def test_child_process_loads_its_libraries_for_the_first_block_of_a_log_that_does_not_begin_like_json(
    tmp_path: Path,
) -> None:
    for log in ("no such file", str(tmp_path), "-"):
        with parser_process([log]) as parse:
            assert parse is not None
            assert shown(parse(WHOLE, NETLIFY, PAGES)) == here(WHOLE)
