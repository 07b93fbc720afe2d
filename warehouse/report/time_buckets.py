"""Time buckets of a series: hours, days, weeks and months of a time zone.

The buckets of a range are contiguous, and each instant is in one bucket:

- A day begins at the first instant at which the clock of the zone shows midnight or a later time. Where daylight saving
  time begins or ends, a day has 23 or 25 hours. A day that a zone skipped has no bucket.
- A week begins on Monday, a month on its first day.
- An hour begins whenever the clock shows a full hour or is changed. An hour that the clock repeats is two buckets, with
  different offsets from UTC.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

from warehouse.errors import TooManyBuckets
from warehouse.query.time_range import TimeRange

BUCKETS_MAX = 10_000
"""Maximum number of buckets in a series."""
INTERVALS = ("hour", "day", "week", "month")
HOUR_S = 3_600
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _HOUR, _DAY, _WEEK = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1), timedelta(weeks=1)


class Bucket(NamedTuple):
    """A bucket, which ends where the next one begins.

    `start_s` is the first instant, in seconds since 1970. `label` is the date of that instant in the zone, or for an
    hour its ISO 8601 time with the offset from UTC.
    """

    start_s: int
    label: str


def buckets(time_range: TimeRange, interval: str, zone: ZoneInfo) -> list[Bucket]:
    """Return the buckets that overlap the range, in order; the first may begin before it. Raises TooManyBuckets."""
    if time_range.start >= time_range.end:
        return []
    start_s, end_s = (time_range.start - _EPOCH) // _SECOND, -((_EPOCH - time_range.end) // _SECOND)
    sequence = _hours(start_s, zone) if interval == "hour" else _days(start_s, interval, zone)
    result = list(islice(_within(sequence, start_s, end_s), BUCKETS_MAX + 1))
    if len(result) > BUCKETS_MAX:
        raise TooManyBuckets(interval, BUCKETS_MAX)
    return result


def instant(label: str, zone: ZoneInfo) -> datetime:
    """Return the instant at which the bucket with a label begins."""
    if "T" in label:
        return datetime.fromisoformat(label).astimezone(UTC)
    return datetime.combine(date.fromisoformat(label), time(), zone).astimezone(UTC)


def _within(sequence: Iterator[Bucket], start_s: int, end_s: int) -> Iterator[Bucket]:
    """Yield the buckets that contain an instant with start_s <= instant < end_s.

    The first bucket of `sequence` begins at or before `start_s`.
    """
    current = next(sequence)
    for following in sequence:
        if following.start_s >= end_s:
            break
        if following.start_s > max(start_s, current.start_s):
            yield current
        current = following
    yield current


def _hours(start_s: int, zone: ZoneInfo) -> Iterator[Bucket]:
    """Yield all hours from the one that contains `start_s`."""
    offset_s = _offset_s(start_s, zone)
    full_hour_s = start_s - (start_s + offset_s) % HOUR_S
    is_changed = _offset_s(full_hour_s, zone) != offset_s
    begin_s = _change_s(full_hour_s, start_s, zone) if is_changed else full_hour_s
    while True:
        local, tomorrow = _local(begin_s, zone), _local(begin_s + 24 * HOUR_S, zone)
        if tomorrow - local == _DAY and not (local.minute or local.second or local.fold):  # the clock is not changed
            yield from (Bucket(begin_s + hour * HOUR_S, (local + hour * _HOUR).isoformat()) for hour in range(24))
            begin_s += 24 * HOUR_S
            continue
        yield Bucket(begin_s, local.isoformat())
        full_hour_s = begin_s + HOUR_S - (begin_s + offset_s) % HOUR_S
        following_s = _offset_s(full_hour_s, zone)
        begin_s = full_hour_s if following_s == offset_s else _change_s(begin_s, full_hour_s, zone)
        offset_s = following_s


def _days(start_s: int, interval: str, zone: ZoneInfo) -> Iterator[Bucket]:
    """Yield all days, weeks or months from one that begins at or before `start_s`, up to the year 9999."""
    first_day, following_day = _CALENDAR[interval]
    day = first_day(_local(start_s, zone).date())
    while True:
        yield Bucket(_midnight_s(day, zone), day.isoformat())
        try:
            day = following_day(day)
        except (OverflowError, ValueError):  # the year 10000
            return


def _first_of_following_month(day: date) -> date:
    return day.replace(year=day.year + day.month // 12, month=day.month % 12 + 1, day=1)


_CALENDAR: dict[str, tuple[Callable[[date], date], Callable[[date], date]]] = {
    "day": (lambda day: day, lambda day: day + _DAY),
    "week": (lambda day: day - day.weekday() * _DAY, lambda day: day + _WEEK),
    "month": (lambda day: day.replace(day=1), _first_of_following_month),
}
"""First day of the interval that contains a date, and first day of the interval after it."""


def _midnight_s(day: date, zone: ZoneInfo) -> int:
    """Return the first instant at which the clock shows midnight of `day` or a later time."""
    midnight = datetime.combine(day, time())
    first_s, second_s = ((midnight.replace(tzinfo=zone, fold=fold) - _EPOCH) // _SECOND for fold in (0, 1))
    if first_s <= second_s:
        return first_s
    # The clock skips midnight. Python then returns two instants around the change (PEP 495).
    return _first(second_s, first_s, lambda at_s: _local(at_s, zone).replace(tzinfo=None) >= midnight)


def _change_s(low_s: int, high_s: int, zone: ZoneInfo) -> int:
    """Return the first instant with another offset than `low_s`. The offset of `high_s` is another one."""
    before_s = _offset_s(low_s, zone)
    return _first(low_s, high_s, lambda at_s: _offset_s(at_s, zone) != before_s)


def _first(low_s: int, high_s: int, is_reached: Callable[[int], bool]) -> int:
    """Return the first instant from `low_s` on at which the condition is true. It is true at `high_s`."""
    return low_s + bisect_left(range(low_s, high_s), x=True, key=is_reached)


def _offset_s(at_s: int, zone: ZoneInfo) -> int:
    offset = _local(at_s, zone).utcoffset()
    assert offset is not None
    return offset // _SECOND


def _local(at_s: int, zone: ZoneInfo) -> datetime:
    """Return the local time of an instant; for an instant outside of the years 1 to 9999 the first or last one."""
    try:
        return (_EPOCH + at_s * _SECOND).astimezone(zone)
    except OverflowError:
        return datetime.min.replace(tzinfo=zone) if at_s < 0 else datetime.max.replace(tzinfo=zone)
