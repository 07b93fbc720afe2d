"""Last days of a time range, for reports that take too long over a longer one."""

from datetime import UTC, datetime, time, timedelta

from warehouse.query.time_range import FIRST, TimeRange

_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)


def last_days(time_range: TimeRange, now: datetime, days: int) -> TimeRange:
    """Return the part of a range in its last UTC days. The last one is the day of `now`, or an earlier one."""
    last = min(max(time_range.end, FIRST + _DAY) - _MICROSECOND, now).date()
    first = datetime.combine(last, time(tzinfo=UTC)) - min(days - 1, (last - FIRST.date()).days) * _DAY
    return TimeRange(max(time_range.start, first), time_range.end)
