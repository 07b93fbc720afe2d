"""A series has a row for each bucket, and its counts add up to those of the range, in any zone."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounds import rounds
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import FILTERS, ROWS, TIMES, LakeIn, SmallLake
from tests.warehouse.site import Row, view
from warehouse.columns.filters import Filters
from warehouse.query.time_range import TimeRange
from warehouse.report.cells import Scope
from warehouse.report.series import series, unit
from warehouse.report.time_buckets import INTERVALS, buckets

ZONES = st.sampled_from(sorted(available_timezones())).map(ZoneInfo)
DAY = timedelta(days=1)


def rows_of(lake: SmallLake, rows: list[Row], scope: Scope, interval: str, zone: ZoneInfo) -> list[dict[str, object]]:
    lake.waiting = reference.hot(rows)
    parts = buckets(scope.time_range, interval, zone)
    counts = lake.use().counts(lake.snapshot, scope, *unit(parts))
    result: list[dict[str, object]] = series(parts, counts).to_pylist()
    return result


def of(
    lake: SmallLake, rows: list[Row], start: str, end: str, interval: str, zone: str = "UTC"
) -> list[tuple[object, ...]]:
    time_range = TimeRange(datetime.fromisoformat(start), datetime.fromisoformat(end))
    scope = Scope("site", time_range, Filters())
    return [tuple(row.values()) for row in rows_of(lake, rows, scope, interval, ZoneInfo(zone))]


def at(text: str, **columns: object) -> Row:
    return view(ts=datetime.fromisoformat(text), **columns)


def test_gap_is_a_row_of_zeros_and_bots_are_beside_the_total(small_lake: SmallLake) -> None:
    rows = [at("2026-09-01T10:00Z"), at("2026-09-03T10:00Z", traffic="ai"), at("2026-09-03T10:00Z", traffic="bot")]
    assert of(small_lake, rows, "2026-09-01T00:00Z", "2026-09-04T00:00Z", "day") == [
        ("2026-09-01", 1, 0, 0, 1),
        ("2026-09-02", 0, 0, 0, 0),
        ("2026-09-03", 0, 1, 1, 1),
    ]


def test_day_of_25_hours_has_the_hits_of_both_of_its_repeated_hours(small_lake: SmallLake) -> None:
    rows = [at("2026-10-24T22:00Z"), at("2026-10-25T00:30Z"), at("2026-10-25T01:30Z"), at("2026-10-25T23:00Z")]
    assert of(small_lake, rows, "2026-10-24T22:00Z", "2026-10-26T23:00Z", "day", "Europe/Berlin") == [
        ("2026-10-25", 3, 0, 0, 3),
        ("2026-10-26", 1, 0, 0, 1),
    ]
    hours = of(small_lake, rows, "2026-10-25T00:00Z", "2026-10-25T02:00Z", "hour", "Europe/Berlin")
    assert hours == [("2026-10-25T02:00:00+02:00", 1, 0, 0, 1), ("2026-10-25T02:00:00+01:00", 1, 0, 0, 1)]


def test_range_cut_inside_of_a_bucket_counts_only_the_range(small_lake: SmallLake) -> None:
    rows = [at("2026-09-01T09:59:59Z"), at("2026-09-01T10:00Z"), at("2026-09-02T00:00Z"), at("2026-09-02T00:00:01Z")]
    assert of(small_lake, rows, "2026-09-01T10:00Z", "2026-09-02T00:00:01Z", "week") == [("2026-08-31", 2, 0, 0, 2)]


@pytest.mark.parametrize(
    ("zone", "start", "interval", "dimensions"),
    [
        ("UTC", "2026-09-01T10:00Z", "month", ("day",)),
        ("Africa/Abidjan", "2026-09-01T10:00Z", "day", ("day",)),
        ("UTC", "2026-09-01T10:00Z", "hour", ("day", "quarter")),
        ("Asia/Kathmandu", "2026-09-01T10:00Z", "week", ("day", "quarter")),
        ("Africa/Monrovia", "1971-12-01T10:00Z", "day", ("second",)),
    ],
)
def test_unit_is_the_longest_in_which_all_buckets_begin(
    zone: str, start: str, interval: str, dimensions: tuple[str, ...]
) -> None:
    first = datetime.fromisoformat(start)
    assert unit(buckets(TimeRange(first, first + 3 * DAY), interval, ZoneInfo(zone))) == dimensions


@pytest.mark.night
def test_all_zones_have_offsets_in_quarters_of_an_hour_since_1980() -> None:
    """Check that rollups, which count quarters of an hour, serve the series of all hits that a site has."""
    first_s, end_s = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1980, 2038))
    for name in available_timezones():
        instants = (datetime.fromtimestamp(at_s, ZoneInfo(name)) for at_s in range(first_s, end_s, 10 * 86_400))
        assert {(at.utcoffset() or DAY) % timedelta(minutes=15) for at in instants} == {timedelta()}, name


def test_range_without_an_instant_has_no_rows(small_lake: SmallLake) -> None:
    assert of(small_lake, [at("2026-09-01T10:00Z")], "2026-09-01T10:00Z", "2026-09-01T10:00Z", "day") == []


def test_first_bucket_has_the_hits_of_the_year_1_before_its_local_midnight(small_lake: SmallLake) -> None:
    rows = [at("0001-01-01T00:00Z"), at("0001-01-02T00:00Z")]
    weeks = of(small_lake, rows, "0001-01-01T00:00Z", "0001-01-12T00:00Z", "week", "America/St_Johns")
    assert weeks == [("0001-01-01", 2, 0, 0, 2), ("0001-01-08", 0, 0, 0, 0)]


@settings(max_examples=rounds(100))
@given(st.lists(ROWS, max_size=20), TIMES, TIMES, FILTERS, st.sampled_from(INTERVALS), ZONES)
def test_sum_of_each_bucket_is_that_of_its_hits(
    lake_in: LakeIn, rows: list[Row], first: datetime, second: datetime, filters: Filters, interval: str, zone: ZoneInfo
) -> None:
    scope = Scope("site", TimeRange(min(first, second), max(first, second)), filters)
    parts = buckets(scope.time_range, interval, zone)
    result = rows_of(lake_in(Path("nowhere")), rows, scope, interval, zone)
    assert [row["start"] for row in result] == [part.label for part in parts]
    limits = [*(datetime.fromtimestamp(part.start_s, UTC) for part in parts), scope.time_range.end]
    for row, (start, end) in zip(result, pairwise(limits), strict=True):
        within = Scope("site", TimeRange(max(start, scope.time_range.start), end), filters)
        expected = reference.counts(rows, within, lambda row: None).get(None, [0, 0, 0])
        assert [row["human"], row["ai"], row["bot"], row["total"]] == [*expected, expected[0] + expected[1]]
