"""Parsing ahead: threads parse the blocks of a log and prepare the next chunk while the importer stores one."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

from ingest.formats.detect import Format
from ingest.formats.page_filter import Pages
from ingest.imports.chunk import Block, ParseResult, join, parse
from ingest.imports.columns.combined import SHAPES
from ingest.imports.fingerprint import Fingerprint
from ingest.imports.request_cache import request_cache

CHUNK_BLOCKS = 8
"""Maximum number of blocks of a chunk, which one transaction stores: 96 MiB."""
THREADS = 2
"""Number of threads for formats of SHAPES. The decoders of JSON have the GIL: an import of 1,000,000 lines of Caddy
took 5.4 s with two threads and 4.2 s with one."""
BLOCKS_AHEAD = 2
"""Maximum number of blocks that are in memory and not yet parsed."""

Prepared = TypeVar("Prepared")


def chunks(
    blocks: Iterator[Block],
    format: Format,
    pages: Pages,
    prepare: Callable[[ParseResult, Fingerprint], Prepared],
    is_stream: bool,
) -> Generator[Prepared, None, None]:
    """Yield what `prepare` returns for each chunk, in order. Closing the generator waits for the threads.

    While the caller stores a chunk, the next one is prepared, unless the log is a stream: a stream may pause for so
    long that a vacuum deletes the files of the prepared chunk, which no transaction names yet.
    """
    ahead_max = 0 if is_stream else 1
    parse_block = partial(parse, format=format, requests=request_cache(pages))
    pool = ThreadPoolExecutor(THREADS if format.name in SHAPES else 1, "import")
    ahead: deque[Future[Prepared]] = deque()
    try:
        while chunk := _parse_chunk(islice(blocks, CHUNK_BLOCKS), parse_block, pool):
            ahead.append(pool.submit(chunk.prepare, prepare))
            if len(ahead) > ahead_max:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The blocks of a chunk, which threads parse."""

    results: list[Future[ParseResult]] = field(default_factory=list)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)

    def __bool__(self) -> bool:
        return bool(self.results)

    def prepare(self, prepare: Callable[[ParseResult, Fingerprint], Prepared]) -> Prepared:
        """Wait for the blocks and prepare the chunk. Runs in a thread of the pool, after the tasks of its blocks."""
        return prepare(join([result.result() for result in self.results]), self.fingerprint)


def _parse_chunk(blocks: Iterator[Block], parse: Callable[[Block], ParseResult], pool: ThreadPoolExecutor) -> _Chunk:
    chunk = _Chunk()
    for block in blocks:
        result = pool.submit(parse, block)
        chunk.results.append(result)
        chunk.fingerprint.starts_mid_line |= block.starts_mid_line and not chunk.fingerprint.bytes
        chunk.fingerprint.update(block.data[: result.result().bytes] if block.is_last else block.data)
        if len(chunk.results) > BLOCKS_AHEAD:
            chunk.results[-1 - BLOCKS_AHEAD].result()
        is_end = block.is_before_end and 2 * len(chunk.results) >= CHUNK_BLOCKS
        del block  # before the next block is read
        if is_end:
            break
    return chunk
