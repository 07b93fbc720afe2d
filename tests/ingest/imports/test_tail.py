"""The lines of a followed log are counted as they are added: each line once, through rotation and restarts."""

import gzip
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import InvalidLog, LogReadElsewhere, UnknownFormat
from ingest.hotlog import ledger_store
from ingest.imports import log_stream
from ingest.imports import tail as tails
from ingest.imports.importer import Import, Options, import_logs
from tests.ingest.imports.test_ledger import AFTER, each_once, log_line, log_lines
from tests.processes import forked
from tests.processes.running import COMMAND, PROJECT, Running, new_key, readership
from tests.processes.waiting import until
from tests.warehouse.site import SECRET, Site
from warehouse.hotlog import batches
from warehouse.tables import HITS_TABLE

GROWING = Options(is_growing=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "POLL_S", 0.005)


@dataclass
class Following:
    """Logs that are followed in a thread, with the messages and errors of `follow`."""

    site: Site
    run: Import
    messages: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    commits: set[Path] = field(default_factory=set)
    views: Counter[str] = field(default_factory=Counter)

    def views_by_path(self) -> Counter[str]:
        """Load what waits, and read the table if it has new commits: many tests call this until it is as expected."""
        if self.site.waiting():
            self.site.load()
        commits = {*self.site.root.glob(f"{HITS_TABLE.name}/_delta_log/*.json")}
        if commits != self.commits:
            self.commits, self.views = commits, Counter(row["path"] for row in self.site.stored(HITS_TABLE))
        return self.views

    def wait_for_lines(self, end: int) -> None:
        """Wait until `end` lines are counted, and check that they are lines 0 to `end`, each counted once."""
        until(lambda: self.errors or self.views_by_path().total() >= end)
        assert self.errors == []
        assert self.views_by_path() == each_once(end)


@contextmanager
def following(
    site: Site, *files: Path, options: Options = GROWING, now: Callable[[], float] = AFTER.timestamp
) -> Iterator[Following]:
    stopped = threading.Event()
    with closing(batches.connect(site.hot_log)) as hot:
        followed = Following(site, Import(hot, site.root, "site", SECRET, now, options))

        def run() -> None:
            try:
                tails.follow(followed.run, list(map(str, files)), stopped.wait, followed.messages.append)
            except (InvalidLog, UnknownFormat) as error:
                followed.errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield followed
        finally:
            stopped.set()
            thread.join()


def append(log: Path, content: bytes) -> None:
    with log.open("ab") as file:
        file.write(content)


@pytest.mark.long
def test_lines_are_counted_as_they_are_added(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 3))
    with following(site, log) as tail:
        tail.wait_for_lines(3)
        for end in (4, 5, 9):
            append(log, log_lines(tail.run.summary.lines, end))
            tail.wait_for_lines(end)
    assert (tail.run.summary.lines, tail.run.summary.page_views, tail.run.summary.skipped) == (9, 9, {})


@pytest.mark.long
def test_line_is_counted_at_its_end_even_if_it_can_be_parsed_before(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 2) + log_line(2)[:-1])
    with following(site, log) as tail:
        tail.wait_for_lines(2)
        append(log, b' "half a field')
        append(log, b' and the rest"\n' + log_line(3)[:40])
        tail.wait_for_lines(3)
        append(log, log_line(3)[40:])
        tail.wait_for_lines(4)
    assert tail.run.summary.skipped == {}


def test_format_is_detected_when_the_first_line_has_ended(site: Site, tmp_path: Path, log: Path) -> None:
    common = log_line(0).rpartition(b' "-"')[0]
    log.write_bytes(common)
    with following(site, log, tmp_path / "other.log") as tail:
        append(tmp_path / "other.log", log_line(1))
        until(lambda: tail.views_by_path() == {"/1": 1})
        append(log, log_line(0)[len(common) :])
        tail.wait_for_lines(2)
    assert set(tail.run.summary.formats.values()) == {"combined"}


