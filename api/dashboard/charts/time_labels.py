"""Labels of the intervals of a series, in the language of the viewer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache

from babel import Locale
from babel.dates import format_date, format_skeleton, format_time

HOURS_OF_DAYS_MAX = 48
"""Number of hours up to which the axis names hours; more hours have labels at midnight only."""
DAYS_MAX = 92
"""Number of days up to which the axis names days; more days have labels on the first day of a month only."""

MIDNIGHT = time()


@dataclass(frozen=True, slots=True)
class TimeLabel:
    """Names of an interval: `label` is complete, `tick` is short, for the axis, and may be empty."""

    label: str
    tick: str


def labels(starts: Sequence[str], interval: str, locale: Locale) -> list[TimeLabel]:
    """Return the names of the intervals of a series. A start is a date, or the time of an hour, in ISO 8601."""
    if interval == "hour":
        return _hours([datetime.fromisoformat(start) for start in starts], locale)
    days = [date.fromisoformat(start) for start in starts]
    return {"day": _days, "week": _weeks, "month": _months}[interval](days, locale)


def _hours(times: Sequence[datetime], locale: Locale) -> list[TimeLabel]:
    is_long = len(times) > HOURS_OF_DAYS_MAX
    result = []
    for each in times:
        day, hour = each.date(), _clock(each.time(), locale)
        tick = _formatted(day, "MMMd", locale) if each.time() == MIDNIGHT else "" if is_long else hour
        result.append(TimeLabel(f"{_medium(day, locale)}, {hour}", tick))
    return result


def _days(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    is_long = len(days) > DAYS_MAX
    return [
        TimeLabel(
            _formatted(day, "yMMMEd", locale),
            "" if is_long and day.day > 1 else _formatted(day, "yMMM" if is_long else "MMMd", locale),
        )
        for day in days
    ]


def _weeks(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    return [TimeLabel(f"Week of {_medium(day, locale)}", _formatted(day, "MMMd", locale)) for day in days]


def _months(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    return [TimeLabel(_formatted(day, "yMMMM", locale), _formatted(day, "yMMM", locale)) for day in days]


# Without the caches, formatting takes 0.1 ms per text. A chart of hours repeats the same 31 days and 24 times.
@lru_cache(maxsize=1_024)
def _clock(at: time, locale: Locale) -> str:
    return format_time(at, "short", locale=locale)


@lru_cache(maxsize=4_096)
def _medium(day: date, locale: Locale) -> str:
    return format_date(day, "medium", locale=locale)


@lru_cache(maxsize=4_096)
def _formatted(day: date, skeleton: str, locale: Locale) -> str:
    """Return a day by a skeleton of CLDR, which names the parts of a date: https://cldr.unicode.org."""
    # At noon, because format_skeleton does not accept dates, and would convert midnight to UTC.
    noon = datetime(day.year, day.month, day.day, 12)  # noqa: DTZ001  # the day has no zone
    return format_skeleton(skeleton, noon, locale=locale)
