"""Cells of a snapshot are read from as few files as possible, and each page view counts once."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import EVERYTHING, SmallLake
from tests.warehouse.site import DAY, NOON, view
from warehouse.columns.dimensions import BREAKDOWNS
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period
from warehouse.query.time_range import TimeRange
from warehouse.report import cells
from warehouse.report.cells import Scope

AI = {"traffic": "ai", "agent": "GPTBot"}


def within(start: datetime, end: datetime, **filters: str) -> Scope:
    return Scope("site", TimeRange(start, end), Filters(**filters))


def is_slow(lake: SmallLake, scope: Scope, *columns: str) -> bool:
    return cells.select(lake.snapshot, lake.coverage, scope, columns).is_slow


@pytest.mark.parametrize("is_hot", [False, True], ids=["files", "hot"])
def test_instant_before_1970_is_in_the_unit_that_contains_it(small_lake: SmallLake, is_hot: bool) -> None:
    row = view(ts=datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC))
    if is_hot:
        small_lake.waiting = reference.hot([row])
    else:
        small_lake.add([view(project_id="another"), row], "one")
    assert small_lake.counts(EVERYTHING, "second") == {(-1,): [1, 0, 0]}
    assert small_lake.counts(EVERYTHING, "day", "quarter") == {(date(1969, 12, 31), 95): [1, 0, 0]}


def test_lake_without_files_and_waiting_rows_has_no_counts(small_lake: SmallLake) -> None:
    for by in (*((each,) for each in BREAKDOWNS), ("second",), ("day", "quarter")):
        assert small_lake.counts(EVERYTHING, *by) == {}


def test_files_of_days_outside_of_the_range_are_not_opened(small_lake: SmallLake) -> None:
    small_lake.add([view(ts=NOON + number * DAY) for number in range(4)], "one")
    for file in small_lake.files[::3]:
        Path(file.path).unlink()
    midnight = reference.MIDNIGHT + DAY
    assert small_lake.counts(within(midnight, midnight + 2 * DAY), "path") == {("/a",): [2, 0, 0]}
    assert small_lake.counts(within(NOON + DAY, NOON + 2 * DAY), "path") == {("/a",): [1, 0, 0]}
    assert small_lake.counts(within(midnight, midnight), "path") == {}


@pytest.mark.long
def test_hits_of_an_edge_are_subtracted_from_their_day(small_lake: SmallLake) -> None:
    small_lake.add(
        [view("/in", NOON - DAY / 4), view("/out", NOON + DAY / 4, **AI), view("/in", NOON + DAY / 4)], "one"
    )
    small_lake.write_rollups()
    scope = within(reference.MIDNIGHT, NOON + DAY / 8)
    assert small_lake.counts(scope, "path") == {("/in",): [1, 0, 0]}
    assert small_lake.counts(scope, "agent") == {(None,): [1, 0, 0]}


@pytest.mark.long
def test_day_that_lost_a_file_is_counted_from_its_other_files(small_lake: SmallLake) -> None:
    small_lake.add([view(ts=NOON + number * DAY) for number in range(4)], "one")
    remaining = small_lake.files
    small_lake.add([view(ts=NOON + 2 * DAY)], "two")
    small_lake.write_rollups()
    small_lake.files = remaining
    (part,) = small_lake.coverage.parts
    assert (len(part.days), len(small_lake.coverage.uncovered)) == (3, 1)
    for by in ("agent", "path", "browser"):
        assert [*small_lake.counts(EVERYTHING, by).values()] == [[4, 0, 0]]


@pytest.mark.long
def test_month_in_which_a_policy_begins_is_counted_by_its_days(small_lake: SmallLake) -> None:
    hours = (-20, -1, 0, 5, 20)
    small_lake.add(
        [view("/a", NOON + day * DAY, source=source) for day in hours for source in ("beacon", "log")], "one"
    )
    small_lake.write_rollups()
    small_lake.empty_covered_files()
    policy = (Period(NOON.date(), "beacon_only"), Period((NOON + 5 * DAY).date(), "log_only"))
    for first in (Period(date.min, "all"), Period(date(2026, 8, 31), "log_only")):
        scope = replace(EVERYTHING, filters=Filters((first, *policy)))
        before = {"all": 2, "log_only": 1}
        earlier = 2 * before[first.policy] if first.from_date == date.min else 2 + 1
        for by in ("path", "device"):
            assert list(small_lake.counts(scope, by).values()) == [[earlier + 3, 0, 0]]


def test_files_of_0_1_0_have_no_verified_views(small_lake: SmallLake) -> None:
    small_lake.add([view("/a", traffic="ai"), view("/b", traffic="ai")], "older")
    for file in small_lake.files:
        older = pq.ParquetFile(file.path).read().drop_columns(["verification", "verified_by", "hints"])
        pq.write_table(older, file.path)
    verified = replace(EVERYTHING, filters=Filters(verification="verified"))
    assert small_lake.counts(verified, "path") == {}
    small_lake.add([view("/c", traffic="ai", verification="verified")], "newer")
    assert small_lake.counts(verified, "path") == {("/c",): [0, 1, 0]}
    assert small_lake.counts(EVERYTHING, "verification") == {("verified",): [0, 1, 0], ("not_checked",): [0, 2, 0]}


@pytest.mark.long
def test_report_of_many_hits_or_of_long_paths_that_no_rollup_counts_is_slow(
    small_lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_lake.add([view("/" + "x" * 2_000), view("/y", NOON + DAY, project_id="another")], "one")
    assert not is_slow(small_lake, EVERYTHING, "path")
    monkeypatch.setattr(cells, "SLOW_PATH_BYTES", 2_000)
    assert is_slow(small_lake, EVERYTHING, "path")
    assert not is_slow(small_lake, EVERYTHING, "browser")
    assert not is_slow(small_lake, replace(EVERYTHING, project="another"), "path")
    small_lake.files = [replace(file, rows=cells.SLOW_ROWS) for file in small_lake.files]
    assert is_slow(small_lake, EVERYTHING, "browser")
    assert not is_slow(small_lake, within(NOON, NOON + DAY / 8), "browser")
    small_lake.write_rollups()
    assert not is_slow(small_lake, EVERYTHING, "browser")


@pytest.mark.long
def test_report_of_one_path_with_many_views_is_slow(small_lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    small_lake.add([view("/many", NOON + number * DAY / 9) for number in range(3)], "one")
    small_lake.write_rollups()
    many, none = (replace(EVERYTHING, filters=Filters(path=path)) for path in ("/many", "/none"))
    assert not is_slow(small_lake, many, "browser")
    monkeypatch.setattr(cells, "SLOW_ROWS", 2)
    assert is_slow(small_lake, many, "browser")
    assert not is_slow(small_lake, none, "browser")
    assert not is_slow(small_lake, many, "agent")


@pytest.mark.parametrize("limit", [10, 10_000_000])
def test_long_paths_are_not_shared_in_memory(
    small_lake: SmallLake, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    small_lake.add([view("/long")], "one")
    monkeypatch.setattr(cells, "SHARED_PATH_BYTES", limit)
    chosen = cells.select(small_lake.snapshot, small_lake.coverage, EVERYTHING, ["path"])
    assert bool(chosen.shared) == (limit > 10)
