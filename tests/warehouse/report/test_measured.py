"""Spans in which readers were counted: from the sources that see them, under the policy of each day.

A source is silent when it has sent nothing for much longer than usual; its quiet days before that are measured.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.control.policy import Period, Policy
from warehouse.query.time_range import FIRST
from warehouse.report.measured import (
    SILENT_AFTER,
    Limit,
    Measured,
    Span,
    Spans,
    holes,
    is_silent,
    merged,
    midnight,
    of_kinds,
    silent_after,
    spans,
)


def day(number: int) -> datetime:
    return datetime(2026, 9, number, tzinfo=UTC)


SCRIPT, LOG = (Span(day(5), None),), (Span(day(10), day(15)), Span(day(20), None))
SOURCES = {"beacon": SCRIPT, "log": LOG}


@pytest.mark.parametrize(
    ("policy", "people", "ai"),
    [
        ("all", SCRIPT, LOG),
        ("beacon_only", (Span(day(5), day(12)), Span(day(12), None)), (Span(day(10), day(12)),)),
        ("log_only", (Span(day(5), day(15)), Span(day(20), None)), LOG),
        ("beacon_people_log_machines", SCRIPT, LOG),
    ],
)
def test_readers_are_counted_while_a_source_sees_them_and_the_policy_counts_it(
    policy: Policy, people: Spans, ai: Spans
) -> None:
    spans = of_kinds(SOURCES, (Period(date(2026, 9, 12), policy),))
    assert (spans["human"], spans["ai"], spans["bot"]) == (merged(people), ai, ai)


def test_project_without_a_source_measured_nothing() -> None:
    nothing = Measured(of_kinds({}, ()), None, day(28), {})
    assert {nothing.extent(kind, FIRST, None) for kind in ("human", "ai", "bot")} == {"none"}
    assert not nothing.counts("human", day(1), None)


KNOWN = Measured(of_kinds(SOURCES, ()), day(5), day(28), SOURCES)


@pytest.mark.parametrize(
    ("start", "end", "people", "ai"),
    [
        (FIRST, None, "all", "part"),
        (day(4), None, "part", "part"),
        (day(20), None, "all", "all"),
        (day(20), datetime(2027, 1, 1, tzinfo=UTC), "all", "all"),
        (day(10), day(15), "all", "all"),
        (day(10), day(16), "all", "part"),
        (day(15), day(20), "all", "none"),
        (day(15), datetime(2026, 9, 20, 0, 0, 1, tzinfo=UTC), "all", "part"),
        (day(1), day(5), "none", "none"),
        (day(5), day(5), "none", "none"),
    ],
    ids=str,
)
def test_extent_of_a_range(start: datetime, end: datetime | None, people: str, ai: str) -> None:
    assert (KNOWN.extent("human", start, end), KNOWN.extent("ai", start, end)) == (people, ai)
    if start not in (FIRST, end):
        assert KNOWN.counts("ai", start, end) == (ai != "none")


def test_holes_are_the_parts_of_a_range_outside_of_all_spans() -> None:
    assert list(holes(LOG, Span(day(1), day(28)))) == [Span(day(1), day(10)), Span(day(15), day(20))]
    assert list(holes(LOG[:1], Span(day(12), day(28)))) == [Span(day(15), day(28))]
    assert list(holes(LOG, Span(day(11), day(15)))) == []
    assert list(holes((), Span(day(1), day(2)))) == [Span(day(1), day(2))]


def test_spans_that_overlap_or_touch_are_one() -> None:
    spans = [Span(day(5), day(7)), Span(day(1), day(3)), Span(day(3), day(4)), Span(day(6), day(6)), Span(day(8), None)]
    assert merged([*spans, Span(day(9), day(10))]) == (Span(day(1), day(4)), Span(day(5), day(7)), Span(day(8), None))


@pytest.mark.parametrize(
    ("kind", "start", "end", "policy", "limit"),
    [
        ("ai", day(20), None, "all", None),
        ("ai", day(6), day(12), "all", Limit("began", day(10))),
        ("ai", day(12), day(18), "all", Limit("silent", day(15), ("log",))),
        ("ai", day(1), day(3), "all", Limit("began", day(10))),
        ("ai", day(1), None, "beacon_only", Limit("policy", day(12))),
        ("human", day(12), day(18), "all", None),
    ],
    ids=str,
)
def test_time_without_a_count_has_a_reason_a_moment_and_sources(
    kind: str, start: datetime, end: datetime | None, policy: Policy, limit: Limit | None
) -> None:
    periods = (Period(date(2026, 9, 12), policy),)
    assert Measured(of_kinds(SOURCES, periods), day(5), day(28), SOURCES).limit(kind, start, end) == limit


FIRST_DAY = date(2026, 9, 1).toordinal()
DAILY = range(FIRST_DAY, FIRST_DAY + 20)
THREE_A_WEEK = [FIRST_DAY + week * 7 + day for week in range(6) for day in (0, 2, 4)]
NOON = timedelta(hours=12)


def counted(days: Sequence[int], now: int) -> list[Span]:
    """Return the spans of a source whose hits came at noon of the days, at noon of the day `now`."""
    return list(spans(days, midnight(days[0]) + NOON, midnight(days[-1]) + NOON, midnight(now) + NOON))


@pytest.mark.parametrize(
    ("days", "silent"),
    [
        (DAILY, 7),
        ([FIRST_DAY], 7),
        (THREE_A_WEEK, 7 * 28 / 12),
        ([FIRST_DAY, FIRST_DAY + 7, FIRST_DAY + 14], 35),
        ([*range(FIRST_DAY - 400, FIRST_DAY), FIRST_DAY + 300], 7 * 28),
        ([*range(FIRST_DAY - 300, FIRST_DAY, 30), *DAILY], 7 * 28 / 20),
    ],
    ids=["daily", "one day", "three days a week", "weekly", "one of the last 28 days", "of late"],
)
def test_source_is_silent_after_seven_times_its_usual_distance(days: Sequence[int], silent: float) -> None:
    assert silent_after(days, len(days) - 1) == pytest.approx(silent)
    last_hit = midnight(days[-1]) + NOON
    assert not is_silent(days, last_hit, last_hit + timedelta(silent) - timedelta(seconds=1))
    assert is_silent(days, last_hit, last_hit + timedelta(silent) + timedelta(seconds=1))


def test_daily_source_counts_until_the_end_of_the_day_of_its_last_hit_once_it_is_silent() -> None:
    start = midnight(FIRST_DAY) + NOON
    assert counted(DAILY, DAILY[-1] + 6) == [Span(start, None)]
    assert counted(DAILY, DAILY[-1] + 7) == [Span(start, midnight(DAILY[-1] + 1))]


def test_quiet_days_of_a_small_site_are_measured() -> None:
    assert counted(THREE_A_WEEK, THREE_A_WEEK[-1] + 15) == [Span(midnight(FIRST_DAY) + NOON, None)]
    with_a_break = [day for day in THREE_A_WEEK if not FIRST_DAY + 15 < day < FIRST_DAY + 28]
    assert len(counted(with_a_break, with_a_break[-1])) == 1


def test_silence_that_is_over_stays_unmeasured() -> None:
    days = [day for day in range(FIRST_DAY, FIRST_DAY + 60) if not FIRST_DAY + 20 <= day < FIRST_DAY + 30]
    assert counted(days, days[-1]) == [
        Span(midnight(FIRST_DAY) + NOON, midnight(FIRST_DAY + 20)),
        Span(midnight(FIRST_DAY + 30), None),
    ]
    shorter = [*DAILY, *range(DAILY[-1] + 7, DAILY[-1] + 30)]
    assert len(counted(shorter, shorter[-1])) == 1


def test_first_days_of_a_small_site_are_measured_by_its_later_habit() -> None:
    days = [FIRST_DAY, *(FIRST_DAY + 9 + each - THREE_A_WEEK[0] for each in THREE_A_WEEK)]
    assert counted(days, days[-1]) == [Span(midnight(FIRST_DAY) + NOON, None)]


@given(st.sets(st.integers(FIRST_DAY, FIRST_DAY + 400), min_size=1), st.integers(0, 400))
def test_spans_are_in_order_and_have_every_day_with_a_hit(days: set[int], later: int) -> None:
    listed = sorted(days)
    found = counted(listed, listed[-1] + later)
    assert all(one.end and one.end < another.start for one, another in pairwise(found))
    for each in listed:
        noon = datetime.combine(date.fromordinal(each), datetime.min.time(), UTC) + NOON
        assert any(span.start <= noon and (span.end is None or noon < span.end) for span in found)
    if all(after - before <= SILENT_AFTER for before, after in pairwise(listed)):
        assert len(found) == 1
