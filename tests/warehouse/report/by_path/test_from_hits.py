"""A project whose paths do not fit into memory has the same reports as any other: DuckDB counts them from `hits`."""

from collections.abc import Iterator
from contextlib import closing
from contextvars import copy_context
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import duckdb
import pytest
from warehouse.blocks import project
from warehouse.report.by_path import from_hits

from tests.warehouse.site import DAY, NOON, Site, some_rows, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods
from warehouse.errors import BlockTooLarge, SlowReport, SpillFull
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.query import edge_rows, engine
from warehouse.query.time_range import FIRST, LAST
from warehouse.report.reports import Reports
from warehouse.report.results import Audience, Listing, Order, Query
from warehouse.rollups import coverage, writer

QUERIES = [
    Query("site", start, end, filters, NOON + 9 * DAY)
    for start, end in ((FIRST, LAST), (NOON - DAY / 4, NOON + DAY + DAY / 3), (NOON, None))
    for filters in (
        Filters(),
        Filters(path="/1"),
        Filters(path="/*"),
        Filters(path="/long*", traffic="human"),
        Filters(traffic="ai"),
        Filters(agent="GPTBot", source="log"),
        Filters(verification="not_checked"),
    )
]
LISTINGS = [Listing(order, audience) for order, audience in product(get_args(Order), get_args(Audience))]
POLICIES: dict[str, Periods] = {
    "all": (),
    "by format": (Period(date(2026, 9, 16), "beacon_people_log_machines"),),
}


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> Periods:
    return POLICIES[request.param]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Yield a site with hits in a rollup, in a file that no rollup covers, and in the hot log."""
    site = Site(tmp_path)
    rows = some_rows(0, 60)
    rows += [
        view(f"/long-{number % 5}".ljust(2_000, "x"), NOON + number * DAY / 8, source="beacon") for number in range(20)
    ]
    rows += [view("/others", NOON, project_id="another"), view("/1", NOON, format="markdown", source="server")]
    for part in (rows[::3], rows[1::3]):
        site.post(*part)
        site.load()
        if part is rows[1::3]:
            break
        writer.write(site.root, site.database, "2026-09", site.state(HITS_TABLE).files)
    site.post(*rows[2::3])
    yield site
    site.close()


def everything(site: Site, policy: Periods) -> list[Any]:
    """Return the results of all reports that depend on paths."""
    with closing(site.reports(lambda name: policy)) as reports:
        return [each for query in QUERIES for each in (*lists(reports, query), *others(reports, query))]


def lists(reports: Reports, query: Query) -> Iterator[Any]:
    snapshot = reports.take()
    for listing in LISTINGS:
        for offset, limit in ((0, 100), (1, 3)):
            page = reports.views(snapshot, query, offset, limit, listing.order, listing.audience)
            yield page.totals, page.rows.to_pylist(), page.has_more
        totals, batches = reports.all_views(snapshot, query, listing.order, listing.audience)
        yield totals, [row for batch in batches for row in batch.to_pylist()]
    listed = [row["value"] for row in reports.breakdown(snapshot, query, "path", 0, 100).rows.to_pylist()]
    counts = reports.views_of(snapshot, query, listed[:3])
    yield listed, {path: each for path, each in counts.items() if each.total + each.bot}


def others(reports: Reports, query: Query) -> Iterator[Any]:
    snapshot = reports.take()
    for interval in ("hour", "day"):
        if query.start != FIRST or query.end is None or interval == "day":
            bounded = replace(query, start=max(query.start, NOON - DAY), end=min(query.end or LAST, NOON + 5 * DAY))
            yield reports.series(snapshot, bounded, interval, ZoneInfo("Europe/Berlin"))[1].to_pylist()
    for by in ("agent", "source", "browser", "rule", "referrerHost"):
        yield reports.breakdown(snapshot, query, by, 0, 100).rows.to_pylist()
    for column in ("agent", "operator", "purpose"):
        yield reports.agent_pages(snapshot, query, column)  # type: ignore[arg-type]
    yield reports.first_ai_days(snapshot, query, ["/0", "/1", "/2", "/nothing"])


@pytest.mark.long
def test_reports_counted_from_hits_are_those_of_memory(
    site: Site, policy: Periods, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_memory = everything(site, policy)
    monkeypatch.setattr(project, "PATHS_BYTES_MAX", 0)
    monkeypatch.setattr(edge_rows, "PATH_BYTES_MAX", 0)
    assert everything(site, policy) == in_memory


@pytest.mark.long
def test_large_project_is_a_warning_until_it_fits_and_a_failed_one_until_its_next_report(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = replace(QUERIES[0], filters=Filters(path="/long*"))
    with closing(site.reports()) as reports:
        assert (reports.views(reports.take(), long, 0, 10).rows.num_rows, reports.warning) == (5, None)
    monkeypatch.setattr(project, "PATHS_BYTES_MAX", 0)
    monkeypatch.setattr(from_hits, "MEMORY_LIMIT", "1MB")
    with closing(site.reports()) as reports:
        with pytest.raises(duckdb.OutOfMemoryException):
            reports.views(reports.take(), long, 0, 10)
        assert reports.warning == "reports of 1 project need more memory than they may use"
    monkeypatch.setattr(from_hits, "MEMORY_LIMIT", "100MB")
    with closing(site.reports()) as reports:
        assert reports.views(reports.take(), long, 0, 10).rows.num_rows == 5
        assert reports.warning == "the paths of 1 project do not fit into memory: their reports are slow"


def test_caller_of_fast_reports_gets_only_slow_ones_that_are_cached(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "PATHS_BYTES_MAX", 0)
    long = replace(QUERIES[0], filters=Filters(path="/long*"))
    fast = copy_context()
    fast.run(engine.CALLER.set, engine.Caller(accepts_slow=False))
    with closing(site.reports()) as reports:
        snapshot = reports.take()
        for read in (
            lambda: reports.views(snapshot, long, 0, 10).rows,
            lambda: reports.all_views(snapshot, long),
            lambda: reports.views_of(snapshot, long, ["/1"]),
            lambda: reports.agent_pages(snapshot, long),
            lambda: reports.first_ai_days(snapshot, long, ["/1"]),
            lambda: reports.breakdown(snapshot, long, "agent", 0, 10).rows,
        ):
            with pytest.raises(SlowReport):
                fast.run(read)
        caller, slow = engine.Caller(accepts_slow=True), copy_context()
        slow.run(engine.CALLER.set, caller)
        rows = slow.run(reports.views, snapshot, long, 0, 10).rows
        assert caller.is_slow
        assert fast.run(reports.views, snapshot, long, 0, 10).rows == rows
        fast.run(reports.source_coverage, snapshot, "site")


@pytest.mark.long
def test_exports_whose_clients_do_not_read_on_leave_memory_for_other_reports(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.post(*(view(f"/{number:06}".ljust(250, "x")) for number in range(130_000)))
    site.load()
    monkeypatch.setattr(project, "PATHS_BYTES_MAX", 0)
    monkeypatch.setattr(from_hits, "MEMORY_LIMIT", "100MB")
    with closing(site.reports()) as reports:
        snapshot, query = reports.take(), QUERIES[0]
        exports = [reports.all_views(snapshot, query)[1] for _ in range(6)]
        begun = [next(each).num_rows for each in exports]
        assert reports.views(snapshot, query, 100_000, 1).rows.num_rows == 1
        paths = [row for batch in exports[0] for row in batch["path"].to_pylist()]
        assert begun[0] + len(paths) == reports.views(snapshot, query, 0, 1 << 20).rows.num_rows
        assert paths[:10_000] == sorted(paths[:10_000])
    monkeypatch.setattr(from_hits, "SPILL_LIMIT", "30MB")
    with closing(site.reports()) as reports:
        exports = []
        with pytest.raises(SpillFull, match="30MB"):
            exports.extend(reports.all_views(snapshot, query)[1] for _ in range(20))
        assert exports
        exports.clear()
        assert next(reports.all_views(snapshot, query)[1]).num_rows
        assert "slow" in str(reports.warning)


@pytest.mark.long
def test_paths_of_several_months_are_too_large_together(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.post(
        *(view(f"/{month}-{n}".ljust(2_000, "x"), NOON.replace(month=month)) for month in (7, 8) for n in range(50))
    )
    site.load()
    files = site.state(HITS_TABLE).files
    months = ("2026-07", "2026-08")
    for month in months:
        writer.write(site.root, site.database, month, [file for file in files if file.partition.startswith(month)])
    parts = [part for part in coverage.choose(site.root, files).parts if part.rollup.month in months]
    monkeypatch.setattr(project, "PATHS_BYTES_MAX", 150_000)
    for part in parts:
        assert project.read([part], "site").paths.sorted_count == 50
    with pytest.raises(BlockTooLarge):
        project.read(parts, "site", merged_bytes=100_000)
