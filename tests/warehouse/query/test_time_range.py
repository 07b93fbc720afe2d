"""A time range is rounded to whole days, and each of its instants counts once."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.query.time_range import FIRST, LAST, Edge, RoundedRange, TimeRange, round_to_days

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
Ranges = tuple[TimeRange, ...]


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 9, day, hour, tzinfo=UTC)


def between(start: datetime, end: datetime) -> TimeRange:
    return TimeRange(start, end)


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


@pytest.mark.long
@settings(max_examples=300)
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
