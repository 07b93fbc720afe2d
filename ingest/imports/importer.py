"""Import of access logs: reads each log from where the ledger ends, and stores its chunks one by one.

One transaction stores the rows of a chunk and its row of the ledger, so that a crash at any moment neither loses a line
nor counts a line twice when the import runs again.
"""

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field

from cachetools import LRUCache

from ingest.classification.pool import Classifier, classify_many
from ingest.classification.user_agent_cache import UserAgentCache
from ingest.errors import IngestError, InvalidLog
from ingest.formats import detect
from ingest.formats.detect import Format, LastHeader
from ingest.formats.page_filter import DEFAULT_PAGES, Pages
from ingest.formats.request import LINE_BYTES_MAX
from ingest.hits.row import NO_SITE, Site
from ingest.hotlog import ledger_store
from ingest.imports import files, ledger, prefetch
from ingest.imports.chunk import MALFORMED_SHOWN, Block, MalformedLine, ParseResult, Summary, parse, split
from ingest.imports.fingerprint import Fingerprint, fingerprint
from ingest.imports.log_stream import LogStream
from ingest.imports.prepared import downloads, in_workers, preparation
from ingest.imports.prepared.preparation import Prepared, Target
from ingest.imports.request_cache import request_cache
from ingest.verification.verifier import Verifier
from ingest.visitors.salts import NO_SALTS, Salts
from warehouse.batch.driver import Executor
from warehouse.database.transaction import transaction
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches, refusals
from warehouse.hotlog.connection import HotConnection
from warehouse.lake.roots import Root
from warehouse.lake.staging import Staged, finish, require_fresh
from warehouse.maintenance.load import load
from warehouse.plural import counted

LOAD_CHUNKS, LOAD_WAIT_S = 8, 300.0
"""Number of chunks after which an import loads the hot log, and the timeout for the lock of the lake, in seconds."""
JUDGED_LINES_MIN = 100
"""Minimum number of new lines of a known log whose share of malformed lines is judged; fewer may all be unusual."""
MALFORMED_IN_ERROR = 3
"""Number of malformed lines that the error message of a wrong format shows."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an import. `format` is a name or an nginx log_format; None detects the format."""

    format: str | None = None
    pages: Pages = DEFAULT_PAGES
    is_dry_run: bool = False
    is_growing: bool = False
    """A last line without a line end is left until the line is complete."""
    ledger_from_us: int = 0
    """Time since which the ledger is complete, in microseconds since 1970. Older page views are refused."""
    site: Site = NO_SITE


DEFAULTS = Options()


