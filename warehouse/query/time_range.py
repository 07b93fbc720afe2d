"""Time ranges, and the whole UTC days near them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, tzinfo=UTC)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Instants with start <= instant < end, both timezone-aware and in UTC."""

    start: datetime = FIRST
    end: datetime = LAST


@dataclass(frozen=True, slots=True)
class Edge:
    """A range whose hits are added to those of whole UTC days if `sign` is 1, and subtracted if it is -1."""

    time_range: TimeRange
    sign: int


@dataclass(frozen=True, slots=True)
class RoundedRange:
    """A time range as whole UTC days, from midnight to midnight, and edges. There is at most one range of days."""

    whole_days: tuple[TimeRange, ...]
    edges: tuple[Edge, ...]


def round_to_days(time_range: TimeRange) -> RoundedRange:
    """Return the whole days that are nearest to a range, with the edges in which they differ from it.

    An edge has at most 12 hours. A day of Berlin is the same UTC day, plus one or two hours before it and minus one or
    two at its end. A range that is shorter than its edges is itself the only edge.
    """
    if time_range.start >= time_range.end:
        return RoundedRange((), ())
    start, end = _nearest_midnight(time_range.start), _nearest_midnight(time_range.end)
    edges = (*_edge(time_range.start, start), *_edge(end, time_range.end))
    if (
        sum((each.time_range.end - each.time_range.start for each in edges), timedelta())
        > time_range.end - time_range.start
    ):
        return RoundedRange((), (Edge(time_range, 1),))
    return RoundedRange((TimeRange(start, end),) if start < end else (), edges)


def _edge(start: datetime, end: datetime) -> tuple[Edge, ...]:
    """Return the edge that is added from `start` to `end`, or subtracted if `end` is before `start`."""
    if start == end:
        return ()
    return (Edge(TimeRange(start, end), 1) if start < end else Edge(TimeRange(end, start), -1),)


def _nearest_midnight(instant: datetime) -> datetime:
    before = instant.replace(hour=0, minute=0, second=0, microsecond=0)
    return before if instant - before <= _DAY / 2 or before.date() == date.max else before + _DAY
