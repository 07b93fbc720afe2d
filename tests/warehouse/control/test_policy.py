"""A policy counts the hits of its definition, from its day on."""

from datetime import UTC, date, datetime

import pytest

from warehouse.control.policy import Period, Policy, Span, changed, first_day, on, spans


def test_policy_of_a_day_is_the_last_one_that_began() -> None:
    periods = (Period(date(2026, 9, 10), "beacon_only"), Period(date(2026, 9, 20), "log_only"))
    days = {date(2026, 9, 9): "all", date(2026, 9, 10): "beacon_only", date(2026, 9, 20): "log_only"}
    assert {day: on(periods, day) for day in days} == days
    assert on((), date(2026, 9, 9)) == "all"


def test_spans_divide_the_days_where_a_policy_begins() -> None:
    periods = (Period(date(2026, 9, 10), "beacon_only"), Period(date(2026, 9, 20), "log_only"))
    first = Span(date(2026, 9, 1), date(2026, 9, 10), "all")
    second = Span(date(2026, 9, 10), date(2026, 9, 20), "beacon_only")
    assert spans(periods, date(2026, 9, 1), date(2026, 9, 21)) == [
        first,
        second,
        Span(date(2026, 9, 20), date(2026, 9, 21), "log_only"),
    ]
    assert spans(periods, date(2026, 9, 1), date(2026, 9, 10)) == [first]
    assert spans(periods, date(2026, 9, 10), date(2026, 9, 20)) == [second]
    assert spans((), date(2026, 9, 1), date(2026, 9, 1)) == []


@pytest.mark.parametrize(
    ("chosen", "first"),
    [
        ("all", date.min),
        ("beacon_only", date(2026, 9, 12)),
        ("beacon_people_log_machines", date(2026, 9, 12)),
        ("log_only", date(2026, 9, 3)),
    ],
)
def test_policy_begins_with_the_source_that_it_prefers(chosen: Policy, first: date) -> None:
    hits = {name: datetime(2026, 9, day, 23, tzinfo=UTC) for name, day in (("beacon", 12), ("server", 3), ("log", 5))}
    today = date(2026, 9, 28)
    assert first_day(chosen, hits, today) == first
    assert first_day(chosen, {}, today) == (date.min if chosen == "all" else today)


def test_new_policy_replaces_those_of_later_days() -> None:
    one, two = Period(date(2026, 9, 1), "log_only"), Period(date(2026, 9, 9), "beacon_only")
    periods = changed((one, two), "all", date(2026, 9, 5))
    assert periods == (one, Period(date(2026, 9, 5), "all"))
