"""A log is recognised by its content after renaming, rotation, compression and copying: each line counts once."""

import bz2
import gzip
import itertools
import lzma
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ingest.errors import LogReadElsewhere
from ingest.imports import fingerprint, importer, ledger, prefetch, source
from ingest.imports.chunk import Summary
from ingest.imports.fingerprint import Fingerprint
from ingest.imports.importer import Options, import_logs
from tests.ingest.formats.test_clf import line
from tests.warehouse.site import NOON, Site
from warehouse.hotlog import batches
from warehouse.lake import delta_table

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: bytes(pa.compress(content, "zstd", asbytes=True)),
}
SIZES = {"small": (8 * 1024 * 1024, 8, 5_000), "many": (300, 2, 2), "one line": (1, 1, 1)}
"""Sizes of a block in bytes, of a chunk in blocks, and of the smallest staged chunk in rows. With `many` and `one line`
a few lines cross many boundaries."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = Site(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture(params=["small", "many"], autouse=True)
def _boundaries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    block_bytes, chunk_blocks, staged_rows_min = SIZES[request.param]
    monkeypatch.setattr(source, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", chunk_blocks)
    monkeypatch.setattr(importer, "STAGED_ROWS_MIN", staged_rows_min)


def log_line(number: int) -> bytes:
    """Return a line with a path of its own. Every third line needs the parser of the format, and is from a bot, which
    the export does not count."""
    agent = b'a\\"b' if number % 3 == 0 else b"GPTBot/1.3"
    return line(b"GET /%d HTTP/1.1" % number, user_agent=agent) + b"\n"


def lines(first: int, end: int) -> bytes:
    return b"".join(map(log_line, range(first, end)))


def imported(site: Site, *files: Path, project: str = "site", format: str | None = "combined") -> Summary:
    return import_logs(site.hot, site.root, project, list(map(str, files)), NOON.timestamp, Options(format))


def paths(site: Site, project: str = "site") -> Counter[str]:
    return Counter(row["path"] for row in site.stored(delta_table.HITS_TABLE) if row["project_id"] == project)


def each_once(end: int, first: int = 0) -> Counter[str]:
    return Counter(f"/{number}" for number in range(first, end))


# Fingerprints


contents = st.lists(st.sampled_from([b"a", b"\n", b"b" * 40, b"c" * 70_000, b"# x\n", b"\r\n", line() + b"\n"])).map(
    b"".join
)


@settings(deadline=None, derandomize=True)
@given(contents, st.lists(st.integers(0, 400_000), max_size=6), st.integers(0, 400_000))
def test_checkpoints_of_a_prefix_are_a_prefix_of_the_checkpoints_for_any_pieces(
    content: bytes, cuts: list[int], end: int
) -> None:
    whole, pieces, prefix = Fingerprint(), Fingerprint(), Fingerprint()
    whole.update(content)
    for begin, stop in itertools.pairwise([0, *sorted(cuts), len(content)]):
        pieces = pieces.copy()
        pieces.update(content[begin : max(begin, stop)] if begin < len(content) else b"")
    prefix.update(content[:end])
    if all(cut <= len(content) for cut in cuts):
        at_once, in_pieces = ((each.bytes, each.digest, each.checkpoints, each.first_line) for each in (whole, pieces))
        assert at_once == in_pieces
    assert whole.checkpoints.startswith(prefix.checkpoints)
    assert not prefix.first_line or prefix.first_line == whole.first_line


def test_logs_that_differ_in_a_line_differ_in_its_checkpoint() -> None:
    one, other = Fingerprint(), Fingerprint()
    one.update(lines(0, 9))
    other.update(lines(0, 8) + log_line(10))
    assert one.checkpoints[: -fingerprint._CHECKPOINT.size] == other.checkpoints[: -fingerprint._CHECKPOINT.size]
    assert one.checkpoints != other.checkpoints


def test_digest_of_the_first_line_differs_between_logs_with_the_same_headers() -> None:
    firsts = set()
    for rows in (b"", lines(0, 1), lines(0, 2), lines(1, 2)):
        log = Fingerprint()
        log.update(b"#Version: 1.0\n#Fields: a b\n" + rows)
        firsts.add(log.first_line)
    assert len(firsts) == 3


# Changes of a log between two imports


def test_same_file_again_adds_nothing(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(lines(0, 20))
    assert imported(site, log, log).known == 20
    again = imported(site, log)
    assert (again.lines, again.known) == (0, 20)
    assert paths(site) == each_once(20)


def test_same_log_under_another_name_adds_nothing(site: Site, tmp_path: Path) -> None:
    for name in ("access.log", "access.log.1"):
        (tmp_path / name).write_bytes(lines(0, 20))
        imported(site, tmp_path / name)
    assert paths(site) == each_once(20)


def test_log_that_has_grown_adds_its_new_lines(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for end in (1, 2, 9, 9, 30):
        log.write_bytes(lines(0, end))
        imported(site, log)
        assert paths(site) == each_once(end)


def test_line_of_which_a_part_was_read_counts_once(site: Site, tmp_path: Path) -> None:
    """The part may end anywhere: where the line can be parsed or not, also between `\\r` and `\\n`."""
    log = tmp_path / "log"
    begun, extra = lines(0, 5), log_line(5)[:-1] + b' "192.0.2.9" 0.003\r\n'
    whole = begun + extra + lines(6, 9)
    for cut in range(len(begun), len(begun + extra) + 1, 7 if len(extra) > 70 else 1):
        with closing(Site(tmp_path / f"data{cut}")) as cut_site:
            for end in (cut, cut, len(begun + extra), len(whole)):
                log.write_bytes(whole[:end])
                imported(cut_site, log)
            assert paths(cut_site) == each_once(9), cut


@pytest.mark.parametrize("missing", [b"\n", b"\r\n", b"3\n", b' 0.003"\n'])
def test_line_counted_before_its_end_was_written_is_not_counted_again(
    site: Site, tmp_path: Path, missing: bytes
) -> None:
    log = tmp_path / "log"
    whole = log_line(1)[:-1] + (b" 0.00" if missing == b"3\n" else b"") + missing
    steps = [
        whole[: -len(missing)],
        whole[:-1],
        whole,
        whole + log_line(2)[:-1],
        whole + log_line(2),
        whole + lines(2, 5),
    ]
    for step in steps:
        log.write_bytes(step)
        imported(site, log)
    assert paths(site) == each_once(5, first=1)
    imported(site, log)
    assert paths(site) == each_once(5, first=1)


def test_unfinished_line_is_reported_and_counts_when_it_is_complete(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(lines(0, 3) + log_line(3)[:50])
    first = imported(site, log)
    assert (first.lines, first.skipped) == (4, {"unfinished": 1})
    log.write_bytes(lines(0, 4))
    second = imported(site, log)
    assert (second.lines, second.known, second.skipped) == (1, 3, {})
    assert paths(site) == each_once(4)


@pytest.mark.parametrize("packing", PACKINGS)
def test_rotated_and_compressed_log_adds_only_the_lines_written_after_the_last_import(
    site: Site, tmp_path: Path, packing: str
) -> None:
    log, packed = tmp_path / "access.log", tmp_path / f"access.log.1.{packing}"
    log.write_bytes(lines(0, 20) + log_line(20)[:40])
    imported(site, log)
    packed.write_bytes(PACKINGS[packing](lines(0, 25)))
    log.write_bytes(lines(25, 30))
    imported(site, log, packed)
    assert imported(site, packed, log).lines == 0
    assert paths(site) == each_once(30)


@pytest.mark.parametrize("count", [1, 2, 7, 19])
@pytest.mark.parametrize("cut", [0, 1, 60])
def test_older_and_shorter_copy_adds_nothing(site: Site, tmp_path: Path, count: int, cut: int) -> None:
    log, copy = tmp_path / "access.log", tmp_path / "copy"
    log.write_bytes(lines(0, 20))
    copy.write_bytes(lines(0, count)[: len(lines(0, count)) - cut])
    imported(site, log, copy)
    assert paths(site) == each_once(20)
    imported(site, log)
    copy.write_bytes(lines(0, 21))
    imported(site, copy)
    assert paths(site) == each_once(21)


def test_log_emptied_and_filled_again_adds_its_new_lines(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    for first, end in ((0, 20), (20, 21), (20, 60)):
        log.write_bytes(lines(first, end))
        imported(site, log)
    assert paths(site) == each_once(60)


@pytest.mark.parametrize("shared", [1, 2, 9])
def test_logs_that_begin_alike_and_then_differ_both_count(site: Site, tmp_path: Path, shared: int) -> None:
    """The shared lines count twice, except for whole shared chunks, which are recognised."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(lines(0, shared) + lines(10, 30))
    other.write_bytes(lines(0, shared) + lines(30, 32))
    imported(site, one, other)
    imported(site, other, one)
    counts = paths(site)
    assert counts - each_once(shared) - each_once(shared) == each_once(32, first=10)
    assert counts >= each_once(32, first=10) + each_once(shared)
    if len(lines(0, 40)) < source.BLOCK_BYTES:
        assert counts == each_once(32, first=10) + each_once(shared) + each_once(shared)


