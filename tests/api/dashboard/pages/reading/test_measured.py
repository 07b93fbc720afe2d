"""What the sources counted in a period: numbers, changes and shares that are unknown have a reason."""

from datetime import date, datetime

import pytest
from babel import Locale

from api.dashboard.pages.reading.measured import APART, FILTERED, LEFT_OUT, NOT_COUNTED, NOT_SET_UP, Shown, readable
from tests.api.dashboard.pages.reading.measuring import day, measured, period
from warehouse.control.policy import Policy
from warehouse.report.results import Counts
from warehouse.report.source_warnings import SourceWarning

SCRIPT_THEN_LOG = {"beacon": day(5), "log": day(10)}
LOG_FELL_SILENT = {"log": 12}
"""The log sent its last view on day 11."""
SILENT = "“Access logs” sent no view after Sep 11, 2026"


def test_source_that_never_sent_a_view_is_missing() -> None:
    script = measured(shown=period(1, 20), beacon=day(5))
    assert (script.sees_ai, script.missing, script.since) == (False, ["Access logs"], day(5))
    assert measured(shown=period(1, 20), log=day(5)).sees_ai


def test_readers_are_counted_from_the_first_view_of_a_source_until_it_falls_silent() -> None:
    for first, end, people, ai in (
        (1, 5, False, False),
        (1, 6, True, False),
        (1, 10, True, False),
        (1, 11, True, True),
        (12, 20, True, False),
    ):
        known = measured(shown=period(first, end), silent=LOG_FELL_SILENT, **SCRIPT_THEN_LOG)
        assert known.reason("human") == (None if people else NOT_COUNTED)
        assert known.reason("ai") == (None if ai else NOT_COUNTED)
        zeros = Shown(*(0 if each else None for each in (people, ai, ai)))
        assert known.shown(Counts(), day(first), day(end)) == zeros


def test_number_above_zero_is_always_shown() -> None:
    known = measured("human", "ai", shown=period(1, 20), **SCRIPT_THEN_LOG)
    assert known.shown(Counts(0, 3, 0), day(5), day(7)) == Shown(0, 3, None)


def test_kind_without_a_number_has_a_reason() -> None:
    assert measured("human", shown=period(1, 20), log=day(1)).reason("bot") == FILTERED
    assert measured(shown=period(1, 20), beacon=day(5)).reason("ai") == NOT_SET_UP
    script_only = measured(shown=period(10, 20), policies=("all", "beacon_only"), **SCRIPT_THEN_LOG)
    assert script_only.reason("ai") == LEFT_OUT


def test_time_without_a_count_is_named() -> None:
    not_counted, machines = "were not counted in this period", "AI readers and other bots"
    since_5, since_10 = (f"Counting began on Sep {number}, 2026." for number in (5, 10))
    for first, end, notes in (
        (1, 5, [f"People {not_counted}. {since_5}", f"{machines} {not_counted}. {since_10}"]),
        (6, 9, [f"{machines} {not_counted}. {since_10}"]),
        (6, 11, [f"{machines} have been counted since Sep 10, 2026."]),
        (10, 12, []),
        (10, 14, [f"{machines} were not counted in all of this period: {SILENT}."]),
        (13, 14, [f"{machines} {not_counted}. {SILENT}."]),
    ):
        known = measured(shown=period(first, end), silent=LOG_FELL_SILENT, **SCRIPT_THEN_LOG)
        assert list(known.notes("human", "ai", "bot")) == notes


def test_policy_that_begins_on_the_first_day_of_the_script_counts_people_in_all_of_the_period() -> None:
    left_out = "People were not counted in all of this period: the source policy left them out after Sep 9, 2026."
    for began, notes in ((day(10, 1), []), (day(12), [left_out])):
        policies: tuple[Policy, Policy] = ("all", "beacon_people_log_machines")
        known = measured(shown=period(10, 14), policies=policies, log=day(5), beacon=began)
        assert list(known.notes("human", "ai", "bot")) == notes
    script_only = measured(shown=period(10, 14), policies=("all", "beacon_only"), log=day(5), beacon=day(10, 1))
    machines = (
        "AI readers and other bots were not counted in this period. The source policy left them out after Sep 9, 2026."
    )
    assert list(script_only.notes("human", "ai", "bot")) == [machines]
    one_day = measured(shown=period(11, 12), previous=period(10, 11), policies=policies, log=day(5), beacon=day(10, 23))
    assert not one_day.compares("human"), "23 hours of the day before were not counted"


