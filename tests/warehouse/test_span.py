"""A span is cut into whole days and edges that hold each of its instants once."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.span import FIRST, LAST, Cut, Span, cut

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 9, day, hour, tzinfo=UTC)


NO_DAYS = Span(at(3), at(3))


@pytest.mark.parametrize(
    ("span", "days", "edges"),
    [
        (Span(at(2), at(4)), Span(at(2), at(4)), ()),
        (Span(at(2, 6), at(4)), Span(at(3), at(4)), (Span(at(2, 6), at(3)),)),
        (Span(at(2), at(4, 6)), Span(at(2), at(4)), (Span(at(4), at(4, 6)),)),
        (Span(at(2, 6), at(4, 6)), Span(at(3), at(4)), (Span(at(2, 6), at(3)), Span(at(4), at(4, 6)))),
        (Span(at(2, 6), at(3, 6)), NO_DAYS, (Span(at(2, 6), at(3)), Span(at(3), at(3, 6)))),
        (Span(at(2, 6), at(3)), NO_DAYS, (Span(at(2, 6), at(3)),)),
        (Span(at(2, 6), at(2, 7)), NO_DAYS, (Span(at(2, 6), at(2, 7)),)),
        (Span(at(3), at(3)), NO_DAYS, ()),
        (Span(at(2, 6), at(2, 6)), NO_DAYS, ()),
        (Span(at(5), at(3)), Span(at(5), at(5)), ()),
        (Span(FIRST, LAST), Span(FIRST, LAST), ()),
    ],
)
def test_span_is_cut_at_its_midnights(span: Span, days: Span, edges: tuple[Span, ...]) -> None:
    assert cut(span) == Cut(days, edges)


instants = st.datetimes(max_value=LAST.replace(tzinfo=None), timezones=st.just(UTC))
days_around = st.integers(-3, 3).map(lambda days: days * DAY)
moments = st.one_of(
    instants,
    st.builds(lambda days, step: at(15) + days + step * MICROSECOND, days_around, st.integers(-1, 1)),
    st.builds(lambda days, clock: datetime.combine(at(15) + days, clock, UTC), days_around, st.times()),
)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(moments, moments, moments)
def test_instant_is_in_one_part_if_it_is_in_the_span_and_else_in_none(
    start: datetime, end: datetime, instant: datetime
) -> None:
    parts = cut(Span(start, end))
    holding = [part for part in (parts.days, *parts.edges) if part.start <= instant < part.end]
    assert len(holding) == (start <= instant < end)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(moments, moments)
def test_days_begin_and_end_at_midnight_and_each_edge_is_part_of_one_day(start: datetime, end: datetime) -> None:
    parts = cut(Span(start, end))
    assert parts.days.start.time() == parts.days.end.time() == time()
    assert parts.days.start <= parts.days.end
    assert len(parts.edges) <= 2
    for edge in parts.edges:
        assert edge.start < edge.end
        assert edge.start.date() == (edge.end - MICROSECOND).date()
        assert edge.end - edge.start < DAY
