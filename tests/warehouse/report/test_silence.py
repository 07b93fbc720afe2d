"""A source is silent when it has sent nothing for much longer than usual; its quiet days before that are measured."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.report.measured import SILENT_AFTER, Span, is_silent, midnight, silent_after, spans

FIRST = date(2026, 9, 1).toordinal()
DAILY = range(FIRST, FIRST + 20)
THREE_A_WEEK = [FIRST + week * 7 + day for week in range(6) for day in (0, 2, 4)]
NOON = timedelta(hours=12)


def counted(days: Sequence[int], now: int) -> list[Span]:
    """Return the spans of a source whose hits came at noon of the days, at noon of the day `now`."""
    return list(spans(days, midnight(days[0]) + NOON, midnight(days[-1]) + NOON, midnight(now) + NOON))


@pytest.mark.parametrize(
    ("days", "silent"),
    [
        (DAILY, 7),
        ([FIRST], 7),
        (THREE_A_WEEK, 7 * 28 / 12),
        ([FIRST, FIRST + 7, FIRST + 14], 35),
        ([*range(FIRST - 400, FIRST), FIRST + 300], 7 * 28),
        ([*range(FIRST - 300, FIRST, 30), *DAILY], 7 * 28 / 20),
    ],
    ids=["daily", "one day", "three days a week", "weekly", "one of the last 28 days", "of late"],
)
def test_source_is_silent_after_seven_times_its_usual_distance(days: Sequence[int], silent: float) -> None:
    assert silent_after(days, len(days) - 1) == pytest.approx(silent)
    last_hit = midnight(days[-1]) + NOON
    assert not is_silent(days, last_hit, last_hit + timedelta(silent) - timedelta(seconds=1))
    assert is_silent(days, last_hit, last_hit + timedelta(silent) + timedelta(seconds=1))


def test_daily_source_counts_until_the_end_of_the_day_of_its_last_hit_once_it_is_silent() -> None:
    start = midnight(FIRST) + NOON
    assert counted(DAILY, DAILY[-1] + 6) == [Span(start, None)]
    assert counted(DAILY, DAILY[-1] + 7) == [Span(start, midnight(DAILY[-1] + 1))]


def test_quiet_days_of_a_small_site_are_measured() -> None:
    assert counted(THREE_A_WEEK, THREE_A_WEEK[-1] + 15) == [Span(midnight(FIRST) + NOON, None)]
    with_a_break = [day for day in THREE_A_WEEK if not FIRST + 15 < day < FIRST + 28]
    assert len(counted(with_a_break, with_a_break[-1])) == 1


def test_silence_that_is_over_stays_unmeasured() -> None:
    days = [day for day in range(FIRST, FIRST + 60) if not FIRST + 20 <= day < FIRST + 30]
    assert counted(days, days[-1]) == [
        Span(midnight(FIRST) + NOON, midnight(FIRST + 20)),
        Span(midnight(FIRST + 30), None),
    ]
    shorter = [*DAILY, *range(DAILY[-1] + 7, DAILY[-1] + 30)]
    assert len(counted(shorter, shorter[-1])) == 1


def test_first_days_of_a_small_site_are_measured_by_its_later_habit() -> None:
    days = [FIRST, *(FIRST + 9 + each - THREE_A_WEEK[0] for each in THREE_A_WEEK)]
    assert counted(days, days[-1]) == [Span(midnight(FIRST) + NOON, None)]


@given(st.sets(st.integers(FIRST, FIRST + 400), min_size=1), st.integers(0, 400))
def test_spans_are_in_order_and_have_every_day_with_a_hit(days: set[int], later: int) -> None:
    listed = sorted(days)
    found = counted(listed, listed[-1] + later)
    assert all(one.end and one.end < another.start for one, another in pairwise(found))
    for each in listed:
        noon = datetime.combine(date.fromordinal(each), datetime.min.time(), UTC) + NOON
        assert any(span.start <= noon and (span.end is None or noon < span.end) for span in found)
    if all(after - before <= SILENT_AFTER for before, after in pairwise(listed)):
        assert len(found) == 1