def test_logs_that_share_their_headers_both_count(site: Site, tmp_path: Path) -> None:
    """All logs of one CloudFront distribution have the same headers."""
    head = b"#Version: 1.0\n#Fields: date time cs-method cs-uri-stem sc-status cs(User-Agent)\n"
    for name in ("a", "b", "c"):
        row = f"2026-09-15\t12:00:00\tGET\t/{name}\t200\tGPTBot/1.3\n".encode()
        (tmp_path / name).write_bytes(head + row)
    files = [tmp_path / name for name in ("a", "b", "c")]
    imported(site, *files, format=None)
    imported(site, *files, format=None)
    assert paths(site) == {"/a": 1, "/b": 1, "/c": 1}


LONG = ledger.JOINED_LINES_MIN
"""Number of lines from which a known log is recognised behind another log."""


def test_concatenated_logs_add_only_the_new_lines_of_the_last(site: Site, tmp_path: Path) -> None:
    one, two, joined = tmp_path / "one", tmp_path / "two", tmp_path / "joined"
    one.write_bytes(lines(0, 10))
    two.write_bytes(lines(10, 10 + LONG))
    imported(site, one, two)
    joined.write_bytes(gzip.compress(lines(0, 10)) + gzip.compress(lines(10, 15 + LONG)))
    imported(site, joined)
    assert paths(site) == each_once(15 + LONG)
    two.write_bytes(lines(10, 20 + LONG))
    imported(site, two, joined)
    assert paths(site) == each_once(20 + LONG)


