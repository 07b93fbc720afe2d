"""A range of time, cut into whole UTC days and the parts of days at its edges."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """Instants with start <= instant < end, both aware UTC."""

    start: datetime = FIRST
    end: datetime = LAST


@dataclass(frozen=True, slots=True)
class Cut:
    """A span's whole UTC days, midnight to midnight (perhaps none), and at most two edges outside them."""

    days: Span
    edges: tuple[Span, ...]


def cut(span: Span) -> Cut:
    """The whole days and the edges of a span; together they hold each of its instants once."""
    first, end = _midnight_after(span.start), _midnight_before(span.end)
    if end < first:
        return Cut(Span(first, first), (span,) if span.start < span.end else ())
    edges = (Span(span.start, first), Span(end, span.end))
    return Cut(Span(first, end), tuple(edge for edge in edges if edge.start < edge.end))


def _midnight_before(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def _midnight_after(instant: datetime) -> datetime:
    before = _midnight_before(instant)
    return before if before == instant else before + timedelta(days=1)
