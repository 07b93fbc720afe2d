"""Parsing and preparation of the chunks of a log in an executor of `warehouse.batch`, several at a time.

This process reads the log, and sends the bytes of each chunk to a worker, which needs access to the lake but not to the
log. Each chunk except the last one has CHUNK_BLOCKS blocks. Without an executor, the last blocks of a log are one
chunk.
"""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

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
from ingest.visitors.salts import Salts
from ingest.visitors.visitor import DAY_US, Salt, SaltsOf, SaltUnread
from warehouse.batch import driver
from warehouse.batch.driver import Executor
from warehouse.lake.staging import Staged, sync

SALTED_DAYS = 31
"""Number of days whose salts workers get when a log reaches the first of them."""


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
    salts: Mapping[int, bytes] | None = field(repr=False)
    """Salts by day, because a worker has no access to them; None for no visitors."""

    def salts_of(self, project: str, days: Iterable[int]) -> dict[int, Salt]:
        """Return the salts by day. Raises SaltUnread if the task lacks one."""
        if self.salts is None:
            return {}
        if missing := [day for day in days if day not in self.salts]:
            raise SaltUnread(missing[0])
        return {day: Salt(self.salts[day]) for day in days}


def is_possible(format: Format) -> bool:
    """Return whether chunks of a format can be parsed in any order. Some parsers remember earlier lines."""
    return format.name not in detect.HEADERS and (format.json is None or format.json.product.request_id is None)


def chunks(
    executor: Executor,
    blocks: Iterator[Block],
    new_task: Callable[[tuple[Block, ...], Mapping[int, bytes] | None], Task],
    salts: Salts,
) -> Iterator[tuple[ParseResult, Fingerprint, Prepared]]:
    """Yield the result without hits, the fingerprint and the rows of each chunk, in the order of the log.

    `new_task` returns the task for the blocks of a chunk. The staged files of a chunk are synced. This process prepares
    a chunk with a day whose salt the worker did not get, and workers get the salts of the SALTED_DAYS from that day on.
    """
    started, known = deque[_Started](), dict[int, bytes]()

    def tasks() -> Iterator[Task]:
        while chunk := tuple(islice(blocks, CHUNK_BLOCKS)):
            started.append(_Started.of(chunk))
            yield new_task(chunk, dict(known) if salts else None)

    for task, parsed in driver.run(executor, parse_and_prepare, tasks(), is_ordered=True):
        outcome = parsed.result()
        if isinstance(outcome, int):
            if outcome not in known:
                last = min(outcome + SALTED_DAYS - 1, task.received_us // DAY_US)
                known |= salts.read(task.target.project, range(outcome, max(outcome, last) + 1))
            outcome = parse_and_prepare(task, salts.of)
        assert not isinstance(outcome, int)
        result, prepared = outcome
        yield result, started.popleft().fingerprint_of(result), prepared


def parse_and_prepare(task: Task, salts_of: SaltsOf | None = None) -> tuple[ParseResult, Prepared] | int:
    """Return the result of a chunk without its hits, and the rows of the chunk; or a day whose salt the task lacks."""
    format, requests = detect.named(task.format, ()), request_cache(task.pages)
    result = join([parse(block, format, requests) for block in task.blocks])
    context = _user_agents(), _verifier(task.verifier), salts_of or task.salts_of
    try:
        prepared = prepare(task.target, result, task.received_us, *context)
    except SaltUnread as unread:
        return unread.day
    result.hits = PARSED_HITS.empty_table()
    if isinstance(prepared.rows, Staged):
        sync(task.target.root, prepared.rows)
    elif task.target.is_dry_run:
        prepared = prepared._replace(rows={})
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
        fingerprint = Fingerprint(starts_mid_line=blocks[0].starts_mid_line)
        for block in blocks:
            if not block.is_last:
                fingerprint.update(block.data)
        return cls(fingerprint, blocks[-1].data if blocks[-1].is_last else b"")

    def fingerprint_of(self, result: ParseResult) -> Fingerprint:
        """Add the bytes of the last block that the result counts, and return the fingerprint of the whole chunk."""
        self.fingerprint.update(self.last[: result.bytes - self.fingerprint.bytes])
        return self.fingerprint


_user_agents = lru_cache(1)(UserAgentCache)
_verifier: Callable[[bytes], Verifier] = lru_cache(1)(pickle.loads)  # of the process that sent the task
