"""A range of time, cut into whole UTC days and the parts of days at its edges."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, tzinfo=UTC)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Span:
    """Instants with start <= instant < end, both aware UTC."""

    start: datetime = FIRST
    end: datetime = LAST


@dataclass(frozen=True, slots=True)
class Cut:
    """A span's whole UTC days, midnight to midnight, in runs, and what is outside of them: its edges, mostly."""

    days: tuple[Span, ...]
    edges: tuple[Span, ...]


def cut(span: Span, uncounted: Collection[str] = ()) -> Cut:
    """The whole days of a span, without those `uncounted` (YYYY-MM-DD), and the rest of it; together they hold each of
    its instants once."""
    first, end = _midnight_after(span.start), _midnight_before(span.end)
    if end < first:
        return Cut((), _runs([span]))
    days = [day for day in map(_midnight_of, sorted(uncounted)) if first <= day < end]
    rest = [Span(span.start, first), *(Span(day, day + _DAY) for day in days), Span(end, span.end)]
    between = [Span(before.end, after.start) for before, after in pairwise(rest)]
    return Cut(_runs(between), _runs(rest))


def _runs(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Those that hold an instant, in order, joined where one begins as another ends."""
    runs: list[Span] = []
    for span in spans:
        if runs and runs[-1].end == span.start:
            runs[-1] = Span(runs[-1].start, span.end)
        elif span.start < span.end:
            runs.append(span)
    return tuple(runs)


def _midnight_of(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), time(tzinfo=UTC))


def _midnight_before(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def _midnight_after(instant: datetime) -> datetime:
    before = _midnight_before(instant)
    return before if before == instant else before + _DAY
