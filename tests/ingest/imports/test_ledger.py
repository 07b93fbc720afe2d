"""Ledger of imported logs: each line counts once, whether its log has grown, was renamed, compressed, copied or
truncated, or its import was interrupted."""

import bz2
import gzip
import itertools
import lzma
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ingest.errors import LogReadElsewhere
from ingest.hotlog import ledger_store
from ingest.hotlog.ledger_store import Ledger
from ingest.imports import fingerprint, ledger, log_stream, prefetch
from ingest.imports.chunk import Summary
from ingest.imports.files import open_source
from ingest.imports.fingerprint import Fingerprint
from ingest.imports.importer import Options, import_logs
from ingest.imports.ledger import Position
from ingest.imports.log_stream import ReadFailed
from ingest.imports.prepared import preparation
from tests import temporary
from tests.ingest.formats.test_clf import line
from tests.rounds import rounds, seeded, some
from tests.warehouse.site import DAY, NOON, SECRET, Site
from warehouse.hotlog import batches
from warehouse.tables import HITS_TABLE

AFTER = NOON + DAY
"""A time after the times of the lines."""
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: bytes(pa.compress(content, "zstd", asbytes=True)),
}
SIZES = {"usual": (8 * 1024 * 1024, 8, 5_000), "medium": (3_000, 2, 20), "many": (300, 2, 2)}
"""Block size in bytes, chunk size in blocks, and minimum number of rows for staged files. With `many`, a log of
few lines crosses many boundaries; with `medium`, one of JOINED_LINES."""


in_small_blocks = pytest.mark.parametrize("_boundaries", ["many"], indirect=True)
in_medium_blocks = pytest.mark.parametrize("_boundaries", ["medium"], indirect=True)
"""Marks of tests that show the same with blocks of the usual size."""


@pytest.fixture(params=["usual", "many"], autouse=True)
def _boundaries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    block_bytes, chunk_blocks, staged_rows_min = SIZES[request.param]
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", chunk_blocks)
    monkeypatch.setattr(preparation, "STAGED_ROWS_MIN", staged_rows_min)


def log_line(number: int) -> bytes:
    """Return a line with a distinct path.

    Every third line has an escape, so it needs the reference parser, and comes from a bot, which reports leave out.
    """
    agent = b'a\\"b' if number % 3 == 0 else b"GPTBot/1.3"
    return line(b"GET /%d HTTP/1.1" % number, user_agent=agent) + b"\n"


def log_lines(first: int, end: int) -> bytes:
    return b"".join(map(log_line, range(first, end)))


def run_import(site: Site, *files: Path, project: str = "site", format: str | None = "combined") -> Summary:
    return import_logs(site.hot, site.root, project, list(map(str, files)), SECRET, AFTER.timestamp, Options(format))


def views_by_path(site: Site, project: str = "site") -> Counter[str]:
    return Counter(row["path"] for row in site.stored(HITS_TABLE) if row["project_id"] == project)


def each_once(end: int, first: int = 0) -> Counter[str]:
    """Return one view for each line from `first` up to but without `end`."""
    return Counter(f"/{number}" for number in range(first, end))


# Changes of a log between two imports


def test_second_import_of_a_file_adds_nothing(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 20))
    assert run_import(site, log, log).known == 20
    second = run_import(site, log)
    assert (second.lines, second.known) == (0, 20)
    assert views_by_path(site) == each_once(20)


@pytest.mark.long
def test_renamed_log_adds_nothing(site: Site, tmp_path: Path) -> None:
    for name in ("access.log", "access.log.1"):
        (tmp_path / name).write_bytes(log_lines(0, 20))
        run_import(site, tmp_path / name)
    assert views_by_path(site) == each_once(20)


@pytest.mark.long
def test_log_that_has_grown_adds_only_its_new_lines(site: Site, log: Path) -> None:
    for end in (1, 2, 9, 9, 30):
        log.write_bytes(log_lines(0, end))
        run_import(site, log)
        assert views_by_path(site) == each_once(end)


