"""Access logs into the lake: one stretch after the other, each kept together with the note that it was read."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.pool import Classifier, classify_many
from ingest.classification.user_agent_cache import UserAgentCache
from ingest.errors import IngestError, InvalidLog, LedgerIncomplete
from ingest.formats import detect
from ingest.formats.detect import Format, LastHeader
from ingest.formats.page_filter import DEFAULT_PAGES, Pages
from ingest.imports import ledger, prefetch, request_cache, source
from ingest.imports.chunk import LINE_BYTES_MAX, MALFORMED_KEPT, Block, Said, blocks, read
from ingest.imports.ledger import Fingerprint, Place
from ingest.imports.rows import Readers, page_views
from ingest.imports.source import Content
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches, refusals
from warehouse.lake.staging import Staged, require_fresh, stage, sync
from warehouse.maintenance.load import load
from warehouse.plural import counted
from warehouse.schema import HOT
from warehouse.transaction import transaction

STAGED_ROWS_MIN, STAGED_BYTES_MIN = 5_000, 4 * 1024 * 1024
"""As many page views go into files at once; fewer go through the hot log, like posted ones."""
LOAD_STRETCHES = 8
LOAD_WAIT_S = 300.0
JUDGED_LINES_MIN = 100
"""So many new lines of a log that was read before tell whether it is of its format; fewer may all be odd."""


MALFORMED_TOLD = 3
"""In the error that ends an import of another format; one line of a terminal or two."""

MalformedLine = tuple[str, int, str]
"""File, line number from 1, reason."""


@dataclass(frozen=True, slots=True)
class Options:
    """What an owner may ask of an import. `format` is a name or an nginx log_format; without one it is detected."""

    format: str | None = None
    pages: Pages = DEFAULT_PAGES
    is_dry_run: bool = False
    is_growing: bool = False
    """A last line without an end waits for the rest of it."""
    ledger_from_us: int = 0
    """Microseconds since 1970 before which the record of imported logs is lost: older page views are refused."""


DEFAULTS = Options()


@dataclass(slots=True)
class Summary:
    """What an import read, counted as it goes.

    `known` lines were read by an import before, and are not among `lines`. `malformed` holds the first few. `formats`
    are the files' own. `unreadable` are the followed files that could not be read in the end, each with the reason.
    """

    lines: int = 0
    known: int = 0
    human: int = 0
    ai: int = 0
    bot: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: list[MalformedLine] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def page_views(self) -> int:
        return self.human + self.ai + self.bot


@dataclass(frozen=True, slots=True)
class Prepared:
    """A stretch that was read and is ready to be kept: its rows, in files or in memory, and who made them."""

    said: Said
    fingerprint: Fingerprint
    readers: Readers
    rows: pa.Table | Staged


@dataclass(frozen=True, slots=True)
class Import:
    """What the files of one import have in common. `now` gives seconds since 1970. `check` is called before a log is
    looked up in the ledger and before anything is stored. It returns the project's internal id, and raises if the
    project is not to be stored into."""

    hot: sqlite3.Connection
    root: Path
    project: str
    now: Callable[[], float]
    options: Options = DEFAULTS
    user_agents: UserAgentCache = field(default_factory=UserAgentCache)
    summary: Summary = field(default_factory=Summary)
    check: Callable[[], str] = lambda: ""

    def read(self, block: Block, format: Format) -> Prepared:
        """Read a stretch of one block."""
        said = read(block, format, request_cache.memory(self.options.pages))
        fingerprint = Fingerprint()
        fingerprint.update(block.data[: said.bytes])
        return self.prepare(said, fingerprint)

    def prepare(self, said: Said, fingerprint: Fingerprint) -> Prepared:
        """Write what a stretch says beside the lake. Nothing is counted before it is kept."""
        rows, readers = page_views(self.project, said.views, int(self.now() * 1_000_000), self.user_agents)
        self._require_new(rows)
        is_large = rows.num_rows >= STAGED_ROWS_MIN or rows.nbytes >= STAGED_BYTES_MIN
        return Prepared(
            said, fingerprint, readers, stage(self.root, rows) if is_large and not self.options.is_dry_run else rows
        )

    def _require_new(self, rows: pa.Table) -> None:
        """Raise LedgerIncomplete if a page view is older than the record of imported logs."""
        from_us = self.options.ledger_from_us
        if from_us and rows.num_rows and pc.min(rows["ts"]).cast(pa.int64()).as_py() < from_us:
            since = datetime.fromtimestamp(from_us / 1_000_000, UTC).isoformat(" ", "seconds")
            raise LedgerIncomplete(
                f"the record of logs imported before {since} is lost, and these lines are older: if they were imported "
                "before, they would be counted twice. Import the lines since then, or add --despite-loss if you know "
                "that these were never imported"
            )

    def keep(self, place: Place, prepared: Prepared, more: bytes | None = None) -> Place:
        """Store a stretch's rows, and that it was read, in one transaction; `more` are its bytes if they are few and
        may be noted with those before. Raises LogReadElsewhere."""
        if isinstance(prepared.rows, Staged):
            sync(self.root, prepared.rows)
        internal_id = self.check()
        fingerprint, is_cut = prepared.fingerprint, prepared.said.is_cut
        if self.options.is_dry_run:
            return ledger.record(self.hot, self.project, place, fingerprint, is_cut)
        with transaction(self.hot):
            if refusals.has(self.hot, internal_id):  # the project was deleted since the check
                raise ProjectNotFound(self.project)
            after = (
                ledger.record(self.hot, self.project, place, fingerprint, is_cut)
                if more is None
                else ledger.extend(self.hot, self.project, place, more, is_cut)
            )
            if isinstance(prepared.rows, Staged):
                require_fresh(self.root, prepared.rows)
                batches.append_staged(self.hot, prepared.rows, self.now())
            elif prepared.rows.num_rows:
                batches.append(self.hot, prepared.rows.cast(HOT).combine_chunks().to_batches()[0], self.now())
        return after

    def count(self, prepared: Prepared, file: str, first_line: int) -> None:
        """Add a stretch to the summary."""
        summary, said = self.summary, prepared.said
        summary.lines += said.lines
        summary.skipped.update(said.skipped)
        room = MALFORMED_KEPT - len(summary.malformed)
        summary.malformed += _places(file, first_line, said)[:room]
        for (traffic, agent), views in prepared.readers.items():
            summary.human += views if traffic == "human" else 0
            summary.bot += views if traffic == "bot" else 0
            if traffic == "ai":
                summary.ai += views
                summary.agents[str(agent)] += views


@dataclass(frozen=True, slots=True)
class End:
    """How far a log was read: its place in the ledger, bytes, lines."""

    place: Place
    offset: int
    lines: int

    def after(self, place: Place, said: Said) -> "End":
        """One stretch on."""
        return End(place, self.offset + said.bytes, self.lines + said.lines)


def import_logs(  # noqa: PLR0913, PLR0917  # what to read, where to, and how
    hot: sqlite3.Connection,
    root: Path,
    project: str,
    files: Sequence[str],
    now: Callable[[], float],
    options: Options = DEFAULTS,
    on_read: Callable[[int, int], None] = lambda count, lines: None,
    classifier: Classifier = classify_many,
    check: Callable[[], str] = lambda: "",
) -> Summary:
    """Read each file (`-` is standard input) and store the page views that no import has stored before.

    Whatever is read is in the lake when this returns; an import that was cut short may be run again. `on_read` is told
    of bytes as they are read, packed as they are, and of lines as they are counted. `check`: see `Import`.

    Raises:
        OSError: a file cannot be opened; then nothing of the others is read either.
        InvalidLog: most lines of a file are malformed, or it does not unpack; what came before is stored, but for what
            was being read.
        UnknownFormat, InvalidFormat: see `ingest.formats.detect`.
        LogReadElsewhere: another import reads the same log.
        LedgerIncomplete: see `Options.ledger_from_us`.
        LakeBusy, HotLogBehind: see `warehouse.maintenance.load.load`.
    Of several files, an error of `ingest` has a note that names the one it is of and says what is stored.
    """
    ledger.create(hot)
    run = Import(hot, root, project, now, options, UserAgentCache(classifier), check=check)
    meant = source.matched(files)
    source.try_each(meant)
    with ledger.rehearsed(hot) if options.is_dry_run else nullcontext():
        for number, file in enumerate(meant, start=1):
            try:
                _import_file(run, file, on_read)
            except IngestError as error:
                if len(meant) > 1:
                    error.add_note(_so_far(run, file, number, len(meant)))
                raise
    if not options.is_dry_run:
        load(hot, root, LOAD_WAIT_S)
    return run.summary


def _import_file(run: Import, file: str, on_read: Callable[[int, int], None]) -> None:
    with source.opened(file, lambda count: on_read(count, 0)) as content:
        import_content(run, content, _format(run.options, content), lambda lines: on_read(0, lines))


def _so_far(run: Import, file: str, number: int, files: int) -> str:
    stored = "would be stored" if run.options.is_dry_run else "stored"
    views = f"{stored} from the files before it: {counted(run.summary.page_views, 'page view')}"
    return f"{file} is file {number} of {files}; {views}{'; the files after it are not read' if number < files else ''}"


def import_content(
    run: Import, content: Content, format: Format, on_lines: Callable[[int], None], judged_lines_min: float = 1
) -> End:
    """Read a log from where the ledger says that it was read to, to its end.

    A log is judged to be of another format by its first `judged_lines_min` lines, a known one by JUDGED_LINES_MIN.

    Raises: as `import_logs` does.
    """
    run.check()
    header = LastHeader(format)
    place, known = ledger.find(run.hot, run.project, content, header.take)
    if line := header.line(content.peek(LINE_BYTES_MAX)):
        format.parse(line)
    run.summary.known += known
    run.summary.formats[content.name] = format.name
    end = End(place, content.taken, known)
    least = max(judged_lines_min, JUDGED_LINES_MIN if known else 1)
    malformed, first = 0, list[MalformedLine]()
    cut, is_stream = blocks(content, place.is_cut, run.options.is_growing), source.is_stream(content.name)
    with closing(prefetch.stretches(cut, format, run.options.pages, run.prepare, is_stream)) as ahead:
        for number, prepared in enumerate(ahead, start=1):
            said = prepared.said
            lines, malformed = end.lines + said.lines - known, malformed + said.skipped["malformed"]
            first += _places(content.name, end.lines + 1, said)[: MALFORMED_TOLD - len(first)]
            if malformed * 2 > lines >= least:
                raise _not_of(format, content.name, first)
            place = run.keep(end.place, prepared) if said.bytes else end.place
            if number % LOAD_STRETCHES == 0 and not run.options.is_dry_run:
                load(run.hot, run.root, LOAD_WAIT_S)
            run.count(prepared, content.name, first_line=end.lines + 1)
            end = end.after(place, said)
            on_lines(said.lines)
    return end


def _format(options: Options, content: Content) -> Format:
    head = content.head()
    return detect.named(options.format, head) if options.format else detect.detect(head, content.name)


def _places(file: str, first_line: int, said: Said) -> list[MalformedLine]:
    """The malformed lines of a stretch whose first line is that of the file."""
    return [(file, first_line + number - 1, reason) for number, reason in said.malformed]


def _not_of(format: Format, name: str, malformed: Sequence[MalformedLine]) -> InvalidLog:
    first = "; ".join(f"{file}:{number}: {reason}" for file, number, reason in malformed)
    return InvalidLog(
        f"most lines of {name} are malformed as {format.name}: {first}. Name its format with "
        f"--format: {', '.join(detect.NAMES)}, or an nginx log_format as it stands in nginx.conf"
    )
