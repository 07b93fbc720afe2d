"""Labels of the intervals of a series, in the language of the viewer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from babel import Locale
from babel.dates import format_date, format_skeleton, format_time

HOURS_OF_DAYS_MAX = 48
"""Number of hours up to which the axis names hours; more hours have labels at midnight only."""
DAYS_MAX = 92
"""Number of days up to which the axis names days; more days have labels on the first day of a month only."""


@dataclass(frozen=True, slots=True)
class TimeLabel:
    """The names of an interval: complete, and short for the axis, where it may be empty."""

    label: str
    tick: str


def labels(starts: Sequence[str], interval: str, locale: Locale) -> list[TimeLabel]:
    """Return the names of the intervals of a series, whose `start` is a date, or for an hour a time."""
    if interval == "hour":
        return _hours([datetime.fromisoformat(start) for start in starts], locale)
    days = [date.fromisoformat(start) for start in starts]
    return {"day": _days, "week": _weeks, "month": _months}[interval](days, locale)


def _hours(times: Sequence[datetime], locale: Locale) -> list[TimeLabel]:
    is_long = len(times) > HOURS_OF_DAYS_MAX
    result = []
    for each in times:
        hour = format_time(each.time(), "short", locale=locale)
        # A day may begin at 01:00, where the clock skips midnight: its label is that of the hour then.
        tick = _day(each.date(), locale) if each.hour == 0 and each.minute == 0 else "" if is_long else hour
        result.append(TimeLabel(f"{format_date(each.date(), 'medium', locale=locale)}, {hour}", tick))
    return result


def _days(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    is_long = len(days) > DAYS_MAX
    return [
        TimeLabel(
            format_skeleton("yMMMEd", _noon(day), locale=locale),
            _day(day, locale) if not is_long else _month(day, locale) if day.day == 1 else "",
        )
        for day in days
    ]


def _weeks(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    return [TimeLabel(f"Week of {format_date(day, 'medium', locale=locale)}", _day(day, locale)) for day in days]


def _months(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    return [TimeLabel(format_skeleton("yMMMM", _noon(day), locale=locale), _month(day, locale)) for day in days]


def _day(day: date, locale: Locale) -> str:
    return format_skeleton("MMMd", _noon(day), locale=locale)


def _month(day: date, locale: Locale) -> str:
    return format_skeleton("yMMM", _noon(day), locale=locale)


def _noon(day: date) -> datetime:
    """Return a time of the day, because `format_skeleton` converts times to UTC but cannot format dates."""
    return datetime(day.year, day.month, day.day, 12)  # noqa: DTZ001  # the day has no zone
