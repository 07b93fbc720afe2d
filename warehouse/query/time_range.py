"""Time ranges, and their split into whole UTC days and partial days."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, tzinfo=UTC)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Instants with start <= instant < end, both timezone-aware and in UTC."""

    start: datetime = FIRST
    end: datetime = LAST


@dataclass(frozen=True, slots=True)
class SplitRange:
    """A time range in two parts: ranges of whole UTC days, from midnight to midnight, and the partial days.

    The ranges of each part are in order and not adjacent. Excluded days are among the partial days.
    """

    whole_days: tuple[TimeRange, ...]
    partial_days: tuple[TimeRange, ...]


def split(time_range: TimeRange, excluded: Collection[str] = ()) -> SplitRange:
    """Split a range, so that each of its instants is in exactly one part.

    The `excluded` days (YYYY-MM-DD) are not counted as whole days.
    """
    first, end = _midnight_after(time_range.start), _midnight_before(time_range.end)
    if end < first:
        return SplitRange((), _joined([time_range]))
    days = [day for day in map(_midnight_of, sorted(excluded)) if first <= day < end]
    partial = [
        TimeRange(time_range.start, first),
        *(TimeRange(day, day + _DAY) for day in days),
        TimeRange(end, time_range.end),
    ]
    whole = [TimeRange(before.end, after.start) for before, after in pairwise(partial)]
    return SplitRange(_joined(whole), _joined(partial))


def _joined(ranges: Sequence[TimeRange]) -> tuple[TimeRange, ...]:
    """Return ranges, which are in order, without the empty ones and with adjacent ones joined."""
    joined: list[TimeRange] = []
    for each in ranges:
        if joined and joined[-1].end == each.start:
            joined[-1] = TimeRange(joined[-1].start, each.end)
        elif each.start < each.end:
            joined.append(each)
    return tuple(joined)


def _midnight_of(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), time(tzinfo=UTC))


def _midnight_before(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def _midnight_after(instant: datetime) -> datetime:
    before = _midnight_before(instant)
    return before if before == instant else before + _DAY
