"""Spans in which readers were counted: from the sources that see them, under the policy of each day."""

from datetime import UTC, date, datetime

import pytest

from warehouse.control.policy import Period, Policy
from warehouse.query.time_range import FIRST
from warehouse.report.measured import Limit, Measured, Span, Spans, holes, merged, of_kinds


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
    assert merged([*spans, Span(day(9), day(10))]) == (
        Span(day(1), day(4)),
        Span(day(5), day(7)),
        Span(day(8), None),
    )


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
