"""Labels of intervals: each interval has a complete name; the axis names few of them."""

from datetime import date, timedelta

from babel import Locale

from api.dashboard.charts.time_labels import labels

ENGLISH, GERMAN = Locale("en", "GB"), Locale("de")


def days(count: int) -> list[str]:
    return [(date(2026, 9, 1) + timedelta(number)).isoformat() for number in range(count)]


def hours(count: int) -> list[str]:
    return [f"{day}T{hour:02}:00:00+02:00" for day in days(count // 24) for hour in range(24)]


def test_days() -> None:
    first, second = labels(days(2), "day", ENGLISH)
    assert (first.label, first.tick) == ("Tue, 1 Sept 2026", "1 Sept")
    assert second.tick == "2 Sept"


def test_days_in_german() -> None:
    assert labels(days(1), "day", GERMAN)[0].label == "Di., 1. Sept. 2026"


def test_many_days_are_named_at_the_first_of_a_month() -> None:
    ticks = [each.tick for each in labels(days(93), "day", ENGLISH)]
    assert [tick for tick in ticks if tick] == ["Sept 2026", "Oct 2026", "Nov 2026", "Dec 2026"]
    assert ticks[30] == "Oct 2026"


def test_hours_of_a_day_are_named_by_the_time_and_midnight_by_the_day() -> None:
    hour_labels = labels(hours(24), "hour", ENGLISH)
    assert [each.tick for each in hour_labels[:3]] == ["1 Sept", "01:00", "02:00"]
    assert hour_labels[13].label == "1 Sept 2026, 13:00"


def test_many_hours_are_named_at_midnight_only() -> None:
    ticks = [each.tick for each in labels(hours(72), "hour", ENGLISH)]
    assert [tick for tick in ticks if tick] == ["1 Sept", "2 Sept", "3 Sept"]


def test_weeks_and_months() -> None:
    assert labels(["2026-08-31"], "week", ENGLISH)[0].label == "Week of 31 Aug 2026"
    assert labels(["2026-09-01"], "month", ENGLISH)[0].tick == "Sept 2026"
