"""Reports of projects that were read ahead need no file of a rollup."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from warehouse.report.read_ahead import ReadAheadThread

from tests.processes.waiting import until
from tests.warehouse.site import DAY, NOON, Site, rank, view
from warehouse.database.postgresql import ServerError
from warehouse.errors import LakeUnreachable
from warehouse.lake import delta_table
from warehouse.query.hits_snapshot import HitsReader
from warehouse.report.reports import Reports
from warehouse.rollups import coverage, writer

MONTH = f"{NOON:%Y-%m}"
MIDNIGHT = NOON - timedelta(hours=12)
CACHE_BYTES = 64 * 1024 * 1024


@pytest.fixture
def site(site: Site) -> Site:
    """Return a lake with a rollup: 3 hits of the project `large` and 1 hit of `small`, on two days."""
    site.stage([view("/a", project_id="large"), view("/b", project_id="large"), view("/c", project_id="small")])
    site.stage([view("/a", NOON + DAY, project_id="large")])
    site.load()
    write_rollup(site)
    return site


@pytest.fixture
def reports(site: Site) -> Iterator[Reports]:
    with closing(site.reports()) as reports:
        yield reports


def write_rollup(site: Site) -> None:
    files = delta_table.list_files(site.table(delta_table.HITS_TABLE), delta_table.HITS_TABLE)
    writer.write(site.root, site.database, MONTH, files)


def ranked(reports: Reports, project: str, start: datetime, end: datetime) -> list[tuple[str, int]]:
    """Return the paths with their views by people."""
    return [(row["path"], row["human"]) for row in rank(reports, project, start, end, NOON).paths.to_pylist()]


def steps(reports: Reports) -> int:
    """Read ahead, and return the number of blocks and months that were read."""
    return sum(1 for _ in reports.read_ahead())


def remove_files_of_rollups(site: Site) -> None:
    for rollup in coverage.list_rollups(site.root, MONTH):
        for name in coverage.PARQUET:
            (rollup.folder / name).unlink()


def test_pages_read_no_rollup(site: Site, reports: Reports) -> None:
    assert steps(reports) == 6  # a block, and the paths and the dimensions of a month, of each project
    remove_files_of_rollups(site)
    assert ranked(reports, "large", MIDNIGHT, MIDNIGHT + 2 * DAY) == [("/a", 2), ("/b", 1)]
    assert ranked(reports, "large", MIDNIGHT + DAY, MIDNIGHT + 2 * DAY) == [("/a", 1)]
    assert ranked(reports, "small", MIDNIGHT, MIDNIGHT + DAY) == [("/c", 1)]


def test_project_with_most_views_is_read_first(site: Site, reports: Reports) -> None:
    ahead = reports.read_ahead()
    next(ahead)
    next(ahead)
    remove_files_of_rollups(site)
    assert ranked(reports, "large", MIDNIGHT + DAY, MIDNIGHT + 2 * DAY) == [("/a", 1)]


def test_nothing_is_read_again_before_a_rollup_is_written(site: Site, reports: Reports) -> None:
    assert steps(reports) == 6
    site.post(view("/d", project_id="large"))
    site.load()
    assert steps(reports) == 0


def test_projects_in_memory_are_read_again_after_a_rollup_is_written(site: Site, reports: Reports) -> None:
    steps(reports)
    site.stage([view("/d", NOON + DAY, project_id="large"), view("/e", project_id="new")])
    site.load()
    write_rollup(site)
    assert steps(reports) == 6  # not `new`, which no request has asked for
    remove_files_of_rollups(site)
    assert ranked(reports, "large", MIDNIGHT + DAY, MIDNIGHT + 2 * DAY) == [("/a", 1), ("/d", 1)]


def test_lake_without_rollups_has_nothing_to_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    with closing(Site(tmp_path_factory.mktemp("empty") / "data")) as empty, closing(empty.reports()) as reports:
        empty.post(view("/a"))
        assert steps(reports) == 0


@pytest.mark.parametrize("cache_bytes", [0, 1_000])
def test_cache_without_space_ends_the_reads(site: Site, cache_bytes: int) -> None:
    reader = HitsReader(site.hot_log, site.root)
    with closing(Reports(reader, site.root, site.spill, cache_bytes)) as reports:
        assert steps(reports) <= 6
        assert ranked(reports, "small", MIDNIGHT, MIDNIGHT + DAY) == [("/c", 1)]


def test_thread_reads_ahead(site: Site) -> None:
    with closing(site.reports()) as reports:
        reports.start_read_ahead()
        # The coverage by rollups, and of each project a block and four results of a month.
        until(lambda: len(reports._cached._results) == 1 + 2 * (1 + 4))
        remove_files_of_rollups(site)
        assert ranked(reports, "small", MIDNIGHT, MIDNIGHT + DAY) == [("/c", 1)]


def test_thread_logs_an_error_and_ends(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with closing(site.reports()) as reports:
        reports._database.close()
        reports.start_read_ahead()
        until(lambda: "reading ahead failed and is retried" in caplog.messages)


@pytest.mark.parametrize(
    "errors",
    [
        [
            ServerError("connection to 127.0.0.1 failed", None, is_lost=True),
            ServerError("is starting", "57P03", is_lost=False),
        ],
        [LakeUnreachable("s3://lake does not answer: error 1"), LakeUnreachable("s3://lake does not answer: error 2")],
    ],
    ids=["PostgreSQL", "object store"],
)
def test_outage_is_logged_once_and_without_a_traceback(
    errors: list[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    remaining, has_ended = [*errors], threading.Event()

    def read_ahead() -> Iterator[None]:
        error = remaining.pop(0)
        if not remaining:
            has_ended.set()
        raise error
        yield

    with closing(ReadAheadThread(read_ahead)) as thread:
        thread.start()
        assert has_ended.wait(30)
    assert caplog.record_tuples == [
        ("readership.reports", logging.ERROR, f"reading ahead failed and is retried: {errors[0]}")
    ]
    assert caplog.records[0].exc_info is None


FIRST_REPORT = """
import sys
from datetime import datetime
from pathlib import Path
from tests.warehouse.site import DAY, NOON, Site, rank
site = Site(Path(sys.argv[1]), is_new=False)
reports = site.reports()
reports.fault()
reports.start_read_ahead()
before = set(sys.modules)
ranking = rank(reports, "large", NOON - DAY, NOON + DAY, NOON)
print(ranking.human, *sorted(set(sys.modules) - before))
reports.close()
site.close()
"""


def test_first_report_of_a_process_imports_no_module(site: Site) -> None:
    command = [sys.executable, "-c", FIRST_REPORT, str(site.root.parent)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["2"]