def test_source_that_is_silent_counts_nobody_now() -> None:
    known = measured(shown=period(10, None), silent=LOG_FELL_SILENT, **SCRIPT_THEN_LOG)
    assert (known.counts_now("human"), known.counts_now("ai")) == (True, False)


def test_periods_are_compared_if_readers_were_counted_in_all_of_both() -> None:
    late = "counting began on Sep {}, 2026, after the start of the previous period".format
    for previous, shown, silent, people, ai in (
        (period(11, 12), period(12, 13), {}, None, None),
        (period(9, 12), period(12, 15), {}, None, late(10)),
        (period(4, 9), period(9, 14), {}, late(5), late(10)),
        (period(10, 11), period(11, 12), LOG_FELL_SILENT, None, None),
        (period(10, 12), period(12, 14), LOG_FELL_SILENT, None, SILENT),
    ):
        known = measured(shown=shown, previous=previous, silent=silent, **SCRIPT_THEN_LOG)
        assert (known.compares("human"), known.compares("ai")) == (people is None, ai is None)
        assert known.compares("human", "ai", "bot") == (people is None and ai is None)
        reasons = [f"No change is shown for people: {people}."] if people else []
        if ai and known.extent("ai") != "none":
            reasons.append(f"No change is shown for AI and other bots: {ai}.")
        assert list(known.no_changes()) == reasons


def test_periods_under_a_change_of_the_policy_are_compared_for_kinds_of_the_same_sources() -> None:
    policies: tuple[tuple[Policy, Policy, bool, bool], ...] = (
        ("all", "all", True, True),
        ("all", "beacon_only", False, False),
        ("beacon_only", "all", False, False),
        ("all", "beacon_people_log_machines", False, True),
        ("beacon_only", "beacon_people_log_machines", True, False),
    )
    shown, previous = period(14, 16), period(12, 14)
    for before, now, people, ai in policies:
        known = measured(shown=shown, previous=previous, policies=(before, now), beacon=day(5), log=day(10))
        assert (known.compares("human"), known.compares("ai")) == (people, ai)


def test_policy_that_leaves_out_a_source_without_views_changes_nothing() -> None:
    known = measured(shown=period(8, 11), previous=period(5, 8), policies=("beacon_only", "all"), beacon=day(5))
    assert known.compares("human", "ai")


def test_warning_of_the_coverage_has_the_names_and_days_of_the_pages() -> None:
    warning = SourceWarning("silent", ("log",), 12, date(2026, 9, 18))
    shown = [*readable([warning], Locale("en")), *readable([warning], Locale("de"))]
    assert shown == [
        "“Access logs” has had no view for 12 days, since Sep 18, 2026.",
        "“Access logs” has had no view for 12 days, since 18.09.2026.",
    ]
    capped = SourceWarning("capped", ("beacon",), 1, date(2026, 9, 18), 2, "paths", "/(other)")
    (text,) = readable([capped], Locale("en"))
    assert text.startswith("“Website script” reached the limit of new paths (READERSHIP_NEW_VALUES_PER_DAY) on 1 day,")
    assert text.endswith(" the last of them Sep 18, 2026: 2 views are counted under /(other).")


@pytest.mark.parametrize(
    ("sources", "silent", "is_apart"),
    [
        ({"log": day(1)}, {}, False),
        ({"log": day(4)}, {}, False),  # both from then on
        ({"log": day(1)}, {"log": 4}, False),
        ({"beacon": day(1), "log": day(2, 23)}, {}, False),  # set up on the same days
        ({"beacon": day(1), "log": day(4)}, {}, True),
        ({"beacon": day(1), "log": day(1)}, {"log": 4}, True),
    ],
)
def test_people_and_ai_have_a_quotient_if_they_were_counted_on_the_same_days(
    sources: dict[str, datetime], silent: dict[str, int], is_apart: bool
) -> None:
    known = measured(shown=period(2, 8), silent=silent, **sources)
    assert known.no_quotient == (APART if is_apart else None)
    assert measured(shown=period(2, 8), beacon=day(1)).no_quotient == NOT_SET_UP
