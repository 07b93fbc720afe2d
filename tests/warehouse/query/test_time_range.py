"""A time range is split into whole and partial days, or rounded to whole days; each of its instants counts once."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.query.time_range import FIRST, LAST, Edge, RoundedRange, SplitRange, TimeRange, round_to_days, split

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


@pytest.mark.parametrize(
    ("time_range", "whole_days", "edges"),
    [
        (between(at(2), at(4)), (between(at(2), at(4)),), ()),
        (between(at(1, 22), at(4)), (between(at(2), at(4)),), ((at(1, 22), at(2), 1),)),
        (between(at(1, 22), at(4, 22)), (between(at(2), at(5)),), ((at(1, 22), at(2), 1), (at(4, 22), at(5), -1))),
        (between(at(2, 5), at(4, 5)), (between(at(2), at(4)),), ((at(2), at(2, 5), -1), (at(4), at(4, 5), 1))),
        (between(at(2, 12), at(4)), (between(at(2), at(4)),), ((at(2), at(2, 12), -1),)),
        (between(at(1, 22), at(2, 22)), (between(at(2), at(3)),), ((at(1, 22), at(2), 1), (at(2, 22), at(3), -1))),
        (between(at(2, 13), at(3, 11)), (), ((at(2, 13), at(3), 1), (at(3), at(3, 11), 1))),
        (between(at(2, 10), at(2, 14)), (), ((at(2, 10), at(2, 14), 1),)),
        (between(at(2, 1), at(2, 2)), (), ((at(2, 1), at(2, 2), 1),)),
        (between(at(2, 6), at(2, 6)), (), ()),
        (between(at(5), at(3)), (), ()),
        (between(FIRST, FIRST), (), ()),
        (between(FIRST, LAST), (between(FIRST, LAST),), ()),
        (between(at(2), LAST + 23 * DAY / 24), (between(at(2), LAST),), ((LAST, LAST + 23 * DAY / 24, 1),)),
    ],
)
def test_range_is_rounded_to_the_nearest_midnights(
    time_range: TimeRange, whole_days: Ranges, edges: tuple[tuple[datetime, datetime, int], ...]
) -> None:
    expected = tuple(Edge(between(start, end), sign) for start, end, sign in edges)
    assert round_to_days(time_range) == RoundedRange(whole_days, expected)


@settings(max_examples=300, derandomize=True)
@given(
    st.datetimes(datetime(2026, 9, 1), datetime(2026, 9, 5), timezones=st.just(UTC)),  # noqa: DTZ001
    st.datetimes(datetime(2026, 9, 1), datetime(2026, 9, 5), timezones=st.just(UTC)),  # noqa: DTZ001
    st.datetimes(datetime(2026, 9, 1), datetime(2026, 9, 5), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_each_instant_of_a_rounded_range_counts_once_and_others_do_not(
    start: datetime, end: datetime, instant: datetime
) -> None:
    rounded = round_to_days(between(start, end))
    signed = [*((days, 1) for days in rounded.whole_days), *((edge.time_range, edge.sign) for edge in rounded.edges)]
    for each in (instant, start, end, end - MICROSECOND):
        counted = sum(sign for part, sign in signed if part.start <= each < part.end)
        assert counted == (start <= each < end)
    assert sum((edge.time_range.end - edge.time_range.start for edge in rounded.edges), timedelta()) <= DAY
