"""Parsing and preparation of the chunks of a log in an executor of `warehouse.batch`, several at a time.

This process reads the log, and sends the bytes of each chunk to a worker, which needs access to the lake but not to the
log. Each chunk except the last one has CHUNK_BLOCKS blocks. Without an executor, the chunks of a JSON log are larger,
and the last blocks of a log are a chunk of their own.
"""

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import pyarrow as pa

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.formats import detect
from ingest.formats.detect import Format
from ingest.formats.page_filter import Pages
from ingest.imports.chunk import Block, ParseResult, join, parse
from ingest.imports.fingerprint import Fingerprint
from ingest.imports.prefetch import CHUNK_BLOCKS
from ingest.imports.prepared.preparation import Prepared, Target, prepare
from ingest.imports.request_cache import request_cache
from ingest.imports.rows import PARSED_HITS
from ingest.verification.verifier import Verifier
from warehouse.batch import driver
from warehouse.batch.driver import Executor
from warehouse.lake.staging import Staged, sync


@dataclass(frozen=True, slots=True)
class Task:
    """A chunk of a log for a worker. `received_us` is the time of the import in microseconds since 1970."""

    target: Target
    blocks: tuple[Block, ...]
    format: str
    pages: Pages
    received_us: int
    verifier: bytes
    """The pickled Verifier. The bytes are the key under which a worker caches the Verifier, because creating it takes
    longer than parsing a chunk."""


def is_possible(format: Format) -> bool:
    """Return whether chunks of a format can be parsed in any order. Some parsers remember earlier lines."""
    return format.name not in detect.HEADERS and not (format.json is not None and format.json.has_memory)


def chunks(
    executor: Executor, blocks: Iterator[Block], new_task: Callable[[tuple[Block, ...]], Task]
) -> Iterator[tuple[ParseResult, Fingerprint, Prepared]]:
    """Yield the result without hits, the fingerprint and the rows of each chunk, in the order of the log.

    `new_task` returns the task for the blocks of a chunk. The staged files of a chunk are synced.
    """
    started = deque[_Started]()

    def tasks() -> Iterator[Task]:
        while chunk := tuple(islice(blocks, CHUNK_BLOCKS)):
            started.append(_Started.of(chunk))
            yield new_task(chunk)

    for _, parsed in driver.run(executor, parse_and_prepare, tasks(), is_ordered=True):
        result, prepared = parsed.result()
        yield result, started.popleft().fingerprint_of(result), prepared


def parse_and_prepare(task: Task) -> tuple[ParseResult, Prepared]:
    """Return the result of a chunk without its hits, and the rows of the chunk."""
    format, requests = detect.named(task.format, ()), request_cache(task.pages)
    result = join([parse(block, format, requests) for block in task.blocks])
    prepared = prepare(task.target, result, task.received_us, _user_agents(), _verifier(task.verifier))
    result.hits = PARSED_HITS.empty_table()
    if isinstance(prepared.rows, Staged):
        sync(task.target.root, prepared.rows)
    elif task.target.is_dry_run:
        prepared = prepared._replace(rows=pa.table({}))
    return result, prepared


@dataclass(frozen=True, slots=True)
class _Started:
    """Fingerprint of the blocks of a chunk, and the last block of the log, if the chunk has it.

    The last block is not in the fingerprint, because its last line may be unfinished and is then not read.
    """

    fingerprint: Fingerprint
    last: bytes

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> "_Started":
        fingerprint = Fingerprint()
        for block in blocks:
            if not block.is_last:
                fingerprint.update(block.data)
        return cls(fingerprint, blocks[-1].data if blocks[-1].is_last else b"")

    def fingerprint_of(self, result: ParseResult) -> Fingerprint:
        """Add the bytes of the last block that the result counts, and return the fingerprint of the whole chunk."""
        self.fingerprint.update(self.last[: result.bytes - self.fingerprint.bytes])
        return self.fingerprint


@lru_cache(1)
def _user_agents() -> UserAgentCache:
    return UserAgentCache()


@lru_cache(1)
def _verifier(pickled: bytes) -> Verifier:
    verifier: Verifier = pickle.loads(pickled)  # noqa: S301  # of the process that sent the task
    return verifier
