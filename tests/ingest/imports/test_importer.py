"""When an import returns, the page views of its logs are in the lake, and every line is counted."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.errors import InvalidFormat, InvalidLog, UnknownFormat
from ingest.formats.request import LINE_BYTES_MAX
from ingest.imports import importer, log_stream, prefetch, request_cache
from ingest.imports.chunk import MALFORMED_SHOWN, Summary
from ingest.imports.importer import DEFAULTS, Options, import_logs
from ingest.imports.prepared import preparation
from tests.ingest.formats.test_clf import line
from tests.ingest.formats.test_json_lines import line as json_line
from tests.stores.object_store import watched_server
from tests.warehouse.site import ROOT, SECRET, Site, rank
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import refusals
from warehouse.lake import roots
from warehouse.query.time_range import FIRST, LAST
from warehouse.tables import HITS_TABLE

SAMPLE = ROOT / "sample_data" / "access.log"
EXPECTED: dict[str, Any] = json.loads((ROOT / "sample_data" / "expected_views.json").read_text())
RECEIVED = datetime(2026, 10, 2, tzinfo=UTC)
GPTBOT = b"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
NINE_LINES = (line() + b"\n") * 9


def run_import(
    site: Site,
    *files: Path | str,
    options: Options = DEFAULTS,
    on_read: Callable[[int, int], None] = lambda count, lines: None,
) -> Summary:
    return import_logs(site.hot, site.root, "site", list(map(str, files)), SECRET, RECEIVED.timestamp, options, on_read)


def write_lines(file: Path, *lines: bytes, end: bytes = b"\n") -> Path:
    file.write_bytes(end.join(lines) + end)
    return file


def views_by_path(site: Site) -> Counter[str]:
    return Counter(row["path"] for row in site.stored(HITS_TABLE))


def assert_sample_is_imported(site: Site, summary: Summary) -> None:
    """Check the summary of the import and the report of the lake against the expected counts of the sample log's
    generator."""
    assert (summary.lines, summary.page_views, summary.bot) == (
        EXPECTED["lines"],
        EXPECTED["page_views"],
        EXPECTED["bots"],
    )
    assert (summary.human, summary.ai) == (EXPECTED["totals"]["human"], EXPECTED["totals"]["ai"])
    assert (summary.errors, summary.skipped) == (EXPECTED["errors"], EXPECTED["skipped"])
    reports = site.reports()
    ranking = rank(reports, "site", FIRST, LAST, RECEIVED)
    reports.close()
    assert ranking.paths.to_pylist() == EXPECTED["views"]
    assert {"human": ranking.human, "ai": ranking.ai, "total": ranking.human + ranking.ai} == EXPECTED["totals"]


@pytest.mark.long
def test_sample_log_gives_the_expected_views_of_every_day_and_agent(site: Site) -> None:
    summary = run_import(site, SAMPLE)
    assert_sample_is_imported(site, summary)
    assert site.waiting() == 0
    rows = site.stored(HITS_TABLE)
    assert summary.agents == EXPECTED["by_agent"]
    assert Counter(row["agent"] for row in rows if row["traffic"] == "ai") == EXPECTED["by_agent"]
    days = Counter((str(row["ts"].date()), row["traffic"]) for row in rows if row["traffic"] != "bot")
    expected = {(day, traffic): views[traffic] for day, views in EXPECTED["by_day"].items() for traffic in views}
    assert days == +Counter(expected)


def text_of(file: Path) -> bytes:
    """Return the content of a file, and of a Parquet file its values."""
    return str(pq.read_table(file).to_pylist()).encode() if file.suffix == ".parquet" else file.read_bytes()


@pytest.mark.long
def test_addresses_and_accept_headers_of_a_log_are_in_no_file(site: Site, tmp_path: Path) -> None:
    address, accept = b"203.0.113.77", b"text/x-accept-77"
    few = [line(host=address), line(host=address, user_agent=GPTBOT), line(host=address, time=b"-")]
    changed = {"request.client_ip": address.decode(), "request.headers.Accept": [accept.decode()]}
    caddy = json_line("caddy", **changed, **{"request.headers.User-Agent": [GPTBOT.decode()]})
    run_import(site, write_lines(tmp_path / "few.log", *few))
    run_import(site, write_lines(tmp_path / "many.log", *[caddy] * (preparation.STAGED_ROWS_MIN + 1)))
    texts = [text_of(file) for file in site.root.rglob("*") if file.is_file()]
    assert any(GPTBOT in text for text in texts)
    assert not [text for text in texts if address in text or accept in text]


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: bytes(pa.compress(content, "zstd", asbytes=True)),
}


@pytest.mark.long
def test_compressed_log_of_two_parts_gives_the_same_views_under_any_name(site: Site, tmp_path: Path) -> None:
    packed, content = tmp_path / "access.log.1", SAMPLE.read_bytes()
    half = len(content) // 2
    packed.write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    assert_sample_is_imported(site, run_import(site, packed))


@pytest.mark.long
def test_log_on_standard_input_and_in_a_pipe_gives_the_same_views(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    first, rest = b"".join(lines[:2_000]), b"".join(lines[2_000:])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(first)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(rest))
    writer.start()
    assert_sample_is_imported(site, run_import(site, "-", pipe))
    writer.join()


@pytest.mark.long
def test_log_split_into_files_gives_the_same_views(site: Site, tmp_path: Path) -> None:
    lines = SAMPLE.read_bytes().split(b"\n")[:-1]
    files = [write_lines(tmp_path / f"{first}.log", *lines[first : first + 999]) for first in range(0, len(lines), 999)]
    assert_sample_is_imported(site, run_import(site, *files))


def test_row_of_a_log_has_its_source_and_its_times(site: Site, tmp_path: Path) -> None:
    run_import(site, write_lines(tmp_path / "log", line(b"GET /a/?utm_source=x HTTP/1.1", user_agent=GPTBOT)))
    (read,) = site.stored(HITS_TABLE)
    names = ("project_id", "source", "received_at", "ts", "path", "status", "utm_source", "event_id", "agent")
    assert [read[name] for name in names] == [
        "site", "log", RECEIVED, datetime(2026, 9, 15, 12, 34, 56, tzinfo=UTC), "/a", 200, "x", None, "GPTBot",
    ]  # fmt: skip


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_last_line_may_lack_its_end(site: Site, tmp_path: Path, end: bytes) -> None:
    file = tmp_path / "log"
    file.write_bytes(line(b"GET /a HTTP/1.1") + end + line(b"GET /b HTTP/1.1"))
    assert run_import(site, file).lines == 2
    assert views_by_path(site) == {"/a": 1, "/b": 1}


def test_empty_file_has_no_lines(site: Site, tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("empty.gz", gzip.compress(b""))):
        (tmp_path / name).write_bytes(content)
        summary = run_import(site, tmp_path / name)
        assert summary == Summary(formats=summary.formats)
    assert site.stored(HITS_TABLE) == []


def test_malformed_lines_are_counted_and_the_first_are_described_by_file_and_number(site: Site, tmp_path: Path) -> None:
    one = write_lines(tmp_path / "one.log", line(), b"no", line(b"POST /a HTTP/1.1"), b"", b"no", line())
    two = write_lines(tmp_path / "two.log", *[line(b"GET /b HTTP/1.1")] * 12, line(time=b"yesterday"), *[b"no"] * 10)
    summary = run_import(site, one, two)
    assert summary.skipped == {"malformed": 13, "method": 1, "not_a_request": 1}
    assert (summary.lines, summary.page_views) == (29, 14)
    shown = [(str(one), 2), (str(one), 5), *((str(two), number) for number in range(13, 11 + MALFORMED_SHOWN))]
    assert [(file, number) for file, number, _ in summary.malformed] == shown
    assert all(reason for _, _, reason in summary.malformed)


def test_lines_with_a_time_that_no_hit_has_are_counted_and_not_stored(site: Site, tmp_path: Path) -> None:
    times = [b"01/Jan/0001:00:00:00", b"31/Dec/1994:23:59:59", b"01/Jan/1995:00:00:00", b"02/Oct/2026:00:05:00"]
    times += [b"02/Oct/2026:00:05:01", b"31/Dec/9999:23:59:59"]
    log = write_lines(tmp_path / "access.log", *(line(time=each + b" +0000") for each in times))
    summary = run_import(site, log)
    assert (summary.lines, summary.page_views, summary.skipped) == (6, 2, {"time": 4})
    assert [row["ts"].year for row in site.stored(HITS_TABLE)] == [1995, 2026]
    again = run_import(site, log)
    assert (again.known, again.page_views) == (6, 0)


def test_malformed_line_is_numbered_in_its_file_after_known_lines(site: Site, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "log", line(), line(), line())
    run_import(site, file)
    with file.open("ab") as log:
        log.write(line() + b"\nno\n" + line() + b"\n")
    summary = run_import(site, file)
    assert (summary.known, summary.lines) == (3, 3)
    assert [number for _, number, _ in summary.malformed] == [5]


@pytest.mark.parametrize("content", [[b"no"] * 99 + [line()] * 51, [line()] * 51 + [b"no"] * 149])
def test_mostly_malformed_log_is_refused_and_stores_nothing(site: Site, tmp_path: Path, content: list[bytes]) -> None:
    file = write_lines(tmp_path / "odd.log", *content)
    with pytest.raises(InvalidLog, match="most lines of .*odd.log are malformed as combined.*--format.*log_format"):
        run_import(site, file, options=Options("combined"))
    assert site.waiting() == 0
    assert site.stored(HITS_TABLE) == []


def test_error_of_a_mostly_malformed_log_names_its_first_malformed_lines(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The error also names lines of chunks that were stored before, and no line of another file.
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", 1)
    good = write_lines(tmp_path / "good.log", *[line()] * 9, b"odd")
    bad = write_lines(tmp_path / "bad.log", *[line()] * 9, b"no", *[line()] * 9, *[b"neither"] * 400)
    with pytest.raises(InvalidLog) as raised:
        run_import(site, good, bad, options=Options("combined"))
    first = "; ".join(f"{bad}:{number}: not a line of combined format" for number in (10, 20, 21))
    beginning = f"most lines of {bad} are malformed as combined: {first}. Name its format with --format: "
    assert str(raised.value).startswith(beginning)


@pytest.mark.parametrize(
    "format", [None, "combined", '$remote_addr - - [$time_local] "$request" $status 0 "-" "$http_user_agent"']
)
def test_log_of_mostly_tls_and_empty_requests_is_read_to_its_end(
    site: Site, tmp_path: Path, format: str | None
) -> None:
    scanned = [line(request, status=b"400", size=b"0", user_agent=b"-") for request in (rb"\x16\x03\x01", b"", b"-")]
    file = write_lines(tmp_path / "log", *scanned * 60, line(size=b"0"))
    assert run_import(site, file, options=Options(format)).skipped == {"not_a_request": 180}
    assert views_by_path(site) == {"/a": 1}


def test_log_of_unknown_format_is_refused_with_a_hint(site: Site, tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="no known format.*begins with no.*--format"):
        run_import(site, write_lines(tmp_path / "log", b"no", b"no", line()))


@pytest.mark.parametrize(
    ("content", "format"),
    [(b"no", None), (b"no", "combined"), (line(), "$msec"), (line(), "clf"), (b"\x1f\x8b no", None)],
)
@pytest.mark.parametrize(("after", "is_dry_run"), [(0, True), (1, False)])
def test_error_of_one_of_several_files_names_the_file_and_the_stored_page_views(
    site: Site, tmp_path: Path, content: bytes, format: str | None, after: int, is_dry_run: bool
) -> None:
    before = [] if format in ("$msec", "clf") else [write_lines(tmp_path / "1.log", *[line()] * 4)]
    odd = write_lines(tmp_path / "2.log", content)
    last = [write_lines(tmp_path / "3.log", line(b"GET /after HTTP/1.1"))] * after
    with pytest.raises((UnknownFormat, InvalidFormat, InvalidLog)) as raised:
        run_import(site, *before, odd, odd, *last, options=Options(format, is_dry_run=is_dry_run))
    (note,) = raised.value.__notes__
    assert note == (
        f"{odd} is file {1 + len(before)} of {len(before) + 2 + after}; {'would be ' if is_dry_run else ''}stored from "
        f"the files before it: {4 * len(before)} page views; the files after it are not read"
    )
    assert "\n" not in str(raised.value)
    assert site.waiting() == (0 if is_dry_run else 5 * len(before))  # with one row of `requests`


def test_error_of_the_last_or_only_file_names_no_files_after_it(site: Site, tmp_path: Path) -> None:
    fine, odd = write_lines(tmp_path / "1.log", line()), write_lines(tmp_path / "2.log", b"no")
    with pytest.raises(UnknownFormat, match=re.escape(f"{odd} is of no known format")) as raised:
        run_import(site, fine, odd)
    assert raised.value.__notes__ == [f"{odd} is file 2 of 2; stored from the files before it: 1 page view"]
    with pytest.raises(UnknownFormat, match=re.escape(f"{odd} is of no known format")) as raised:
        run_import(site, odd)
    assert not hasattr(raised.value, "__notes__")


def test_known_log_with_few_malformed_new_lines_is_imported(site: Site, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "log", *[line()] * 60)
    run_import(site, file)
    with file.open("ab") as log:
        log.write(b"no\n" * 99)
    assert run_import(site, file).skipped == {"malformed": 99}


def test_log_is_parsed_in_the_format_of_the_options(site: Site, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "log", b'1789475696.0 "GET /a HTTP/1.1" 200 "-" "GPTBot/1.3"')
    summary = run_import(site, file, options=Options('$msec "$request" $status "$http_referer" "$http_user_agent"'))
    assert (summary.ai, summary.agents) == (1, {"GPTBot": 1})


CLOUDFRONT = b"""#Version: 1.0
#Fields: date time cs-method cs-uri-stem sc-status cs(User-Agent)
2026-09-15\t12:00:00\tGET\t/a\t200\tGPTBot/1.3
#Fields: cs-uri-stem date time cs-method sc-status cs(User-Agent)
/b\t2026-09-15\t12:00:00\tGET\t200\tGPTBot/1.3
/c\t2026-09-15\t12:00:00\tGET\t200\tGPTBot/1.3
"""


@pytest.mark.long
@pytest.mark.parametrize("block_bytes", [100, 8_000])
def test_new_lines_are_parsed_by_the_last_header_of_the_known_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", 1)
    log = tmp_path / "log"
    untils = [b"", b"#Version: 1.0\n", b"/1.3\n", b"1.3\n#Fie", b"cs-uri-stem date ti", b"\n/b", b"3\n/c"]
    for until in untils if block_bytes == 100 else untils[3:4]:
        with closing(Site(tmp_path / f"data{len(until)}")) as site:
            for end in (CLOUDFRONT.rindex(until) + len(until), CLOUDFRONT.rindex(b"/c"), len(CLOUDFRONT)):
                log.write_bytes(CLOUDFRONT[:end])
                run_import(site, log, options=Options("cloudfront"))
            assert views_by_path(site) == {"/a": 1, "/b": 1, "/c": 1}, until


@pytest.mark.long
def test_dry_run_returns_the_summary_of_an_import_and_stores_nothing(site: Site, tmp_path: Path) -> None:
    files = (SAMPLE, write_lines(tmp_path / "log", line()), SAMPLE)
    summary = run_import(site, *files, options=Options(is_dry_run=True))
    assert site.waiting() == 0
    assert list(site.root.rglob("*.parquet")) == []
    assert run_import(site, *files) == summary
    assert summary.known == EXPECTED["lines"]
    assert run_import(site, *files, options=Options(is_dry_run=True)).lines == 0


@pytest.mark.parametrize("more", [0, 1, LINE_BYTES_MAX, 3 * LINE_BYTES_MAX + 7])
def test_line_of_more_than_64_kib_without_a_request_is_one_malformed_line_with_any_end(
    site: Site, tmp_path: Path, more: int
) -> None:
    long = b"x" * (LINE_BYTES_MAX + more)
    hidden = long + line(b"GET /hidden HTTP/1.1")
    file = write_lines(tmp_path / "log", long, line(), hidden, b"no", line(), line(), line())
    summary = run_import(site, file, options=Options("combined"))
    assert (summary.lines, summary.page_views, summary.skipped) == (7, 4, {"malformed": 3})
    assert [number for _, number, _ in summary.malformed] == [1, 3, 4]
    assert views_by_path(site) == {"/a": 4}


@pytest.mark.night
def test_line_of_500_mib_takes_less_than_50_mib_of_memory(tmp_path: Path) -> None:
    endless = tmp_path / "endless.gz"
    endless.write_bytes(gzip.compress(NINE_LINES) + gzip.compress(bytes(500 * 1024 * 1024), 1))
    assert memory_mib(tmp_path, endless) < 50


@pytest.mark.night
def test_known_log_of_95_mib_takes_less_than_50_mib_of_memory(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(NINE_LINES * (95 * 1024 * 1024 // len(NINE_LINES)))
    memory_mib(tmp_path, log)
    assert memory_mib(tmp_path, log) < 50


def memory_mib(tmp_path: Path, log: Path) -> int:
    """Return by how much the import of a log raises the peak memory of a process, in MiB.

    The baseline is the peak after an import of a few lines. It is read from /proc, because the peak of getrusage
    includes the memory of the parent process.
    """
    few = tmp_path / "few.log"
    few.write_bytes(NINE_LINES)
    program = (
        "import re, sys; from pathlib import Path; from tests.warehouse.site import Site; "
        "from tests.ingest.imports.test_importer import run_import; site = Site(Path(sys.argv[1])); "
        "peak_kib = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]); "
        "run_import(site, sys.argv[2]); before = peak_kib(); run_import(site, sys.argv[3]); print(peak_kib() - before)"
    )
    command = [sys.executable, "-c", program, tmp_path / "other", few, log]
    return int(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout) // 1024


@pytest.mark.parametrize("missing", ["missing.log", "missing.log.gz", "missing*.log"])
def test_missing_file_is_reported_before_another_file_is_stored(site: Site, tmp_path: Path, missing: str) -> None:
    file = write_lines(tmp_path / "log", *[line()] * 9)
    with pytest.raises(FileNotFoundError, match=re.escape(missing)):
        run_import(site, file, tmp_path / missing)
    assert site.waiting() == 0
    assert site.stored(HITS_TABLE) == []


def test_folder_is_refused_with_a_hint_before_another_file_is_stored(site: Site, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "log", line())
    with pytest.raises(InvalidLog, match=r"is a folder: name the files in it, such as '.*/\*\.log\*'"):
        run_import(site, file, tmp_path)
    assert site.stored(HITS_TABLE) == []


def test_pattern_imports_the_matching_files_and_no_folder(site: Site, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.log", line(b"GET /a HTTP/1.1"))
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(line(b"GET /b HTTP/1.1")))
    write_lines(tmp_path / "c[1].log", line(b"GET /c HTTP/1.1"))
    (tmp_path / "folder.log").mkdir()
    run_import(site, tmp_path / "*.log*", tmp_path / "c[1].log")
    assert views_by_path(site) == {"/a": 1, "/b": 1, "/c": 1}


@pytest.mark.long
def test_truncated_or_damaged_compressed_log_is_refused(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "packed"
    for packing, pack in PACKINGS.items():
        whole = pack(SAMPLE.read_bytes())
        for end in (b"", whole[-9:]):
            file.write_bytes(whole[: len(whole) // 2] + end)
            with pytest.raises(InvalidLog, match=f"packed is not complete {packing} data"):
                run_import(site, file)


def test_files_and_their_folders_are_synced_before_a_batch_names_the_files(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: set[Path]
) -> None:
    monkeypatch.setattr(preparation, "STAGED_ROWS_MIN", 1)
    are_synced: list[bool] = []

    def observe(statement: str) -> None:
        if statement.startswith("INSERT INTO staged"):
            files = list(site.root.rglob("staged-*.parquet"))
            assert len(files) == 2  # of `hits` and of `requests`
            are_synced.append({*files, *(file.parent for file in files)} <= synced)

    site.hot.set_trace_callback(observe)
    run_import(site, write_lines(tmp_path / "log", line()))
    site.hot.set_trace_callback(None)
    assert are_synced == [True]


def test_project_is_checked_between_the_sync_and_the_transaction(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A sync may take seconds. A project that is deleted during the sync gets no rows, and its deletion waits only for a
    # transaction.
    monkeypatch.setattr(preparation, "STAGED_ROWS_MIN", 1)
    events: list[str] = []
    fsync = os.fsync

    def spy(handle: int) -> None:
        events.append("disk")
        fsync(handle)

    def observe(statement: str) -> None:
        if statement.startswith("INSERT INTO read_logs"):
            events.append("stored")

    monkeypatch.setattr(os, "fsync", spy)
    site.hot.set_trace_callback(observe)
    log = write_lines(tmp_path / "log", line())

    def check() -> str:
        events.append("check")
        return ""

    import_logs(site.hot, site.root, "site", [str(log)], SECRET, RECEIVED.timestamp, check=check)
    site.hot.set_trace_callback(None)
    before = events[: events.index("stored")]
    assert before[-2:] == ["disk", "check"]


def test_project_deleted_between_the_check_and_the_transaction_gets_no_rows(site: Site, tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log", line())

    def check() -> str:
        refusals.add(site.hot, "gone")
        return "gone"

    with pytest.raises(ProjectNotFound):
        import_logs(site.hot, site.root, "site", [str(log)], SECRET, RECEIVED.timestamp, check=check)
    assert site.waiting() == 0
    assert run_import(site, log).page_views == 1, "the ledger has the log of a refused chunk"


def test_failed_import_leaves_no_thread(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", 1)
    monkeypatch.setattr(preparation, "STAGED_ROWS_MIN", 1)
    checks = iter([None, None])

    def check() -> str:
        if next(checks, "gone") == "gone":
            raise InvalidLog("gone")
        return ""

    log = write_lines(tmp_path / "log", *[line()] * 500)
    with pytest.raises(InvalidLog, match="gone") as raised:  # its traceback refers to the generator of the chunks
        import_logs(site.hot, site.root, "site", [str(log)], SECRET, RECEIVED.timestamp, check=check)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("import")] == []
    del raised


def test_plain_log_with_the_name_of_a_compressed_one_is_read(site: Site, tmp_path: Path) -> None:
    run_import(site, write_lines(tmp_path / "access.log.gz", line()))
    assert views_by_path(site) == {"/a": 1}


@pytest.mark.long
@pytest.mark.parametrize("cached_max", [5, 50])
def test_full_request_cache_changes_no_count(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached_max: int
) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(request_cache, "CACHED_MAX", cached_max)
    agents = [b"GPTBot/1.%d" % n for n in range(9)]
    lines = [line(b"GET /%d HTTP/1.1" % (n % 97), user_agent=agents[n % 9]) for n in range(500)]
    summary = run_import(site, write_lines(tmp_path / "log", *lines))
    assert (summary.page_views, summary.agents) == (500, {"GPTBot": 500})
    assert views_by_path(site) == Counter(f"/{n % 97}" for n in range(500))
    assert run_import(site, tmp_path / "log").known == 500


@pytest.mark.long
def test_long_log_is_stored_chunk_by_chunk(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(prefetch, "CHUNK_BLOCKS", 2)
    monkeypatch.setattr(preparation, "STAGED_ROWS_MIN", 10)
    monkeypatch.setattr(importer, "LOAD_CHUNKS", 3)
    lines = [line(b"GET /%d HTTP/1.1" % (number % 7)) for number in range(500)]
    reads: list[tuple[int, int]] = []
    file = write_lines(tmp_path / "log", *lines)
    summary = run_import(site, file, on_read=lambda count, lines: reads.append((count, lines)))
    assert summary.page_views == len(lines)
    assert sum(count for count, _ in reads) == file.stat().st_size
    assert [lines for _, lines in reads if lines][:3] == [8_000 // len(lines[0] + b"\n") // 2 * 2] * 3
    assert len(site.state(HITS_TABLE).files) == 10
    assert sum(site.daily_views().values()) == len(lines)
    assert site.waiting() == 0


@pytest.mark.long
def test_no_request_to_an_object_store_is_sent_in_the_transaction_of_a_chunk(
    object_store: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Import a log of 20 days. Posts wait for the transaction, and PostgreSQL ends it after two seconds."""
    monkeypatch.setattr(preparation, "STAGED_ROWS_MIN", 1)
    sites, requests = list[Site](), list[tuple[str, bool]]()
    (tmp_path / "data").mkdir()
    log = write_lines(tmp_path / "log", *(line(time=b"%02d/Sep/2026:12:00:00 +0000" % day) for day in range(1, 21)))

    def on_request(method: str, path: str) -> None:
        requests.append((method, any(site.hot.in_transaction for site in sites)))

    with watched_server(object_store, on_request) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with closing(Site(tmp_path / "data", root=roots.open_remote(f"{bucket}/lake", tmp_path / "lake"))) as site:
            sites.append(site)
            assert run_import(site, log).page_views == 20
    assert ("PUT", False) in requests
    assert [method for method, is_in_transaction in requests if is_in_transaction] == []
