"""The chart of a page of counts, from series that are written here by hand."""

from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from babel import Locale

from api.dashboard.pages.reading import timeline
from api.dashboard.pages.reading.measured import Measured, Shown
from api.dashboard.pages.reading.timeline import UNCOUNTED, Timeline
from api.dashboard.web import locale
from api.dashboard.web.period import Period
from tests.api.dashboard.pages.reading.measuring import day, measured, period
from warehouse.errors import TooManyBuckets
from warehouse.report.results import Counts

ZONE = ZoneInfo("UTC")
ENGLISH = Locale("en", "GB")
KINDS = "human", "ai"
Series = list[tuple[str, Counts]]
"""Counts by the start of an interval."""


def days(first: int, *humans: int) -> Series:
    """Return a series of days with these views by people, ten times as many by AI, and 1 by a bot."""
    return [(f"2026-09-{first + index:02}", Counts(human, 10 * human, 1)) for index, human in enumerate(humans)]


def counted(
    shown: Period, *kinds: str, previous: Period | None = None, silent: int | None = None, **first_days: int
) -> Measured:
    """Return the sources with these days of their first views, at noon. The log is silent from the day `silent` on."""
    firsts = {name: day(first, 12) for name, first in first_days.items()}
    return measured(*kinds, shown=shown, previous=previous, silent={"log": silent} if silent else {}, **firsts)


def view(shown: Period, series: Series, previous: Series | None = None, before: Period | None = None) -> Any:
    """Return what the chart reads of a view, whose reports are these series."""

    def report(snapshot: None, query: Period, interval: str, zone: ZoneInfo) -> tuple[Counts, pa.Table]:
        assert (interval, zone) == (shown.interval, ZONE)
        rows = (previous or []) if query is before else series
        if not rows:
            raise TooManyBuckets("day", 1)
        columns = {"start": [start for start, _ in rows]}
        columns |= {name: [getattr(counts, name) for _, counts in rows] for name in ("human", "ai", "bot")}
        totals = Counts(*(sum(columns[name]) for name in ("human", "ai", "bot")))
        return totals, pa.table(columns)

    return SimpleNamespace(
        reports=SimpleNamespace(series=report),
        snapshot=None,
        query=lambda chosen=None: chosen or shown,
        period=shown,
        previous=before,
        zone=ZONE,
        now=day(28),
        day=lambda at: locale.day(at.astimezone(ZONE).date(), ENGLISH),
        visit=SimpleNamespace(locale=ENGLISH),
        faults=[],
        robots_changes=[],
    )


def chart(shown: Period, series: Series, *previous: Any, sources: Measured | None = None) -> Timeline:
    known = sources or counted(shown, previous=previous[1] if previous else None, beacon=1, log=1)
    result = timeline.timeline(view(shown, series, *previous), known)
    assert result is not None
    return result


def test_rows_have_the_counts_of_their_intervals_and_totals_those_of_the_period() -> None:
    shown = chart(period(2, 5), days(2, 1, 0, 3))
    rows = [(label.split(" ")[1], counts) for label, counts in shown.rows]
    assert rows == [("2", [1, 10]), ("3", [0, 0]), ("4", [3, 30])]
    assert (shown.kinds, shown.totals, shown.before) == (("human", "ai"), Counts(4, 40, 3), UNCOUNTED)
    assert "Bars of views for each day, 3 in all: 4 by people, 40 by AI." in shown.svg


def test_other_bots_are_drawn_only_if_they_are_asked_for() -> None:
    bots = counted(period(12, 14), "bot", log=1)
    shown = chart(period(12, 14), days(12, 1, 1), sources=bots)
    assert (shown.kinds, [counts for _, counts in shown.rows]) == (("bot",), [[1], [1]])


def test_readers_that_were_not_counted_in_an_interval_have_no_number_in_its_row() -> None:
    sources = counted(period(2, 6), beacon=3, log=4)
    shown = chart(period(2, 6), [(f"2026-09-0{number}", Counts()) for number in (2, 3, 4, 5)], sources=sources)
    assert [counts for _, counts in shown.rows] == [[None, None], [0, None], [0, 0], [0, 0]]
    assert shown.has_unmeasured


def test_interval_that_ends_with_the_first_view_of_a_source_was_not_counted() -> None:
    sources = measured("ai", shown=period(2, 4), log=day(3))
    shown = chart(period(2, 4), [("2026-09-02", Counts()), ("2026-09-03", Counts())], sources=sources)
    assert [counts for _, counts in shown.rows] == [[None], [0]]
    earlier = chart(period(1, 3), [("2026-09-01", Counts()), ("2026-09-02", Counts())], sources=sources)
    assert [counts for _, counts in earlier.rows] == [[None], [None]]