def test_log_read_in_many_small_imports_is_recognised_behind_itself(site: Site, tmp_path: Path) -> None:
    log, joined = tmp_path / "log", tmp_path / "joined"
    for end in (1, 3, 40, LONG):
        log.write_bytes(lines(0, end))
        imported(site, log)
    joined.write_bytes(lines(0, LONG) + lines(0, LONG) + lines(LONG, LONG + 3))
    assert imported(site, joined).known == 2 * LONG
    assert paths(site) == each_once(LONG + 3)


def test_short_log_behind_another_counts_as_new_lines(site: Site, tmp_path: Path) -> None:
    one, two, joined = tmp_path / "one", tmp_path / "two", tmp_path / "joined"
    one.write_bytes(lines(0, 10))
    two.write_bytes(lines(10, 9 + LONG))
    imported(site, one, two)
    joined.write_bytes(lines(0, 9 + LONG))
    assert imported(site, joined).known == 10
    assert paths(site) == each_once(10) + each_once(9 + LONG, first=10) + each_once(9 + LONG, first=10)


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (lines(0, 1), lines(0, 1)),
        (lines(0, 1), 500 * lines(0, 1)),
        (500 * lines(0, 1), 3 * lines(0, 1)),
        (lines(0, 3), lines(0, 3)),
        (lines(0, 3), lines(0, 2) + lines(3, 4)),
        (lines(0, LONG - 1), lines(0, LONG - 1)),
        (lines(0, 2 * LONG), lines(0, LONG - 1)),
        (lines(0, 2 * LONG), lines(0, LONG - 1)[:-1]),
    ],
    ids=[
        "one line, once more",
        "one line, 500 times more",
        "500 equal lines, 3 more",
        "3 lines, all again",
        "3 lines, 2 again and a new one",
        "too few lines, all again",
        "many lines, too few again",
        "many lines, too few again without a line end",
    ],
)
def test_log_that_grows_by_its_own_first_lines_adds_them(site: Site, tmp_path: Path, begun: bytes, more: bytes) -> None:
    """Equal lines may be different requests: one client may request a page many times within a second."""
    log = tmp_path / "log"
    log.write_bytes(begun)
    imported(site, log)
    log.write_bytes(begun + more)
    added = imported(site, log)
    assert (added.known, added.lines) == (begun.count(b"\n"), len(more.splitlines()))
    assert imported(site, log).lines == 0
    assert paths(site).total() == len((begun + more).splitlines())


