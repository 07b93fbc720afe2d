"""Slow reports run one at a time, within their memory and disk space, for callers who accept them."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from contextvars import Context, copy_context
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any, get_args
from zoneinfo import ZoneInfo

import duckdb
import pytest

from tests.rounds import seeded, some
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import DAY, NOON, Site, some_rows, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods
from warehouse.errors import SlowReport, SpillFull
from warehouse.maintenance import rollups
from warehouse.query import engine
from warehouse.query.time_range import FIRST, LAST
from warehouse.report import cells, statements
from warehouse.report.reports import Reports
from warehouse.report.results import Audience, Order, Query
from warehouse.tables import HITS_TABLE

EVERYTHING = Query("site", FIRST, LAST, Filters(), NOON + 9 * DAY)
LONG = replace(EVERYTHING, filters=Filters(path="/long*"))
QUERIES = [
    replace(EVERYTHING, start=start, end=end, filters=filters)
    for start, end in ((FIRST, LAST), (NOON - DAY / 4, NOON + DAY + DAY / 3), (NOON, None))
    for filters in (Filters(), Filters(path="/long*", traffic="human"), Filters(agent="GPTBot", source="log"))
]
LISTINGS: list[tuple[Order, Audience]] = [*product(get_args(Order), get_args(Audience))]
POLICIES: dict[str, Periods] = {"all": (), "by format": (Period(date(2026, 9, 16), "beacon_people_log_machines"),)}


def prepare(site: Site) -> None:
    """Write hits in a rollup, in a file that no rollup covers, and in the hot log."""
    rows = some_rows(0, 60)
    rows += [
        view(f"/long-{number % 5}".ljust(2_000, "x"), NOON + number * DAY / 8, source="beacon") for number in range(20)
    ]
    rows += [view("/others", NOON, project_id="another"), view("/1", NOON, format="markdown", source="server")]
    site.post(*rows[::3])
    site.load()
    write_rollup(site.root, site.database, "2026-09", site.state(HITS_TABLE).files)
    site.post(*rows[1::3])
    site.load()
    site.post(*rows[2::3])


def context_of(caller: engine.Caller) -> Context:
    context = copy_context()
    context.run(engine.CALLER.set, caller)
    return context


def make_all_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "SLOW_ROWS", -1)


def everything(site: Site, policy: Periods, queries: Sequence[Query] = QUERIES) -> Iterator[Any]:
    """Yield the results of all reports."""
    with closing(site.reports(lambda name: policy)) as reports:
        snapshot = reports.take()
        for number, query in enumerate(queries):
            for order, audience in LISTINGS[number % 3 :: 3]:
                page = reports.views(snapshot, query, 1, 3, order, audience)
                yield page.totals, page.rows.to_pylist(), page.has_more
                totals, batches = reports.all_views(snapshot, query, order, audience)
                yield totals, [row for batch in batches for row in batch.to_pylist()]
            yield reports.views_of(snapshot, query, ["/0", "/1"])
            days = replace(query, start=max(query.start, NOON - DAY), end=min(query.end or LAST, NOON + 5 * DAY))
            yield reports.series(snapshot, days, "hour", ZoneInfo("Europe/Berlin"))[1].to_pylist()
            for by in ("agent", "path", "rule"):
                yield reports.breakdown(snapshot, query, by, 0, 100).rows.to_pylist()
            yield reports.agent_pages(snapshot, query)
            yield reports.verdicts(snapshot, query).evidence.to_pylist()
        yield reports.first_ai_days(snapshot, EVERYTHING, ["/0", "/1", "/2", "/nothing"])
        yield reports.source_coverage(snapshot, "site")


@pytest.mark.long
@pytest.mark.parametrize("policy", [pytest.param("all", marks=pytest.mark.night), "by format"])
def test_slow_reports_are_those_of_fast_ones(site: Site, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = some(seeded(1), QUERIES, 4)
    fast = [*everything(site, POLICIES[policy], queries)]
    make_all_slow(monkeypatch)
    assert [*everything(site, POLICIES[policy], queries)] == fast


@pytest.mark.parametrize(
    ("shared", "queries"),
    [
        pytest.param(statements.SHARED_ROWS_MAX, QUERIES, marks=pytest.mark.night),
        pytest.param(0, QUERIES, marks=pytest.mark.night),
        pytest.param(0, QUERIES[4:5], marks=pytest.mark.long),
    ],
)
def test_names_of_relations_and_values_in_the_name_of_a_folder_change_no_report(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: int, queries: Sequence[Query]
) -> None:
    expected = [*everything(site, (), queries)]
    monkeypatch.setattr(statements, "SHARED_ROWS_MAX", shared)
    name = "it's {part} {cells} {rows} <rows 0> rows_0 rows_1 $start_0 $limit"
    with closing(Site.after(prepare, tmp_path / name)) as odd:
        today = date(2026, 10, 1)
        rollups.rebuild(odd.hot, odd.root, odd.share, today, 0)
        assert [*everything(odd, (), queries)] == expected
        assert odd.faults() == []


def test_project_whose_report_needs_too_much_memory_is_a_warning_until_its_next_report(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all_slow(monkeypatch)
    monkeypatch.setattr(statements, "SLOW_MEMORY", "1MB")
    with closing(site.reports()) as reports:
        assert reports.warning is None
        with pytest.raises(duckdb.OutOfMemoryException):
            reports.views(reports.take(), LONG, 0, 10)
        assert reports.warning == "reports of 1 project need more memory than they may use"
        reports._statements._slow.execute("SET memory_limit = '100MB'")
        assert reports.views(reports.take(), LONG, 0, 10).rows.num_rows == 5
        assert reports.warning is None


@pytest.mark.long
def test_more_paths_than_fit_into_memory_are_counted_in_files_and_waiting_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all_slow(monkeypatch)
    monkeypatch.setattr(statements, "SLOW_MEMORY", "32MB")
    with closing(Site(tmp_path)) as site:
        site.post(*(view(f"/{number:05}".ljust(2_000, "x")) for number in range(25_000)))
        site.load()
        site.post(view("/00007".ljust(2_000, "x")))
        with closing(site.reports()) as reports:
            page = reports.views(reports.take(), EVERYTHING, 0, 2)
            assert [row["path"][:6] for row in page.rows.to_pylist()] == ["/00007", "/00000"]
            assert page.rows["human"].to_pylist() == [2, 1]


def test_report_that_needs_more_memory_than_fast_ones_have_is_slow(site: Site) -> None:
    with closing(site.reports()) as reports:
        snapshot, caller = reports.take(), engine.Caller(accepts_slow=True)
        reports.views(snapshot, EVERYTHING, 0, 10)
        assert reports._statements._created is None, "a fast report has created the database of slow ones"
        reports._statements.fast.execute("SET memory_limit = '1MB'")
        page = context_of(caller).run(reports.views, snapshot, LONG, 0, 10)
        assert page.rows.num_rows == 5
        assert caller.is_slow


def test_export_of_many_long_paths_is_slow_because_fast_ones_have_their_rows_in_memory(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(site.reports()) as reports:
        snapshot, caller = reports.take(), engine.Caller(accepts_slow=True)
        in_memory = list(reports.all_views(snapshot, LONG)[1])
        monkeypatch.setattr(statements, "SPILLED_PATH_BYTES", 4 * 2_000)
        assert list(context_of(caller).run(reports.all_views, snapshot, LONG)[1]) == in_memory
        assert caller.is_slow


@pytest.mark.long
def test_database_of_fast_reports_caches_the_metadata_of_few_files(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "METADATA_BYTES_MAX", 100_000)
    monkeypatch.setattr(statements, "METADATA_CHECKED_EVERY", 2)
    with closing(site.reports()) as reports:
        for number in range(12):
            site.post(view(f"/new-{number}", NOON + number * DAY))
            site.load()
            assert reports.views(reports.take(), EVERYTHING, 0, 100).rows.num_rows == 9 + number
        rows = reports._statements.fast.execute(statements.METADATA_BYTES).fetchall()
        assert rows[0][0] < 200_000


def test_caller_of_fast_reports_gets_only_slow_ones_that_are_cached(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all_slow(monkeypatch)
    fast = context_of(engine.Caller(accepts_slow=False))
    with closing(site.reports()) as reports:
        snapshot = reports.take()
        for read in (
            lambda: reports.views(snapshot, LONG, 0, 10).rows,
            lambda: reports.all_views(snapshot, LONG),
            lambda: reports.views_of(snapshot, LONG, ["/1"]),
            lambda: reports.agent_pages(snapshot, LONG),
            lambda: reports.first_ai_days(snapshot, LONG, ["/1"]),
            lambda: reports.breakdown(snapshot, LONG, "agent", 0, 10).rows,
        ):
            with pytest.raises(SlowReport):
                fast.run(read)
        caller = engine.Caller(accepts_slow=True)
        rows = context_of(caller).run(reports.views, snapshot, LONG, 0, 10).rows
        assert caller.is_slow
        assert fast.run(reports.views, snapshot, LONG, 0, 10).rows == rows


def test_slow_reports_wait_for_each_other_and_fast_ones_do_not(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(site.reports()) as reports:
        snapshot, read = reports.take(), list[int]()
        with reports._statements._turn("another"):
            assert reports.views(snapshot, EVERYTHING, 0, 10).rows.num_rows == 8
            make_all_slow(monkeypatch)
            thread = Thread(target=lambda: read.append(reports.views(snapshot, LONG, 0, 10).rows.num_rows))
            thread.start()
            thread.join(0.2)
            assert not read
        thread.join()
        assert read == [5]


def test_report_of_a_caller_who_has_left_is_interrupted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = engine.Caller(accepts_slow=True)
    caller.leave()
    with closing(site.reports()) as reports:
        for _ in range(2):
            with pytest.raises(duckdb.InterruptException):
                context_of(caller).run(reports.views, reports.take(), LONG, 0, 10)
            make_all_slow(monkeypatch)
        assert reports.warning is None


def begin(reports: Reports, count: int) -> list[Iterator[Any]]:
    snapshot = reports.take()
    return [reports.all_views(snapshot, EVERYTHING)[1] for _ in range(count)]


@pytest.mark.night
def test_exports_whose_clients_do_not_read_on_leave_memory_for_other_reports(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.post(*(view(f"/{number:06}".ljust(250, "x")) for number in range(130_000)))
    site.load()
    make_all_slow(monkeypatch)
    monkeypatch.setattr(statements, "SLOW_MEMORY", "100MB")
    with closing(site.reports()) as reports:
        exports = begin(reports, 6)
        begun = [next(each).num_rows for each in exports]
        assert reports.views(reports.take(), EVERYTHING, 100_000, 1).rows.num_rows == 1
        paths = [row for batch in exports[0] for row in batch["path"].to_pylist()]
        assert begun[0] + len(paths) == 130_008
        assert paths[:10_000] == sorted(paths[:10_000])
    monkeypatch.setattr(statements, "SPILL_LIMIT", "30MB")
    with closing(site.reports()) as reports:
        with pytest.raises(SpillFull, match="30MB"):
            exports = begin(reports, 20)
        exports.clear()
        assert next(begin(reports, 1)[0]).num_rows
        assert reports.warning is None


def test_breakdowns_that_a_page_shows_together_are_one_statement(site: Site) -> None:
    with closing(site.reports()) as reports:
        snapshot = reports.take()
        reports.breakdown(snapshot, replace(EVERYTHING, filters=Filters(traffic="ai")), "agent", 0, 10)
        reports._statements.fast.close()
        assert reports.breakdown(snapshot, EVERYTHING, "source", 0, 10).totals.ai > 0
        with pytest.raises(duckdb.ConnectionException):
            reports.breakdown(snapshot, EVERYTHING, "browser", 0, 10)
