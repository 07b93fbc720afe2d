"""An import in workers stores what an import in this process stores, also if a worker is killed."""

import gzip
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import InvalidLog
from ingest.formats import detect
from ingest.imports import log_stream
from ingest.imports.chunk import Summary
from ingest.imports.importer import DEFAULTS, Options, import_logs
from ingest.imports.prepared import in_workers
from ingest.visitors.salts import open_salts
from tests.ingest.formats.test_clf import line
from tests.ingest.formats.test_json_lines import line as json_line
from tests.warehouse.batch.tasks import DyingProcesses
from tests.warehouse.site import DAY, NOON, ROOT, SECRET, Site
from warehouse.batch.driver import THIS_PROCESS, Executor, ThisProcess
from warehouse.tables import HITS_TABLE

SAMPLE = (ROOT / "sample_data" / "access.log").read_bytes()
LINES = b"".join(line(b"GET /%d HTTP/1.1" % number) + b"\n" for number in range(6_000))
JSON = b"".join(json_line("caddy") + b"\n" for _ in range(60)) + b"{}\n"
LEDGER = "SELECT * FROM read_logs ORDER BY id"


@pytest.fixture
def new_site(tmp_path: Path) -> Iterator[Callable[[], Site]]:
    sites: list[Site] = []

    def new() -> Site:
        sites.append(Site(tmp_path / str(len(sites))))
        return sites[-1]

    yield new
    for site in sites:
        site.close()


def run_import(site: Site, log: Path, executor: Executor | None, options: Options = DEFAULTS) -> Summary:
    now = (NOON + DAY).timestamp
    with closing(open_salts("sqlite:///", log.parent, now=now)) as salts:  # all sites of a test have the same salts
        return import_logs(
            site.hot, site.root, "site", [str(log)], SECRET, now, options, executor=executor, salts=salts
        )


def rows(site: Site) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in site.stored(HITS_TABLE))


def ledger(site: Site) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in site.hot.execute(LEDGER).fetchall()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "block_bytes"),
    [
        (SAMPLE, 60_000),
        (LINES + b"unfinished", 150_000),
        (line() + b"\n" + b"x" * 50_000 + b"\n" + LINES[:60_000], 2_000),
        (gzip.compress(SAMPLE[:200_000]), 10_000),
        (JSON, 1_000),
        (b"", 1_000),
    ],
    ids=["sample", "unfinished", "long line", "gzip", "json", "empty"],
)
def test_rows_counts_and_ledger_are_those_of_this_process(
    new_site: Callable[[], Site], log: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, block_bytes: int
) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", block_bytes)
    log.write_bytes(content)
    site, reference = new_site(), new_site()
    assert run_import(site, log, THIS_PROCESS) == run_import(reference, log, None)
    assert rows(site) == rows(reference)
    assert all(row["visitor"] is not None for row in site.stored(HITS_TABLE))
    if content is not JSON:
        assert ledger(site) == ledger(reference)
    assert run_import(site, log, None).page_views == 0
    assert site.faults() == []


@pytest.mark.long
def test_killed_worker_is_replaced_and_each_line_counts_once(
    new_site: Callable[[], Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 100_000)
    log.write_bytes(LINES)
    site, children = new_site(), DyingProcesses(2, tmp_path / "died")
    try:
        summary = run_import(site, log, children)
    finally:
        children.close()
    assert (tmp_path / "died").exists()
    assert summary.lines == summary.page_views == 6_000
    assert Counter(row["path"] for row in site.stored(HITS_TABLE)) == {f"/{n}": 1 for n in range(6_000)}
    assert site.faults() == []


@pytest.mark.long
def test_chunks_before_an_error_are_stored(
    new_site: Callable[[], Site], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 1_000)
    log.write_bytes(LINES[:30_000] + b"\n" + b"malformed\n" * 5_000)
    site, reference = new_site(), new_site()
    for each, executor in ((site, THIS_PROCESS), (reference, None)):
        with pytest.raises(InvalidLog):
            run_import(each, log, executor)
        each.load()
    assert rows(site) == rows(reference)
    assert rows(site)


def test_dry_run_stores_nothing(new_site: Callable[[], Site], log: Path) -> None:
    log.write_bytes(LINES)
    site = new_site()
    assert run_import(site, log, THIS_PROCESS, Options(is_dry_run=True)).page_views == 6_000
    assert not rows(site)
    assert not list(site.root.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("name", "is_possible"), [*((name, name not in {"cloudfront", "vercel"}) for name in detect.NAMES)]
)
def test_formats_whose_parser_remembers_lines_stay_in_this_process(name: str, is_possible: bool) -> None:
    assert in_workers.is_possible(detect.named(name, ())) is is_possible


def test_result_of_a_chunk_has_no_page_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    """Check the size of what a worker sends: a chunk of 96 MiB has 230,000 page views."""
    sent: list[int] = []

    class Sending(ThisProcess):
        def submit(self, function: Any, item: Any) -> Any:
            future = super().submit(function, pickle.loads(pickle.dumps(item)))
            sent.append(len(pickle.dumps(future.result())))
            return future

    site = Site(tmp_path / "data")
    log.write_bytes(LINES)
    try:
        assert run_import(site, log, Sending()).page_views == 6_000
    finally:
        site.close()
    assert len(sent) == 1
    assert sent[0] < 10_000