def test_intervals_after_a_source_fell_silent_have_no_number_and_are_grey() -> None:
    sources = counted(period(2, 6), beacon=1, log=1, silent=4)
    shown = chart(period(2, 6), [(f"2026-09-0{number}", Counts()) for number in (2, 3, 4, 5)], sources=sources)
    assert [counts for _, counts in shown.rows] == [[0, 0], [0, 0], [0, None], [0, None]]
    assert shown.svg.count('class="unmeasured" x="2" width="2"') == 1


def test_previous_period_is_beside_the_same_readers_of_this_one() -> None:
    shown = chart(period(12, 15), days(12, 1, 1, 1), days(9, 4, 5), period(9, 12))
    assert [counts for _, counts in shown.rows] == [[1, 4, 10, 40], [1, 5, 10, 50], [1, None, 10, None]]
    assert (shown.before, shown.has_previous) == (Shown(9, 90, 2), True)
    longer = chart(period(12, 14), days(12, 1, 1), days(9, 4, 5, 6), period(9, 12))
    assert [counts for _, counts in longer.rows] == [[1, 4, 10, 40], [1, 5, 10, 50]]


def test_previous_period_has_the_readers_that_were_counted_then() -> None:
    sources = counted(period(12, 15), previous=period(9, 12), beacon=1, log=10)
    shown = chart(period(12, 15), days(12, 1, 1, 1), days(9, 4, 5, 6), period(9, 12), sources=sources)
    assert [counts[1::2] for _, counts in shown.rows] == [[4, None], [5, 50], [6, 60]]
    assert shown.before == Shown(15, None, None)
    silent = counted(period(12, 15), previous=period(9, 12), beacon=1, log=1, silent=12)
    shown = chart(period(12, 15), days(12, 1, 1, 1), days(9, 4, 5, 6), period(9, 12), sources=silent)
    assert [counts[1::2] for _, counts in shown.rows] == [[4, None], [5, None], [6, None]]
    assert shown.before == Shown(15, None, None)


def test_all_time_with_too_many_intervals_is_a_fault_of_the_view() -> None:
    empty = view(period(2, 5), [])
    assert timeline.timeline(empty, counted(period(2, 5), log=1)) is None
    assert len(empty.faults) == 1


def test_interval_is_partial_if_it_begins_before_the_period_or_is_not_over() -> None:
    for first, end, begins, partial in (
        (2, 5, [2, 3, 4], set()),
        (2, None, [2, 3, 4], {2}),
        (3, 5, [1, 4], {0}),
        (3, None, [1, 4], {0, 1}),
        (3, 5, [], set()),
    ):
        assert timeline._partial(period(first, end), [day(number) for number in begins]) == partial


@pytest.mark.parametrize(("first", "position"), [(2, 0), (3, 1)])
def test_source_that_began_in_the_period_has_a_mark_in_its_interval(first: int, position: int) -> None:
    shown, days_of_chart = period(2, 5), [day(2), day(3), day(4)]
    [(drawn, text)] = timeline._marks(view(shown, []), counted(shown, beacon=1, log=first), KINDS, days_of_chart)
    assert (drawn, text.split(" on ")[0]) == (position, "Access logs began")
    assert str(first) in text
    at_midnight = measured("ai", shown=shown, log=day(3))
    assert [at for at, _ in timeline._marks(view(shown, []), at_midnight, KINDS, days_of_chart)] == [1]
    assert timeline._marks(view(shown, []), counted(shown, log=1), KINDS, [day(2)]) == []
    assert timeline._marks(view(shown, []), counted(shown, log=2), KINDS, []) == []


def test_robots_txt_has_a_mark_on_a_chart_of_ai() -> None:
    shown, known = view(period(2, 5), []), counted(period(2, 5), beacon=1, log=1)
    shown.robots_changes = [day(1), day(3)]
    [(at, text)] = timeline._marks(shown, known, KINDS, [day(2), day(3), day(4)])
    assert (at, text.partition(" of ")[0]) == (1, "robots.txt")
    assert timeline._marks(shown, known, ["human"], [day(2), day(3), day(4)]) == []


def test_chart_has_space_for_a_week_or_the_hours_of_a_day() -> None:
    assert chart(period(2, 4), days(2, 1, 1)).width == 7
    hour = [("2026-09-02T00:00:00+00:00", Counts(1))]
    assert chart(period(2, 3, "hour"), hour).width == 24
    assert chart(period(2, 4, "hour"), hour).width == 7
