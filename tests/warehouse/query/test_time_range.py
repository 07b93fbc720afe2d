"""A span is cut into whole days and edges that hold each of its instants once."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.query.time_range import FIRST, LAST, Cut, Span, cut

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 9, day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "days", "edges"),
    [
        (Span(at(2), at(4)), (Span(at(2), at(4)),), ()),
        (Span(at(2, 6), at(4)), (Span(at(3), at(4)),), (Span(at(2, 6), at(3)),)),
        (Span(at(2), at(4, 6)), (Span(at(2), at(4)),), (Span(at(4), at(4, 6)),)),
        (Span(at(2, 6), at(4, 6)), (Span(at(3), at(4)),), (Span(at(2, 6), at(3)), Span(at(4), at(4, 6)))),
        (Span(at(2, 6), at(3, 6)), (), (Span(at(2, 6), at(3, 6)),)),
        (Span(at(2, 6), at(3)), (), (Span(at(2, 6), at(3)),)),
        (Span(at(2, 6), at(2, 7)), (), (Span(at(2, 6), at(2, 7)),)),
        (Span(at(3), at(3)), (), ()),
        (Span(at(2, 6), at(2, 6)), (), ()),
        (Span(at(5), at(3)), (), ()),
        (Span(FIRST, LAST), (Span(FIRST, LAST),), ()),
    ],
)
def test_span_is_cut_at_its_midnights(span: Span, days: tuple[Span, ...], edges: tuple[Span, ...]) -> None:
    assert cut(span) == Cut(days, edges)


@pytest.mark.parametrize(
    ("span", "uncounted", "days", "edges"),
    [
        (Span(at(2), at(9)), {4}, (Span(at(2), at(4)), Span(at(5), at(9))), (Span(at(4), at(5)),)),
        (Span(at(2), at(9)), {2, 8}, (Span(at(3), at(8)),), (Span(at(2), at(3)), Span(at(8), at(9)))),
        (Span(at(2), at(9)), {4, 5}, (Span(at(2), at(4)), Span(at(6), at(9))), (Span(at(4), at(6)),)),
        (Span(at(2, 6), at(9)), {3}, (Span(at(4), at(9)),), (Span(at(2, 6), at(4)),)),
        (Span(at(2), at(4)), {2, 3}, (), (Span(at(2), at(4)),)),
        (Span(at(2), at(4)), {1, 4}, (Span(at(2), at(4)),), ()),
    ],
)
def test_days_uncounted_are_no_whole_days(
    span: Span, uncounted: set[int], days: tuple[Span, ...], edges: tuple[Span, ...]
) -> None:
    assert cut(span, [at(day).date().isoformat() for day in uncounted]) == Cut(days, edges)


instants = st.datetimes(max_value=LAST.replace(tzinfo=None), timezones=st.just(UTC))
days_around = st.integers(-3, 3).map(lambda days: days * DAY)
moments = st.one_of(
    instants,
    st.builds(lambda days, step: at(15) + days + step * MICROSECOND, days_around, st.integers(-1, 1)),
    st.builds(lambda days, clock: datetime.combine(at(15) + days, clock, UTC), days_around, st.times()),
)


uncounted_days = st.sets(st.integers(10, 20).map(lambda day: at(day).date().isoformat()))


@settings(deadline=None, derandomize=True, max_examples=500)
@given(moments, moments, moments, uncounted_days)
def test_instant_is_in_one_part_if_it_is_in_the_span_and_else_in_none(
    start: datetime, end: datetime, instant: datetime, uncounted: set[str]
) -> None:
    parts = cut(Span(start, end), uncounted)
    holding = [part for part in (*parts.days, *parts.edges) if part.start <= instant < part.end]
    assert len(holding) == (start <= instant < end)
    assert not any(part in parts.days for part in holding) or instant.date().isoformat() not in uncounted


@settings(deadline=None, derandomize=True, max_examples=500)
@given(moments, moments)
def test_days_begin_and_end_at_midnight_and_no_edge_holds_a_whole_day(start: datetime, end: datetime) -> None:
    parts = cut(Span(start, end))
    assert all(run.start.time() == run.end.time() == time() and run.start < run.end for run in parts.days)
    assert len(parts.days) <= 1
    assert len(parts.edges) <= 2
    for edge in parts.edges:
        assert edge.start < edge.end
        assert edge.end < datetime.combine(edge.start, time(), UTC) + 2 * DAY
        assert edge.start.time() != time() or edge.end - edge.start < DAY
