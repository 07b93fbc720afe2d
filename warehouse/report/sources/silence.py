"""Silence of a source: a time without hits in which nobody knows whether there were readers.

UTC days are numbered as `date.toordinal` does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple

HABIT_DAYS = 28
"""Number of days, up to the last one with a hit, that show how often a source sends hits."""
SILENT_AFTER = 7
"""A source is silent after this many times its usual distance from one day with a hit to the next."""


class Span(NamedTuple):
    """Instants with start <= instant < end. `end` is None for a span that has not ended."""

    start: datetime
    end: datetime | None


def silent_after(days: Sequence[int], last: int) -> float:
    """Return the number of days after which a source without further hits is silent: 7 if it sent hits every day.

    A source with hits on three days of a week is silent after 16 days. `days` are the days with a hit, sorted, and
    `last` is the index of the day before the silence.
    """
    return _silence(days, max(days[0], days[last] - HABIT_DAYS + 1), days[last])


def is_silent(days: Sequence[int], last_hit: datetime, now: datetime) -> bool:
    """Return whether a source is silent at `now`."""
    return now - last_hit >= timedelta(silent_after(days, len(days) - 1))


def spans(days: Sequence[int], first_hit: datetime, last_hit: datetime, now: datetime) -> Iterator[Span]:
    """Yield the times in which a source counted.

    A span ends with the day of the last hit before a silence, and the next one begins with the day of the next hit. A
    silence that is over was also longer than the habit of the days after it allows.
    """
    start = first_hit
    for index, (day, following) in enumerate(pairwise(days)):
        if following - day > SILENT_AFTER and following - day > max(
            silent_after(days, index), _silence(days, following, min(days[-1], following + HABIT_DAYS - 1))
        ):
            yield Span(start, midnight(day + 1))
            start = midnight(following)
    yield Span(start, midnight(days[-1] + 1) if is_silent(days, last_hit, now) else None)


def _silence(days: Sequence[int], first: int, last: int) -> float:
    """Return the number of days without a hit that make a silence, by the habit from the day `first` to `last`."""
    return SILENT_AFTER * (last - first + 1) / (bisect_right(days, last) - bisect_left(days, first))


def midnight(day: int) -> datetime:
    """Return the instant at which a day begins."""
    return datetime.combine(date.fromordinal(day), time(), UTC)