@in_small_blocks
@pytest.mark.long
def test_log_imported_in_the_middle_of_a_line_adds_the_line_once(site: Site, tmp_path: Path, log: Path) -> None:
    """Cut the log at many offsets: the half line may be parsable or not, and the cut may be between `\\r` and `\\n`."""
    before, extra = log_lines(0, 5), log_line(5)[:-1] + b' "192.0.2.9" 0.003\r\n'
    whole = before + extra + log_lines(6, 9)
    end_of_line = len(before + extra)
    for cut in [*some(seeded(1), range(len(before), end_of_line - 1)), end_of_line - 1, end_of_line]:
        with closing(Site(tmp_path / f"data{cut}")) as cut_site:
            for end in (cut, cut, len(before + extra), len(whole)):
                log.write_bytes(whole[:end])
                run_import(cut_site, log)
            assert views_by_path(cut_site) == each_once(9), cut


@pytest.mark.long
@in_small_blocks
@pytest.mark.parametrize("missing", [b"\n", b"\r\n", b"3\n", b' 0.003"\n'])
def test_line_counted_without_its_end_is_not_counted_again_with_its_end(site: Site, log: Path, missing: bytes) -> None:
    whole = log_line(1)[:-1] + (b" 0.00" if missing == b"3\n" else b"") + missing
    steps = [
        whole[: -len(missing)], whole[:-1], whole, whole + log_line(2)[:-1], whole + log_line(2),
        whole + log_lines(2, 5),
    ]  # fmt: skip
    for step in steps:
        log.write_bytes(step)
        run_import(site, log)
    assert views_by_path(site) == each_once(5, first=1)
    run_import(site, log)
    assert views_by_path(site) == each_once(5, first=1)


@pytest.mark.long
@in_small_blocks
def test_unfinished_line_is_reported_and_counted_when_it_is_complete(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 3) + log_line(3)[:50])
    first = run_import(site, log)
    assert (first.lines, first.skipped) == (4, {"unfinished": 1})
    log.write_bytes(log_lines(0, 4))
    second = run_import(site, log)
    assert (second.lines, second.known, second.skipped) == (1, 3, {})
    assert views_by_path(site) == each_once(4)


@pytest.mark.long
@pytest.mark.parametrize("packing", PACKINGS)
def test_rotated_and_compressed_log_adds_only_lines_written_later(site: Site, tmp_path: Path, packing: str) -> None:
    log, packed = tmp_path / "access.log", tmp_path / f"access.log.1.{packing}"
    log.write_bytes(log_lines(0, 20) + log_line(20)[:40])
    run_import(site, log)
    packed.write_bytes(PACKINGS[packing](log_lines(0, 25)))
    log.write_bytes(log_lines(25, 30))
    run_import(site, log, packed)
    assert run_import(site, packed, log).lines == 0
    assert views_by_path(site) == each_once(30)


@in_small_blocks
@pytest.mark.long
@pytest.mark.parametrize(("copied_lines", "cut"), [(1, 0), (2, 1), (7, 60), (19, 0)])
def test_older_and_shorter_copy_adds_nothing(site: Site, tmp_path: Path, copied_lines: int, cut: int) -> None:
    log, copy = tmp_path / "access.log", tmp_path / "copy"
    log.write_bytes(log_lines(0, 20))
    copy.write_bytes(log_lines(0, copied_lines)[: len(log_lines(0, copied_lines)) - cut])
    run_import(site, log, copy)
    assert views_by_path(site) == each_once(20)
    run_import(site, log)
    copy.write_bytes(log_lines(0, 21))
    run_import(site, copy)
    assert views_by_path(site) == each_once(21)