@dataclass(frozen=True, slots=True)
class Import:
    """Context that the logs of one import share.

    `secret` keys the ledger. `now` returns seconds since 1970. `check` is called before a log is looked up and before a
    chunk is stored: it returns the project's internal id, or raises an error if nothing may be stored into the project.
    """

    hot: HotConnection
    root: Root
    project: str
    secret: bytes = field(repr=False)
    now: Callable[[], float]
    options: Options = DEFAULTS
    user_agents: UserAgentCache = field(default_factory=UserAgentCache)
    verifier: Verifier = field(default_factory=Verifier)
    summary: Summary = field(default_factory=Summary)
    check: Callable[[], str] = lambda: ""
    executor: Executor | None = None
    """Executor that parses and prepares the chunks; without one, the threads of this process do."""
    salts: Salts = NO_SALTS
    downloaded: LRUCache[downloads.Key, None] = field(default_factory=lambda: LRUCache(100_000))

    @property
    def target(self) -> Target:
        return Target(self.root, self.project, self.options.is_dry_run, self.options.ledger_from_us, self.options.site)

    def now_us(self) -> int:
        return int(self.now() * 1_000_000)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A parsed chunk that is ready to be stored.

    `data` are its bytes if the ledger extends the chunk before it, as the chunks of a followed log do.
    """

    result: ParseResult
    fingerprint: Fingerprint
    prepared: Prepared
    data: bytes | None = None


class LogReader:
    """Reader of one log, for imports and for followed logs: it parses blocks, stores chunks, and advances its position.

    `offset` is the number of bytes and `lines` the number of lines before `position`.
    """

    def __init__(self, run: Import, source: LogStream, format: Format) -> None:
        """Take from the source the bytes that were read before."""
        run.check()
        header = LastHeader(format)
        self._run, self._ledger = run, ledger_store.Ledger(run.hot, run.project, run.secret)
        self.position, self.known = ledger.find(self._ledger, source, header.take)
        if line := header.line(source.peek(LINE_BYTES_MAX)):
            format.parse(line)
        run.summary.known += self.known
        run.summary.formats[source.name] = format.name
        self.name, self.format = source.name, format
        self.offset, self.lines = source.taken, self.known
        self._malformed, self._first_malformed = 0, list[MalformedLine]()

    def store(
        self, chunks: Iterable[Chunk], judged_lines_min: float, on_lines: Callable[[int], None] = lambda lines: None
    ) -> None:
        """Store the next chunks of the log, one transaction each, and advance.

        Raises:
            InvalidLog: most of at least `judged_lines_min` new lines are malformed.
            LogReadElsewhere: another import reads the same log.
        """
        run = self._run
        for number, chunk in enumerate(chunks, start=1):
            self._judge(chunk.result, judged_lines_min)
            if chunk.result.bytes:
                self.position = self._store(chunk)
            if number % LOAD_CHUNKS == 0 and not run.options.is_dry_run:
                load(run.hot, run.root, LOAD_WAIT_S)
            run.summary.add(chunk.result, chunk.prepared.views, chunk.prepared.errors)
            room = MALFORMED_SHOWN - len(run.summary.malformed)
            run.summary.malformed += self._malformed_lines(chunk.result)[:room]
            self.offset += chunk.result.bytes
            self.lines += chunk.result.lines
            on_lines(chunk.result.lines)

    def parse(self, block: Block) -> Chunk:
        """Parse a block into a chunk that the ledger may add to the chunk before it."""
        result = parse(block, self.format, request_cache(self._run.options.pages))
        data = block.data[: result.bytes]
        return self.prepare(result, fingerprint(data, starts_mid_line=block.starts_mid_line), data)

    def prepare(self, result: ParseResult, fingerprint: Fingerprint, data: bytes | None = None) -> Chunk:
        """Classify the hits of a chunk. Write a large chunk to files, which no transaction names yet."""
        run = self._run
        context = run.user_agents, run.verifier, run.salts.of
        return Chunk(result, fingerprint, preparation.prepare(run.target, result, run.now_us(), *context), data)

    def chunks_of(self, executor: Executor, blocks: Iterator[Block]) -> Generator[Chunk, None, None]:
        """Yield the chunks of blocks, parsed and prepared by an executor."""
        run, verifier = self._run, pickle.dumps(self._run.verifier)

        def new_task(blocks: tuple[Block, ...], salts: Mapping[int, bytes] | None) -> in_workers.Task:
            form, pages = self.format.name, run.options.pages
            return in_workers.Task(run.target, blocks, form, pages, run.now_us(), verifier, salts)

        yield from (Chunk(*chunk) for chunk in in_workers.chunks(executor, blocks, new_task, run.salts))

    def _judge(self, result: ParseResult, judged_lines_min: float) -> None:
        self._malformed += result.skipped["malformed"]
        self._first_malformed += self._malformed_lines(result)[: MALFORMED_IN_ERROR - len(self._first_malformed)]
        if self._malformed * 2 > self.lines + result.lines - self.known >= judged_lines_min:
            raise _wrong_format(self.format, self.name, self._first_malformed)

    def _store(self, chunk: Chunk) -> ledger.Position:
        """Store the rows of a chunk and its row of the ledger in one transaction; return the position after it."""
        run, rows = self._run, chunk.prepared.rows
        written_s = finish(run.root, rows) if isinstance(rows, Staged) else 0
        internal_id = run.check()
        if run.options.is_dry_run:
            return self._record(chunk)
        with transaction(run.hot):
            if refusals.has(run.hot, internal_id):  # the project was deleted since the check
                raise ProjectNotFound(run.project)
            position = self._record(chunk)
            if isinstance(rows, Staged):
                require_fresh(written_s)
                batches.append_staged(run.hot, rows, run.now())
            else:
                preparation.append(run.hot, downloads.new(rows, run.downloaded), run.now())
        run.downloaded.update(dict.fromkeys(downloads.keys(rows)))
        return position

    def _record(self, chunk: Chunk) -> ledger.Position:
        ends_mid_line, now_s = chunk.result.ends_mid_line, self._run.now()
        if chunk.data is not None:
            return ledger.extend(self._ledger, self.position, chunk.data, ends_mid_line, now_s)
        return ledger.record(self._ledger, self.position, chunk.fingerprint, ends_mid_line, now_s)

    def _malformed_lines(self, result: ParseResult) -> list[MalformedLine]:
        return [(self.name, self.lines + number, reason) for number, reason in result.malformed]


def import_logs(  # noqa: PLR0913, PLR0917  # what to read, where to, and how
    hot: HotConnection,
    root: Root,
    project: str,
    names: Sequence[str],
    secret: bytes,
    now: Callable[[], float],
    options: Options = DEFAULTS,
    on_read: Callable[[int, int], None] = lambda count, lines: None,
    classifier: Classifier = classify_many,
    check: Callable[[], str] = lambda: "",
    verifier: Verifier | None = None,
    executor: Executor | None = None,
    salts: Salts = NO_SALTS,
) -> Summary:
    """Read files (`-` is standard input), store the page views that are new, and load the lake.

    An import that was interrupted can be run again. `on_read` is called with the number of bytes of each read, before
    decompression, and with the number of lines of each chunk. `secret` and `check`: see `Import`. Without a `verifier`,
    agents are verified by the lists of the release. `executor` parses the chunks of logs whose lines can be parsed in
    any order: see `prepared.in_workers`. Without `salts`, the page views have no visitors.

    Raises:
        OSError: a file cannot be opened; then nothing is read.
        InvalidLog: most lines of a file are malformed, or a file is damaged; its earlier chunks are stored.
        UnknownFormat, InvalidFormat: see `ingest.formats.detect`.
        LogReadElsewhere: another import reads the same log.
        LedgerIncomplete: see `Options.ledger_from_us`.
        LakeBusy, HotLogBehind: see `warehouse.maintenance.load.load`.
    With several files, an IngestError has a note that names the file and the number of page views stored before.
    """
    cache = UserAgentCache(classifier)
    verifier = verifier or Verifier()
    run = Import(hot, root, project, secret, now, options, cache, verifier, check=check, executor=executor, salts=salts)
    ledger_store.prepare(hot, secret, now)
    paths = files.expand(names)
    files.require_readable(paths)
    with ledger_store.temporary(hot) if options.is_dry_run else nullcontext():
        for number, path in enumerate(paths, start=1):
            try:
                with files.open_source(path, lambda count: on_read(count, 0)) as source:
                    head, name = source.head(), options.format
                    format = detect.named(name, head) if name else detect.detect(head, path)
                    import_source(run, source, format, lambda lines: on_read(0, lines))
            except IngestError as error:
                if len(paths) > 1:
                    error.add_note(_stored_before(run, path, number, len(paths)))
                raise
    if not options.is_dry_run:
        load(hot, root, LOAD_WAIT_S)
    return run.summary


def import_source(
    run: Import, source: LogStream, format: Format, on_lines: Callable[[int], None], judged_lines_min: float = 1
) -> LogReader:
    """Read a log from where the ledger ends to its end.

    The share of malformed lines is judged once there are `judged_lines_min` lines, and for a known log JUDGED_LINES_MIN
    new lines.

    Raises: see `import_logs`.
    """
    reader = LogReader(run, source, format)
    blocks = split(source, reader.position.ends_mid_line, run.options.is_growing)
    is_stream = files.is_stream(source.name)
    if run.executor and not is_stream and in_workers.is_possible(format):
        parsed = reader.chunks_of(run.executor, blocks)
    else:
        parsed = prefetch.chunks(blocks, format, run.options.pages, reader.prepare, is_stream)
    with closing(parsed) as chunks:
        reader.store(chunks, max(judged_lines_min, JUDGED_LINES_MIN if reader.known else 1), on_lines)
    return reader


def _stored_before(run: Import, path: str, number: int, files: int) -> str:
    stored = "would be stored" if run.options.is_dry_run else "stored"
    views = f"{stored} from the files before it: {counted(run.summary.page_views, 'page view')}"
    rest = "; the files after it are not read" if number < files else ""
    return f"{path} is file {number} of {files}; {views}{rest}"


def _wrong_format(format: Format, name: str, malformed: Sequence[MalformedLine]) -> InvalidLog:
    first = "; ".join(f"{file}:{number}: {reason}" for file, number, reason in malformed)
    return InvalidLog(
        f"most lines of {name} are malformed as {format.name}: {first}. Name its format with "
        f"--format: {', '.join(detect.NAMES)}, or an nginx log_format as it is written in nginx.conf"
    )
