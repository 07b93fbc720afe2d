"""A time range is split into whole days and partial days, and each of its instants is in exactly one of them."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.query.time_range import FIRST, LAST, SplitRange, TimeRange, split

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
Ranges = tuple[TimeRange, ...]


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 9, day, hour, tzinfo=UTC)


def between(start: datetime, end: datetime) -> TimeRange:
    return TimeRange(start, end)


@pytest.mark.parametrize(
    ("time_range", "whole_days", "partial_days"),
    [
        (between(at(2), at(4)), (between(at(2), at(4)),), ()),
        (between(at(2, 6), at(4)), (between(at(3), at(4)),), (between(at(2, 6), at(3)),)),
        (between(at(2), at(4, 6)), (between(at(2), at(4)),), (between(at(4), at(4, 6)),)),
        (
            between(at(2, 6), at(4, 6)),
            (between(at(3), at(4)),),
            (between(at(2, 6), at(3)), between(at(4), at(4, 6))),
        ),
        (between(at(2, 6), at(3, 6)), (), (between(at(2, 6), at(3, 6)),)),
        (between(at(2, 6), at(3)), (), (between(at(2, 6), at(3)),)),
        (between(at(2, 6), at(2, 7)), (), (between(at(2, 6), at(2, 7)),)),
        (between(at(3), at(3)), (), ()),
        (between(at(2, 6), at(2, 6)), (), ()),
        (between(at(5), at(3)), (), ()),
        (between(FIRST, LAST), (between(FIRST, LAST),), ()),
    ],
)
def test_range_is_split_at_its_first_and_last_midnight(
    time_range: TimeRange, whole_days: Ranges, partial_days: Ranges
) -> None:
    assert split(time_range) == SplitRange(whole_days, partial_days)


@pytest.mark.parametrize(
    ("start", "end", "excluded", "whole_days", "partial_days"),
    [
        (at(2), at(9), {4}, (between(at(2), at(4)), between(at(5), at(9))), (between(at(4), at(5)),)),
        (at(2), at(9), {2, 8}, (between(at(3), at(8)),), (between(at(2), at(3)), between(at(8), at(9)))),
        (at(2), at(9), {4, 5}, (between(at(2), at(4)), between(at(6), at(9))), (between(at(4), at(6)),)),
        (at(2, 6), at(9), {3}, (between(at(4), at(9)),), (between(at(2, 6), at(4)),)),
        (at(2), at(4), {2, 3}, (), (between(at(2), at(4)),)),
        (at(2), at(4), {1, 4}, (between(at(2), at(4)),), ()),
    ],
)
def test_excluded_days_are_partial_days(
    start: datetime, end: datetime, excluded: set[int], whole_days: Ranges, partial_days: Ranges
) -> None:
    days = [at(day).date().isoformat() for day in excluded]
    assert split(TimeRange(start, end), days) == SplitRange(whole_days, partial_days)


instants = st.datetimes(max_value=LAST.replace(tzinfo=None), timezones=st.just(UTC))
days_around = st.integers(-3, 3).map(lambda days: days * DAY)
moments = st.one_of(
    instants,
    st.builds(lambda days, step: at(15) + days + step * MICROSECOND, days_around, st.integers(-1, 1)),
    st.builds(lambda days, clock: datetime.combine(at(15) + days, clock, UTC), days_around, st.times()),
)
excluded_days = st.sets(st.integers(10, 20).map(lambda day: at(day).date().isoformat()))


@settings(deadline=None, derandomize=True, max_examples=500)
@given(moments, moments, moments, excluded_days)
def test_each_instant_of_the_range_is_in_exactly_one_part_and_others_in_none(
    start: datetime, end: datetime, instant: datetime, excluded: set[str]
) -> None:
    parts = split(TimeRange(start, end), excluded)
    containing = [part for part in (*parts.whole_days, *parts.partial_days) if part.start <= instant < part.end]
    assert len(containing) == (start <= instant < end)
    if any(part in parts.whole_days for part in containing):
        assert instant.date().isoformat() not in excluded


@settings(deadline=None, derandomize=True, max_examples=500)
@given(moments, moments)
def test_whole_days_begin_and_end_at_midnight_and_no_partial_day_contains_a_whole_one(
    start: datetime, end: datetime
) -> None:
    parts = split(TimeRange(start, end))
    assert all(days.start.time() == days.end.time() == time() and days.start < days.end for days in parts.whole_days)
    assert len(parts.whole_days) <= 1
    assert len(parts.partial_days) <= 2
    for part in parts.partial_days:
        assert part.start < part.end
        assert part.end < datetime.combine(part.start, time(), UTC) + 2 * DAY
        assert part.start.time() != time() or part.end - part.start < DAY
