"""The time from which each kind of readers is counted."""

from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from babel import Locale

from api.dashboard.pages.reading.measured import FILTERED, NOT_COUNTED, NOT_SET_UP, Measured, Shown, readable
from api.dashboard.web.period import Period
from warehouse.control.policy import Policy
from warehouse.report.filters import Counts
from warehouse.report.source_coverage import Source


def day(number: int) -> datetime:
    return datetime(2026, 9, number, tzinfo=UTC)


def period(first: int, end: int) -> Period:
    return Period("custom", date(2026, 9, first), date(2026, 9, end - 1), ZoneInfo("UTC"), "day", day(first), day(end))


def measured(**first_days: int) -> Measured:
    """Return the sources with these days of their first views."""
    sources = tuple(Source(name, day(first), day(28), ()) for name, first in first_days.items())
    return Measured(("human", "ai"), ("beacon", "log"), sources, (), bool(sources), frozenset({"all"}))


SCRIPT_THEN_LOG = measured(beacon=5, log=10)


def test_people_are_counted_from_the_first_source_and_ai_from_the_first_log() -> None:
    assert (SCRIPT_THEN_LOG.since, SCRIPT_THEN_LOG.ai_since) == (day(5), day(10))
    assert (measured(beacon=5).sees_ai, measured(log=5).sees_ai) == (False, True)
    assert measured(beacon=5).missing == ["Access logs"]


@pytest.mark.parametrize(
    ("end", "people", "ai"), [(5, False, False), (6, True, False), (10, True, False), (11, True, True)]
)
def test_period_counts_if_a_source_began_before_its_end(end: int, people: bool, ai: bool) -> None:
    assert SCRIPT_THEN_LOG.counts_in(period(1, end)) == people
    assert SCRIPT_THEN_LOG.reason("ai", period(1, end)) == (None if ai else NOT_COUNTED)


def test_kind_without_a_number_has_a_reason() -> None:
    assert SCRIPT_THEN_LOG.reason("bot", period(1, 20)) == FILTERED
    assert measured(beacon=5).reason("ai", period(1, 20)) == NOT_SET_UP


def test_change_of_the_sources_within_a_period_is_shown_with_its_time() -> None:
    assert SCRIPT_THEN_LOG.ai_began_within(period(1, 20)) == day(10)
    assert SCRIPT_THEN_LOG.ai_began_within(period(10, 20)) is None
    assert SCRIPT_THEN_LOG.ai_began_within(period(1, 10)) is None
    assert [source.source for source in SCRIPT_THEN_LOG.began_in(day(5), day(10))] == ["beacon"]


def test_range_is_complete_if_every_kind_was_counted_from_its_start() -> None:
    assert SCRIPT_THEN_LOG.counted_since(day(10), ("human", "ai", "bot"))
    assert not SCRIPT_THEN_LOG.counted_since(day(9), ("human", "ai"))
    assert SCRIPT_THEN_LOG.counted_since(day(9), ("human",))
    assert not measured().counted_since(day(9), ("human",))


@pytest.mark.parametrize(
    ("before", "now", "people", "ai"),
    [
        ("all", "all", True, True),
        ("all", "beacon_only", False, False),
        ("beacon_only", "all", False, False),
        ("all", "beacon_people_log_machines", False, True),
        ("beacon_only", "beacon_people_log_machines", True, False),
    ],
)
def test_range_with_a_change_of_the_policy_is_complete_for_kinds_of_the_same_sources(
    before: Policy, now: Policy, people: bool, ai: bool
) -> None:
    changed = replace(SCRIPT_THEN_LOG, policies=frozenset({now}), policies_before=frozenset({before}))
    assert (changed.counted_since(day(10), ("human",)), changed.counted_since(day(10), ("ai",))) == (people, ai)


def test_policy_that_leaves_out_a_source_without_views_changes_nothing() -> None:
    changed = replace(measured(beacon=5), policies_before=frozenset({"beacon_only"}))
    assert changed.counted_since(day(5), ("human", "ai"))


def test_warning_of_the_coverage_has_the_names_and_days_of_the_pages() -> None:
    warning = "log has had no hit for 12 days, since 2026-09-18"
    shown = [*readable([warning], Locale("en")), *readable([warning], Locale("de"))]
    assert shown == [
        "“Access logs” has had no view for 12 days, since Sep 18, 2026.",
        "“Access logs” has had no view for 12 days, since 18.09.2026.",
    ]


def test_zero_of_a_kind_that_was_not_counted_is_not_shown() -> None:
    assert SCRIPT_THEN_LOG.shown(Counts(0, 0, 0), day(7)) == Shown(0, None, None)
    assert SCRIPT_THEN_LOG.shown(Counts(0, 3, 0), day(7)) == Shown(0, 3, None)
    assert SCRIPT_THEN_LOG.shown(Counts(0, 0, 0), None) == Shown(0, 0, None)