@pytest.mark.long
def test_renamed_log_is_read_while_its_writer_uses_it_and_then_the_new_file(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "ROTATED_POLLS", 200)
    log, rotated = tmp_path / "access.log", tmp_path / "access.log.1"
    log.write_bytes(log_lines(0, 3))
    with following(site, log) as tail:
        tail.wait_for_lines(3)
        log.rename(rotated)
        append(rotated, log_lines(3, 5))
        tail.wait_for_lines(5)
        log.write_bytes(log_lines(6, 8))
        append(rotated, log_line(5)[:-1])
        until(lambda: tail.views_by_path().total() == 8)
        assert tail.views_by_path() == each_once(8)
        until(lambda: tail.messages)
    assert tail.messages == [f"{log} was rotated"]
    import_logs(site.hot, site.root, "site", [str(rotated), str(log)], SECRET, AFTER.timestamp)
    assert tail.views_by_path() == each_once(8)


@pytest.mark.long
def test_log_emptied_by_copytruncate_soon_after_a_rename_loses_no_line(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rotate the log by renaming, and its successor by copytruncate while the renamed file is still read."""
    monkeypatch.setattr(tails, "ROTATED_POLLS", 1_000_000)
    log, rotated = tmp_path / "access.log", tmp_path / "access.log.1"
    log.write_bytes(log_lines(0, 3))
    with following(site, log) as tail:
        tail.wait_for_lines(3)
        log.rename(rotated)
        log.write_bytes(log_lines(3, 5))
        tail.wait_for_lines(5)
        append(rotated, log_lines(5, 7))
        tail.wait_for_lines(7)
        (tmp_path / "access.log.2").write_bytes(log.read_bytes() + log_lines(7, 9))
        os.truncate(log, 0)
        tail.wait_for_lines(9)
        append(log, log_lines(9, 12))
        tail.wait_for_lines(12)


@pytest.mark.long
def test_log_emptied_by_copytruncate_loses_no_line_of_the_copy(site: Site, tmp_path: Path, log: Path) -> None:
    (tmp_path / "access.log.d").mkdir()
    (tmp_path / "access.log.other").write_bytes(log_lines(90, 99))
    end = 0
    with following(site, log) as tail:
        for number in range(4):
            append(log, log_lines(end, end + 3))
            tail.wait_for_lines(end + 3)
            missed = log.read_bytes() + log_lines(end + 3, end + 5)
            copy = tmp_path / f"access.log.{number}"
            copy.write_bytes(gzip.compress(missed) if number % 2 else missed)
            os.truncate(log, 0)
            tail.wait_for_lines(end + 5)
            end += 5
        append(log, log_lines(end, end + 40))
        tail.wait_for_lines(end + 40)
    assert tail.messages == [f"{log} was emptied"] * 4


@pytest.mark.parametrize("reads_before", [1, 4])
def test_log_emptied_while_it_is_stored_is_followed(site: Site, tmp_path: Path, log: Path, reads_before: int) -> None:
    # The clock is read once when a chunk is prepared and twice when it is stored. While the first or the second chunk
    # is stored, the log is copied and emptied.
    log.write_bytes(log_lines(0, 3))
    (tmp_path / "access.log.other").write_bytes(log_lines(90, 99))
    clock_reads = itertools.count()

    def now() -> float:
        if next(clock_reads) == reads_before:
            (tmp_path / "access.log.1").write_bytes(log.read_bytes() + log_lines(5, 6))
            os.truncate(log, 0)
        return AFTER.timestamp()

    with following(site, log, now=now) as tail:
        if reads_before > 1:
            tail.wait_for_lines(3)
            append(log, log_lines(3, 5))
        else:
            until(lambda: tail.views_by_path().total() >= 3)
        until(lambda: tail.messages or tail.errors)
        until(lambda: tail.views_by_path()["/5"] == 1)
        append(log, log_lines(6, 8))
        until(lambda: tail.views_by_path()["/7"] == 1)
        assert tail.views_by_path() == each_once(8) - (Counter() if reads_before > 1 else each_once(5, first=3))
    assert tail.messages == [f"{log} was emptied"]


@pytest.mark.long
def test_log_emptied_and_filled_beyond_the_last_read_is_read_from_its_beginning(site: Site, log: Path) -> None:
    log.write_bytes(log_lines(0, 3))
    with following(site, log) as tail:
        tail.wait_for_lines(3)
        with log.open("r+b") as file:
            file.write(log_lines(3, 60))
        tail.wait_for_lines(60)


def test_log_may_be_created_later_and_disappear_for_a_while(site: Site, tmp_path: Path, log: Path) -> None:
    with following(site, log) as tail:
        log.touch()
        append(log, log_lines(0, 2))
        tail.wait_for_lines(2)
        log.unlink()
        (tmp_path / "new").write_bytes(log_lines(2, 4))
        shutil.copy(tmp_path / "new", log)
        tail.wait_for_lines(4)


def test_pattern_follows_the_files_that_match_at_the_start(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(log_lines(0, 2))
    (tmp_path / "b.log").write_bytes(log_lines(2, 4))
    with following(site, tmp_path / "*.log") as tail:
        tail.wait_for_lines(4)


@pytest.mark.long
def test_restart_adds_the_lines_written_meanwhile_and_no_line_twice(site: Site, log: Path) -> None:
    for end in (3, 3, 7, 8):
        log.write_bytes(log_lines(0, end) + log_line(end)[:30])
        with following(site, log) as tail:
            tail.wait_for_lines(end)


@pytest.mark.long
def test_import_of_a_followed_log_adds_no_line_twice(site: Site, log: Path) -> None:
    with following(site, log) as tail:
        for end in range(3, 30, 3):
            append(log, log_lines(end - 3, end))
            if end % 2:
                tail.wait_for_lines(end)
            until(lambda: _is_imported(site, log))
            tail.wait_for_lines(end)


def _is_imported(site: Site, log: Path) -> bool:
    try:
        import_logs(site.hot, site.root, "site", [str(log)], SECRET, AFTER.timestamp)
    except LogReadElsewhere:
        return False
    return True


@pytest.mark.long
def test_older_copy_that_becomes_another_log_adds_its_new_lines(site: Site, tmp_path: Path) -> None:
    log, other = tmp_path / "access.log", tmp_path / "other.log"
    other.write_bytes(log_lines(0, 9))
    import_logs(site.hot, site.root, "site", [str(other)], SECRET, AFTER.timestamp)
    log.write_bytes(log_lines(0, 5))
    with following(site, log) as tail:
        until(lambda: tail.run.summary.known == 5)
        append(log, log_lines(5, 12))
        tail.wait_for_lines(12)


def test_log_with_garbage_at_its_start_is_read_when_its_format_can_be_detected(site: Site, log: Path) -> None:
    log.write_bytes(b"\x16\x03\x01\n")
    with following(site, log) as tail:
        append(log, log_lines(0, 1))
        append(log, log_lines(1, 2))
        tail.wait_for_lines(2)
    assert tail.run.summary.skipped == {"malformed": 1}


def test_garbage_after_a_rotation_does_not_end_following(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    monkeypatch.setattr(tails, "ROTATED_POLLS", 2)
    log.write_bytes(log_lines(0, 2))
    with following(site, log) as tail:
        tail.wait_for_lines(2)
        log.rename(tmp_path / "access.log.1")
        log.write_bytes(b"garbage\n" * 500 + log_lines(2, 4))
        tail.wait_for_lines(4)


@pytest.mark.long
def test_line_longer_than_a_block_is_one_malformed_line(site: Site, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(tails, "BLOCK_BYTES", 1_000)
    log.write_bytes(log_lines(0, 3))
    with following(site, log) as tail:
        tail.wait_for_lines(3)
        append(log, b"x" * 2_500)
        append(log, b"y" * 2_500 + log_line(9) + log_lines(3, 20))
        tail.wait_for_lines(20)
    assert (tail.run.summary.lines, tail.run.summary.skipped) == (21, {"malformed": 1})


@pytest.mark.parametrize(
    ("content", "error"), [(b"garbage\n" * 100, UnknownFormat), (gzip.compress(log_lines(0, 3)), InvalidLog)]
)
def test_log_that_cannot_be_followed_is_refused(site: Site, log: Path, content: bytes, error: type[Exception]) -> None:
    log.write_bytes(content)
    with following(site, log) as tail:
        until(lambda: tail.errors)
    assert [type(each) for each in tail.errors] == [error]


LOOP = "Too many levels of symbolic links"


def is_link_to(link: Path, file: Path) -> bool:
    """Return whether an entry of /proc/self/fd refers to the file. The entry of a handle that was closed does not."""
    try:
        return link.readlink() == file
    except FileNotFoundError:
        return False


def make_unreadable(log: Path) -> None:
    """Create the log as a symbolic link to itself: unlike a file without permissions, root cannot read it either."""
    log.symlink_to(log)


@pytest.mark.long
def test_rotated_log_that_is_unreadable_for_a_moment_is_retried_beside_the_others(site: Site, tmp_path: Path) -> None:
    log, rotated, other = (tmp_path / name for name in ("access.log", "access.log.1", "other.log"))
    log.write_bytes(log_lines(0, 3))
    other.write_bytes(log_lines(3, 5))
    with following(site, log, other) as tail:
        tail.wait_for_lines(5)
        log.rename(rotated)
        make_unreadable(log)
        append(rotated, log_line(5))
        append(other, log_line(6))
        tail.wait_for_lines(7)
        until(lambda: tail.messages == [f"{log} cannot be read, and is retried: {LOOP}"])
        log.unlink()
        log.write_bytes(log_line(7))
        tail.wait_for_lines(8)
        append(other, log_line(8))
        tail.wait_for_lines(9)
        until(lambda: tail.messages[2:])
    assert tail.messages[1:] == [f"{log} can be read again", f"{log} was rotated"]
    assert tail.run.summary.unreadable == {}


def test_log_whose_last_read_failed_is_in_the_summary(site: Site, tmp_path: Path) -> None:
    log, folder, other = (tmp_path / name for name in ("access.log", "folder.log", "other.log"))
    make_unreadable(log)
    folder.mkdir()
    with following(site, log, folder, other) as tail:
        other.write_bytes(log_lines(0, 3))
        tail.wait_for_lines(3)
    assert tail.run.summary.unreadable == {str(log): LOOP, str(folder): "Is a directory"}


@pytest.mark.long
def test_log_whose_disk_fails_at_first_is_retried(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # After the first block, the log's file descriptor is replaced by one whose reads fail.
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 4096)
    log, end = tmp_path / "access.log", 5_000
    log.write_bytes(log_lines(0, end))
    failing = os.open("/proc/self/mem", os.O_RDONLY)  # address 0 is not mapped: reads fail with EIO
    replaced: list[int] = []

    def replace(wait_s: float) -> bool:
        opened = [
            int(each.name) for each in Path("/proc/self/fd").iterdir() if each.is_symlink() and is_link_to(each, log)
        ]
        if opened and not replaced:
            position = os.lseek(opened[0], 0, os.SEEK_CUR)
            if 0 < position < log.stat().st_size:
                os.dup2(failing, opened[0])
                os.lseek(failing, 0, os.SEEK_SET)
                replaced.append(opened[0])
        return False

    messages: list[str] = []
    with closing(batches.connect(site.hot_log)) as hot:
        ledger_store.create(hot)
        run = Import(hot, site.root, "site", SECRET, AFTER.timestamp, GROWING)
        tail = tails.Tail(run, str(log), replace, messages.append)
        until(lambda: bool(tail.read() or messages) and bool(replaced) and tail.fault is None)
        tail.close()
    os.close(failing)
    assert messages == [f"{log} cannot be read, and is retried: Input/output error", f"{log} can be read again"]
    site.load()
    assert Counter(row["path"] for row in site.stored(HITS_TABLE)) == each_once(end)


@pytest.mark.parametrize("damage", ["unreadable", "cut within its first line", "cut near its end"])
def test_unreadable_or_damaged_copy_of_an_emptied_log_is_reported(site: Site, log: Path, damage: str) -> None:
    log.write_bytes(log_lines(0, 300))
    copy = log.with_name("access.log.1.gz")
    if damage == "unreadable":
        make_unreadable(copy)
        reason = f"cannot be read: {LOOP}"
    else:
        copy.write_bytes(gzip.compress(log_lines(0, 600))[: -20 if damage == "cut near its end" else 20])
        reason = "is not complete gzip data: .*"
    with following(site, log) as tail:
        tail.wait_for_lines(300)
        log.write_bytes(b"")
        append(log, log_line(600))
        until(lambda: tail.views_by_path()["/600"] == 1)
    [emptied, message] = tail.messages
    assert emptied == f"{log} was emptied"
    assert re.fullmatch(f"{copy} {reason}; if it is a copy of {log}, import it", message)


# The command


class Gone(Exception):
    """The project was deleted."""


@pytest.mark.parametrize("is_forgotten", [True, False])
def test_deleted_project_gets_no_rows_and_ends_following(site: Site, log: Path, is_forgotten: bool) -> None:
    # Neither added lines are stored, nor the whole log a second time when the ledger no longer has the log.
    log.write_bytes(log_lines(0, 3))
    checks: list[bool] = []

    def check() -> str:
        if checks:
            raise Gone
        return ""

    def fail(text: str) -> None:
        raise AssertionError(text)

    with closing(batches.connect(site.hot_log)) as hot:
        run = Import(hot, site.root, "site", SECRET, AFTER.timestamp, GROWING, check=check)
        polls = itertools.count()

        def is_over(seconds: float) -> bool:
            if (poll := next(polls)) == 8:
                append(log, log_lines(3, 5))
                checks.append(True)
                if is_forgotten:
                    ledger_store.delete_project(hot, "site")
            return poll > 99

        with pytest.raises(Gone):
            tails.follow(run, [str(log)], is_over, fail)
    site.load()
    assert Counter(row["path"] for row in site.stored(HITS_TABLE)) == each_once(3)


@contextmanager
def follow_command(data: Path, *arguments: str | Path) -> Iterator[Callable[[], Any]]:
    """Run `readership import --follow`. Yield a function that ends the command by SIGTERM and returns its summary."""
    output = data.parent / f"{data.name}.json"
    output.write_text("")
    whole = ["--data", data, "import", PROJECT, "--follow", *arguments]
    process = forked.start(forked.PROGRAM, whole, output=output)

    def ended() -> Any:
        process.terminate()
        assert process.wait(60) == 0
        return json.loads(output.read_text())

    try:
        yield ended
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_command_beside_a_service_counts_each_line_once_through_rotation_and_restart(
    start: Callable[..., Running], tmp_path: Path, log: Path
) -> None:
    service = start(READERSHIP_LOAD_EVERY_S="1")
    log.write_bytes(log_lines(0, 5))
    with follow_command(service.data, log) as ended:
        until(lambda: service.get()["totals"]["ai"] >= 3)
        service.post({"path": "/posted", "userAgent": "GPTBot/1.3"})
        append(log, log_lines(5, 8))
        until(lambda: service.get()["totals"]["total"] == 6)
        log.rename(tmp_path / "access.log.1")
        log.write_bytes(log_lines(8, 10))
        until(lambda: service.get()["totals"]["total"] == 7)
        summary = ended()
    assert (summary["lines"], summary["page_views"]) == (10, 10)
    with follow_command(service.data, log) as ended:
        append(log, log_lines(10, 11))
        until(lambda: service.get()["totals"]["total"] == 8)
        assert (ended()["lines"], service.get()["totals"]["total"]) == (1, 8)
    assert service.run("doctor").returncode == 0


@pytest.mark.long
def test_command_ends_when_its_project_is_deleted_and_leaves_no_rows(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "access.log"
    new_key(data)
    log.write_bytes(log_lines(0, 4))
    arguments = ["import", PROJECT, "--follow", log]
    process = subprocess.Popen([COMMAND, "--data", data, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until(lambda: (data / "hot.sqlite").exists() and _read_bytes(data / "hot.sqlite") == log.stat().st_size)
        assert readership("--data", str(data), "project", "delete", PROJECT, "--yes").returncode == 0
        append(log, log_lines(4, 6))
        _, errors = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 1
    assert errors.decode().splitlines()[-1].startswith(f"Error: there is no project '{PROJECT}'; ")
    assert _rows(data / "hot.sqlite") == 0
    query = ["--data", str(data), "sql", "SELECT count(*) AS n FROM hits", "--format", "json"]
    assert json.loads(readership(*query).stdout) == [{"n": 0}]


@pytest.mark.long
def test_command_without_a_service_loads_the_lines_that_it_reads(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "access.log"
    new_key(data)
    with follow_command(data, log) as ended:
        log.write_bytes(log_lines(0, 4))
        hot = data / "hot.sqlite"
        until(lambda: _read_bytes(hot) == log.stat().st_size)  # the lines may be loaded already
        assert ended()["lines"] == 4
    assert _rows(hot) == 0


def _read_bytes(hot_log: Path) -> int:
    """Return the number of bytes of logs in the ledger."""
    with closing(batches.connect(hot_log)) as hot:
        ledger_store.create(hot)
        return int(hot.execute("SELECT coalesce(sum(bytes), 0) FROM read_logs").fetchone()[0])


def _rows(hot_log: Path) -> int:
    with closing(batches.connect(hot_log)) as hot:
        return batches.backlog(hot).rows