@pytest.mark.long
def test_truncated_and_refilled_log_adds_its_new_lines(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    for first, end in ((0, 20), (20, 21), (20, 60)):
        log.write_bytes(log_lines(first, end))
        run_import(site, log)
    assert views_by_path(site) == each_once(60)


@pytest.mark.long
@pytest.mark.parametrize("shared", [1, 2, 9])
def test_logs_with_the_same_first_lines_both_count(site: Site, tmp_path: Path, shared: int) -> None:
    """Expect the shared lines twice, except for those of a complete chunk of the first log, which is recognised."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(log_lines(0, shared) + log_lines(10, 30))
    other.write_bytes(log_lines(0, shared) + log_lines(30, 32))
    run_import(site, one, other)
    run_import(site, other, one)
    views = views_by_path(site)
    assert views - each_once(shared) - each_once(shared) == each_once(32, first=10)
    assert views >= each_once(32, first=10) + each_once(shared)
    if len(log_lines(0, 40)) < log_stream.BLOCK_BYTES:
        assert views == each_once(32, first=10) + each_once(shared) + each_once(shared)


@pytest.mark.long
@in_small_blocks
def test_logs_with_the_same_headers_both_count(site: Site, tmp_path: Path) -> None:
    """Import CloudFront logs, which all have the same headers."""
    head = b"#Version: 1.0\n#Fields: date time cs-method cs-uri-stem sc-status cs(User-Agent)\n"
    for name in ("a", "b", "c"):
        row = f"2026-09-15\t12:00:00\tGET\t/{name}\t200\tGPTBot/1.3\n".encode()
        (tmp_path / name).write_bytes(head + row)
    files = [tmp_path / name for name in ("a", "b", "c")]
    run_import(site, *files, format=None)
    run_import(site, *files, format=None)
    assert views_by_path(site) == {"/a": 1, "/b": 1, "/c": 1}


JOINED_LINES = ledger.JOINED_LINES_MIN
"""Number of distinct lines that are enough to recognise a log behind another log in the same file."""


@pytest.mark.long
@pytest.mark.parametrize("_boundaries", ["usual", "medium"], indirect=True)
def test_concatenated_logs_add_only_the_new_lines_of_the_last(site: Site, tmp_path: Path) -> None:
    one, two, joined = tmp_path / "one", tmp_path / "two", tmp_path / "joined"
    one.write_bytes(log_lines(0, 10))
    two.write_bytes(log_lines(10, 10 + JOINED_LINES))
    run_import(site, one, two)
    joined.write_bytes(gzip.compress(log_lines(0, 10)) + gzip.compress(log_lines(10, 15 + JOINED_LINES)))
    run_import(site, joined)
    assert views_by_path(site) == each_once(15 + JOINED_LINES)
    two.write_bytes(log_lines(10, 20 + JOINED_LINES))
    run_import(site, two, joined)
    assert views_by_path(site) == each_once(20 + JOINED_LINES)


@pytest.mark.long
@in_medium_blocks
def test_log_imported_in_small_steps_is_recognised_behind_itself(site: Site, tmp_path: Path) -> None:
    log, joined = tmp_path / "log", tmp_path / "joined"
    for end in (1, 3, 40, JOINED_LINES):
        log.write_bytes(log_lines(0, end))
        run_import(site, log)
    joined.write_bytes(
        log_lines(0, JOINED_LINES) + log_lines(0, JOINED_LINES) + log_lines(JOINED_LINES, JOINED_LINES + 3)
    )
    assert run_import(site, joined).known == 2 * JOINED_LINES
    assert views_by_path(site) == each_once(JOINED_LINES + 3)


@in_medium_blocks
@pytest.mark.long
def test_known_log_behind_another_counts_again_if_it_is_too_short_to_be_recognised(site: Site, tmp_path: Path) -> None:
    one, two, joined = tmp_path / "one", tmp_path / "two", tmp_path / "joined"
    one.write_bytes(log_lines(0, 10))
    two.write_bytes(log_lines(10, 9 + JOINED_LINES))
    run_import(site, one, two)
    joined.write_bytes(log_lines(0, 9 + JOINED_LINES))
    assert run_import(site, joined).known == 10
    assert views_by_path(site) == each_once(10) + each_once(9 + JOINED_LINES, first=10) + each_once(
        9 + JOINED_LINES, first=10
    )


@in_medium_blocks
@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "added"),
    [
        (log_lines(0, 1), 100 * log_lines(0, 1)),
        (100 * log_lines(0, 1), 3 * log_lines(0, 1)),
        (log_lines(0, 3), log_lines(0, 2) + log_lines(3, 4)),
        (log_lines(0, JOINED_LINES - 1), log_lines(0, JOINED_LINES - 1)),
        (log_lines(0, 2 * JOINED_LINES), log_lines(0, JOINED_LINES - 1)),
        (log_lines(0, 2 * JOINED_LINES), log_lines(0, JOINED_LINES - 1)[:-1]),
    ],
    ids=[
        "its only line, 100 times", "its line, of which it has 100", "some of its lines and a new one",
        "all its lines, too few to be recognised", "some of its lines", "some of its lines, the last unfinished",
    ],
)  # fmt: skip
def test_log_that_repeats_its_first_lines_adds_them(site: Site, log: Path, first: bytes, added: bytes) -> None:
    """Append lines that are in the log already: a client may request a page many times within a second."""
    log.write_bytes(first)
    run_import(site, log)
    log.write_bytes(first + added)
    summary = run_import(site, log)
    assert (summary.known, summary.lines) == (first.count(b"\n"), len(added.splitlines()))
    assert run_import(site, log).lines == 0
    assert views_by_path(site).total() == len((first + added).splitlines())


@pytest.mark.long
@in_small_blocks
def test_ledger_of_a_project_is_separate_and_is_deleted_alone(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 10))
    for project in ("site", "other", "site"):
        run_import(site, log, project=project)
    assert views_by_path(site) == views_by_path(site, "other") == each_once(10)
    ledger_store.delete_project(site.hot, "other")
    assert run_import(site, log, project="other").lines == 10
    assert run_import(site, log).lines == 0


@in_small_blocks
@pytest.mark.long
def test_line_longer_than_a_block_counts_as_one_when_an_import_is_interrupted_anywhere(site: Site, log: Path) -> None:
    hidden = b"x" * 3_000 + log_line(7)
    log.write_bytes(log_lines(0, 3) + hidden + log_lines(3, 6) + hidden[:-1])
    for steps in range(0, 400, 5):
        if finishes_within(site, log, steps):
            break
    log.write_bytes(log_lines(0, 3) + hidden + log_lines(3, 6) + hidden + log_lines(6, 9))
    run_import(site, log)
    assert views_by_path(site) == each_once(9)


# Interrupted imports and concurrent imports


class Interrupted(Exception):
    pass


def finishes_within(site: Site, log: Path, steps: int) -> bool:
    """Return whether an import of the log ends within `steps` reads of the clock; interrupt it at the next read.

    The import reads the clock before and after each write to a database.
    """
    left = [steps]

    def now() -> float:
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted
        return AFTER.timestamp()

    try:
        import_logs(site.hot, site.root, "site", [str(log)], SECRET, now, Options("combined"))
    except Interrupted:
        return False
    return True


@pytest.mark.long
def test_import_interrupted_at_any_step_and_run_again_counts_each_line_once(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 40))
    steps = next(steps for steps in range(200) if finishes_within(site, log, steps))
    assert steps > 0
    assert views_by_path(site) == each_once(40)
    assert sum(site.daily_views().values()) == 40


@in_small_blocks
@pytest.mark.long
def test_concurrent_imports_of_a_log_count_each_line_once_and_one_fails(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 60))
    ledger_store.create(site.hot)
    barrier = threading.Barrier(2)

    def run() -> bool:
        def now() -> float:
            if is_first:
                is_first.clear()
                barrier.wait(120)
            return AFTER.timestamp()

        is_first = [True]
        with closing(batches.connect(site.hot_log)) as hot:
            try:
                import_logs(hot, site.root, "site", [str(log)], SECRET, now, Options("combined"))
            except LogReadElsewhere:
                return False
        return True

    with ThreadPoolExecutor(2) as pool:
        results = [each.result() for each in [pool.submit(run), pool.submit(run)]]
    assert results.count(False) >= 1
    run_import(site, log)
    assert views_by_path(site) == each_once(60)
    assert run_import(site, log).lines == 0


@in_small_blocks
def test_no_more_of_a_log_is_read_than_shows_that_it_is_not_a_known_chunk(site: Site, tmp_path: Path) -> None:
    """Look up a log that differs from a large known chunk in its second line, and the chunk itself.

    The reads of a gzip file are counted; its bytes are stored uncompressed.
    """
    log, other = tmp_path / "log", tmp_path / "other.gz"
    own = known_chunk(site, log)
    other.write_bytes(gzip.compress(log_line(0) + log_line(6_000) + log_lines(1, 5_000), 0))
    reads: list[int] = []
    with open_source(str(other), reads.append) as unknown:
        assert ledger.find(own, unknown)[1] == 0
    assert sum(reads[3:]) <= 2 * fingerprint.CHECKPOINT_BYTES < other.stat().st_size  # the first three are its header
    with open_source(str(log)) as known:
        assert ledger.find(own, known)[1] == 5_000


@in_small_blocks
def test_known_chunk_that_changes_meanwhile_is_not_skipped(
    site: Site, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = known_chunk(site, log)
    changed = log_lines(0, 4_999) + log_line(6_000)
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", len(changed) // 2)

    def change(piece: bytes) -> None:
        log.write_bytes(changed)

    with open_source(str(log)) as known, pytest.raises(ReadFailed, match="changed while it was read"):
        ledger.find(own, known, on_known=change)


def known_chunk(site: Site, log: Path) -> Ledger:
    """Write a log of 5,000 lines, and return a ledger that has it as one chunk."""
    log.write_bytes(log_lines(0, 5_000))
    ledger_store.create(site.hot)
    own = Ledger(site.hot, "site", SECRET)
    start = Position(0, Fingerprint(), ends_mid_line=False, newest_id=0)
    ledger.record(own, start, fingerprint.fingerprint(log.read_bytes()), ends_mid_line=False, now_s=0)
    return own


# Random sequences of changes and imports


class LogLifecycle(RuleBasedStateMachine):
    """A log that is written, rotated, compressed, copied and imported."""

    def __init__(self) -> None:
        super().__init__()
        self.temporary = temporary.folder()
        self.folder = Path(self.temporary.name)
        self.site = Site(self.folder / "data")
        self.log = self.folder / "access.log"
        self.log.write_bytes(b"")
        self.numbers = itertools.count()
        self.rest = b""
        self.names = itertools.count(1)
        self.files: dict[Path, bytes] = {self.log: b""}
        self.log_number: dict[Path, int] = {self.log: 0}
        """Number of the log in each file, from 0."""
        self.newest_log = 0
        self.read: dict[tuple[int, int], bytes] = {}
        """Lines that were imported, by the number of the log and the index of the line."""

    def teardown(self) -> None:
        self.site.close()
        self.temporary.cleanup()

    def write(self, data: bytes) -> None:
        with self.log.open("ab") as log:
            log.write(data)
        self.files[self.log] += data

    @rule(count=st.integers(1, 6))
    def lines_are_added(self, count: int) -> None:
        first = next(self.numbers)
        self.numbers = itertools.count(first + count)
        self.write(self.rest + log_lines(first, first + count))
        self.rest = b""

    @precondition(lambda self: not self.rest and b"\n" in self.files[self.log])
    @rule(data=st.data(), times=st.integers(1, 6))
    def lines_are_repeated(self, data: st.DataObject, times: int) -> None:
        """Import the log, then append its first lines, its first or last line several times, or a line of any file."""
        run_import(self.site, self.log)
        self.record_import(self.log)
        own_lines = self.files[self.log].splitlines(keepends=True)
        all_lines = [line for content in self.files.values() for line in content.splitlines(keepends=True)]
        chosen = data.draw(
            st.sampled_from(
                [own_lines[:times], times * own_lines[:1], times * own_lines[-1:], [all_lines[times % len(all_lines)]]]
            )
        )
        self.write(b"".join(line.rstrip(b"\n") + b"\n" for line in chosen))

    @rule(share=st.floats(0.05, 1))
    def part_of_a_line_is_added(self, share: float) -> None:
        whole = self.rest or log_line(next(self.numbers))
        cut = max(1, int(len(whole) * share))
        self.write(whole[:cut])
        self.rest = whole[cut:]

    @precondition(lambda self: not self.rest and self.files[self.log])
    @rule(packing=st.sampled_from([None, *PACKINGS]), is_copied=st.booleans())
    def log_is_rotated(self, packing: str | None, is_copied: bool) -> None:
        rotated = self.folder / f"access.log.{next(self.names)}"
        content = self.files[self.log]
        if is_copied:
            rotated.write_bytes(content)
            self.log.write_bytes(b"")
        else:
            self.log.rename(rotated)
            self.log.touch()
        if packing:
            rotated.write_bytes(PACKINGS[packing](content))
        self.files[rotated], self.log_number[rotated] = content, self.newest_log
        self.newest_log += 1
        self.files[self.log], self.log_number[self.log] = b"", self.newest_log

    @precondition(lambda self: self.files[self.log])
    @rule()
    def log_is_copied(self) -> None:
        copy = self.folder / f"copy.{next(self.names)}"
        copy.write_bytes(self.files[self.log])
        self.files[copy], self.log_number[copy] = self.files[self.log], self.newest_log

    @rule(data=st.data())
    def files_are_imported(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.files)), min_size=1, max_size=3))
        run_import(self.site, *chosen)
        for file in chosen:
            self.record_import(file)

    @rule(data=st.data(), steps=st.integers(0, 9))
    def import_is_interrupted(self, data: st.DataObject, steps: int) -> None:
        chosen = data.draw(st.sampled_from(sorted(self.files)))
        if finishes_within(self.site, chosen, steps):
            self.record_import(chosen)
        else:
            run_import(self.site, chosen)
            self.record_import(chosen)

    def record_import(self, file: Path) -> None:
        *whole, last = self.files[file].split(b"\n")
        is_parsable = last.endswith(b'"') and last.count(b'"') - last.count(b'\\"') == 6
        for index, each in enumerate([*whole, last] if is_parsable else whole):
            self.read[self.log_number[file], index] = each

    @invariant()
    def each_imported_line_is_counted_once(self) -> None:
        assert views_by_path(self.site) == Counter(each.split(b" ")[6].decode() for each in self.read.values())
        assert sum(self.site.daily_views().values()) == len(self.read)


@in_small_blocks
@pytest.mark.long
def test_each_line_counts_once_in_random_sequences_of_changes_and_imports() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        LogLifecycle, settings=settings(max_examples=rounds(20), stateful_step_count=15)
    )


@pytest.mark.long
@in_small_blocks
@pytest.mark.parametrize("digest_bytes", [fingerprint.EARLIER_DIGEST_BYTES, 32])
def test_log_in_the_ledger_of_an_earlier_release_is_recognised(
    digest_bytes: int, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Import the log again, a shorter copy of it, and the log with new lines."""
    log, copy = tmp_path / "log", tmp_path / "copy"
    log.write_bytes(log_lines(0, 40))
    copy.write_bytes(log_lines(0, 20))
    with monkeypatch.context() as patch:
        patch.setattr(fingerprint.Fingerprint.__init__, "__defaults__", (digest_bytes,))
        run_import(site, log)
    assert {len(row[0]) for row in site.hot.execute("SELECT digest FROM read_logs")} == {digest_bytes}
    assert run_import(site, log).known == 40
    assert run_import(site, copy).known == 20
    log.write_bytes(log_lines(0, 45))
    assert (run_import(site, log).lines, run_import(site, log).lines) == (5, 0)


def test_logs_that_differ_only_in_addresses_are_two(site: Site, tmp_path: Path) -> None:
    """Import the logs of two servers, to each of which another address sent the same requests in the same seconds."""
    for address in (b"192.0.2.1", b"192.0.2.7"):
        log = tmp_path / address.decode()
        log.write_bytes(log_lines(0, 3).replace(b"192.0.2.1", address))
        summary = run_import(site, log)
        assert (summary.lines, summary.known) == (3, 0)
