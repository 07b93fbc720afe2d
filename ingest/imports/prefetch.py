"""The blocks of a log, read in threads and made into stretches, which are stored one by one."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from ingest.formats.detect import Format
from ingest.formats.page_filter import Pages
from ingest.imports import columnar, request_cache
from ingest.imports.chunk import Block, Said, joined, read
from ingest.imports.ledger import Fingerprint

STRETCH_BLOCKS = 6
"""Blocks of a log that are stored together: some 72 MiB."""
THREADS = 2
BLOCKS_AHEAD = 2
"""Read, and not parsed yet: so many more would wait in memory."""

Prepared = TypeVar("Prepared")


def stretches(
    cut: Iterator[Block],
    format: Format,
    pages: Pages,
    prepare: Callable[[Said, Fingerprint], Prepared],
    is_stream: bool,
) -> Generator[Prepared, None, None]:
    """What `prepare` makes of each stretch, in order, read in threads; to be closed, which waits for those.

    Where the parser remembers earlier lines, by one thread. While one is written the next is read; not of a stream: it
    may be silent until a vacuum has taken the files that nothing names yet.
    """
    most_ahead = 0 if is_stream else 1
    pool = ThreadPoolExecutor(THREADS if format.name in columnar.SHAPES else 1, "import")
    ahead: deque[Future[Prepared]] = deque()
    try:
        while parts := _read(islice(cut, STRETCH_BLOCKS), format, pages, pool):
            ahead.append(pool.submit(parts.prepared, prepare))
            if len(ahead) > most_ahead:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The blocks of a stretch, which threads read."""

    said: list[Future[Said]] = field(default_factory=list)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)

    def __bool__(self) -> bool:
        return bool(self.said)

    def prepared(self, prepare: Callable[[Said, Fingerprint], Prepared]) -> Prepared:
        """To be called once all before it in the pool are begun."""
        return prepare(joined([part.result() for part in self.said]), self.fingerprint)


def _read(cut: Iterator[Block], format: Format, pages: Pages, pool: ThreadPoolExecutor) -> _Parts:
    parts = _Parts()
    for block in cut:
        said = pool.submit(read, block, format, request_cache.memory(pages))
        parts.said.append(said)
        parts.fingerprint.update(block.data[: said.result().bytes] if block.is_last else block.data)
        if len(parts.said) > BLOCKS_AHEAD:
            parts.said[-1 - BLOCKS_AHEAD].result()
        del block  # before the next is read
    return parts