def test_ledger_of_a_project_is_independent_of_other_projects(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(lines(0, 10))
    for project in ("site", "other", "site"):
        imported(site, log, project=project)
    assert paths(site) == paths(site, "other") == each_once(10)
    ledger.forget_project(site.hot, "other")
    assert imported(site, log, project="other").lines == 10
    assert imported(site, log).lines == 0


def test_line_longer_than_a_block_counts_once_wherever_the_import_was_interrupted(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    hidden = b"x" * 70_000 + log_line(7)
    log.write_bytes(lines(0, 3) + hidden + lines(3, 6) + hidden[:-1])
    for steps in range(400):
        if finishes(site, log, steps):
            break
    log.write_bytes(lines(0, 3) + hidden + lines(3, 6) + hidden + lines(6, 9))
    imported(site, log)
    assert paths(site) == each_once(9)


# Interrupted and simultaneous imports


class Died(Exception):
    """The import was interrupted by the test."""


def finishes(site: Site, log: Path, steps: int) -> bool:
    """Import until the clock was read `steps` times; return whether the import ended before that.

    The clock is read before and after each chunk is stored.
    """
    left = [steps]

    def now() -> float:
        left[0] -= 1
        if left[0] < 0:
            raise Died
        return NOON.timestamp()

    try:
        import_logs(site.hot, site.root, "site", [str(log)], now, Options("combined"))
    except Died:
        return False
    return True


def test_import_that_dies_at_any_step_and_runs_again_counts_each_line_once(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(lines(0, 40))
    deaths = next(steps for steps in range(200) if finishes(site, log, steps))
    assert deaths > 0
    assert paths(site) == each_once(40)
    assert sum(site.daily_views().values()) == 40


def test_two_simultaneous_imports_of_one_log_count_each_line_once_and_one_of_them_fails(
    site: Site, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_bytes(lines(0, 300))
    ledger.create(site.hot)
    begun = threading.Barrier(2)

    def run() -> bool:
        def now() -> float:
            if waits:
                waits.pop()
                begun.wait(20)
            return NOON.timestamp()

        waits = [True]
        with closing(batches.connect(site.hot_log)) as hot:
            try:
                import_logs(hot, site.root, "site", [str(log)], now, Options("combined"))
            except LogReadElsewhere:
                return False
        return True

    with ThreadPoolExecutor(2) as pool:
        ended = [each.result() for each in [pool.submit(run), pool.submit(run)]]
    assert ended.count(False) >= 1
    imported(site, log)
    assert paths(site) == each_once(300)
    assert imported(site, log).lines == 0


# Random sequences of changes and imports


class LogMachine(RuleBasedStateMachine):
    """A log that is written, rotated, compressed, copied and imported in random order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp())
        self.site = Site(self.folder / "data")
        self.log = self.folder / "access.log"
        self.log.write_bytes(b"")
        self.numbers = itertools.count()
        self.rest = b""
        self.names = itertools.count(1)
        self.files: dict[Path, bytes] = {self.log: b""}
        self.log_numbers: dict[Path, int] = {self.log: 0}
        """Number of the log that each file has, from 0 in the order of their beginnings."""
        self.log_number = 0
        self.read: dict[tuple[int, int], bytes] = {}
        """Lines that were read, by the number of the log and the place in the log."""

    def teardown(self) -> None:
        self.site.close()
        shutil.rmtree(self.folder)

    def write(self, data: bytes) -> None:
        with self.log.open("ab") as log:
            log.write(data)
        self.files[self.log] += data

    @rule(count=st.integers(1, 6))
    def lines_are_added(self, count: int) -> None:
        first = next(self.numbers)
        self.numbers = itertools.count(first + count)
        self.write(self.rest + lines(first, first + count))
        self.rest = b""

    @precondition(lambda self: not self.rest and b"\n" in self.files[self.log])
    @rule(data=st.data(), times=st.integers(1, 6))
    def lines_are_repeated(self, data: st.DataObject, times: int) -> None:
        """Add lines that were read before: the log's first lines, its last line several times, or a line of any file."""
        imported(self.site, self.log)
        self.expect_lines_of(self.log)
        here = self.files[self.log].splitlines(keepends=True)
        ever = [line for content in self.files.values() for line in content.splitlines(keepends=True)]
        chosen = data.draw(
            st.sampled_from([here[:times], times * here[:1], times * here[-1:], [ever[times % len(ever)]]])
        )
        self.write(b"".join(line.rstrip(b"\n") + b"\n" for line in chosen))

    @rule(share=st.floats(0.05, 1))
    def half_a_line_is_added(self, share: float) -> None:
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
        self.files[rotated], self.log_numbers[rotated] = content, self.log_number
        self.log_number += 1
        self.files[self.log], self.log_numbers[self.log] = b"", self.log_number

    @precondition(lambda self: self.files[self.log])
    @rule()
    def log_is_copied(self) -> None:
        copy = self.folder / f"copy.{next(self.names)}"
        copy.write_bytes(self.files[self.log])
        self.files[copy], self.log_numbers[copy] = self.files[self.log], self.log_number

    @rule(data=st.data())
    def files_are_imported(self, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.files)), min_size=1, max_size=3))
        imported(self.site, *chosen)
        for file in chosen:
            self.expect_lines_of(file)

    @rule(data=st.data(), steps=st.integers(0, 9))
    def import_is_interrupted(self, data: st.DataObject, steps: int) -> None:
        chosen = data.draw(st.sampled_from(sorted(self.files)))
        if finishes(self.site, chosen, steps):
            self.expect_lines_of(chosen)
        else:
            imported(self.site, chosen)
            self.expect_lines_of(chosen)

    def expect_lines_of(self, file: Path) -> None:
        *whole, last = self.files[file].split(b"\n")
        is_readable = last.endswith(b'"') and last.count(b'"') - last.count(b'\\"') == 6
        for place, each in enumerate([*whole, last] if is_readable else whole):
            self.read[self.log_numbers[file], place] = each

    @invariant()
    def each_line_that_was_read_is_counted_once(self) -> None:
        assert paths(self.site) == Counter(each.split(b" ")[6].decode() for each in self.read.values())
        assert sum(self.site.daily_views().values()) == len(self.read)


def test_each_line_counts_once_whatever_happens_to_its_log() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        LogMachine, settings=settings(deadline=None, derandomize=True, max_examples=20, stateful_step_count=15)
    )


def test_log_in_a_ledger_with_sha_256_digests_is_recognised(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shorter copy is recognised too, and new lines of the log are added."""
    log, copy = tmp_path / "log", tmp_path / "copy"
    log.write_bytes(lines(0, 40))
    copy.write_bytes(lines(0, 20))
    with monkeypatch.context() as then:
        then.setitem(fingerprint._DIGESTS, fingerprint.DIGEST_BYTES, fingerprint._DIGESTS[32])
        imported(site, log)
    assert {len(row[0]) for row in site.hot.execute("SELECT digest FROM read_logs")} == {32}
    assert imported(site, log).known == 40
    assert imported(site, copy).known == 20
    log.write_bytes(lines(0, 45))
    assert (imported(site, log).lines, imported(site, log).lines) == (5, 0)
