"""Times in which people, AI and other bots were counted. A count of readers whom no source saw is unknown, and not 0.

A source that fell silent sees nobody: after its last hit nobody knows whether there were readers. UTC days are numbered
as `date.toordinal` does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Literal, NamedTuple

from warehouse.columns import sources
from warehouse.columns.sources import SOURCES, TRAFFIC
from warehouse.control import policy
from warehouse.control.policy import Periods
from warehouse.query.time_range import FIRST

HABIT_DAYS = 28
"""Number of days, up to the last one with a hit, that show how often a source sends hits."""
SILENT_AFTER = 7
"""A source is silent after this many times its usual distance from one day with a hit to the next."""
SEEING: Mapping[str, Collection[str]] = {"human": SOURCES, "ai": SOURCES[1:], "bot": SOURCES[1:]}
"""Sources that see a kind of readers. Few AI agents and other bots run the script of a page."""
Extent = Literal["all", "part", "none"]
"""How much of a time range was measured."""


class Span(NamedTuple):
    """Instants with start <= instant < end. `end` is None for a span that has not ended."""

    start: datetime
    end: datetime | None


Spans = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """Why readers were not counted in a part of a range.

    `began`: nobody counted them before `at`. `silent`: the `sources` that counted them sent nothing from `at` on.
    `policy`: the source policy counts no source from `at` on.
    """

    reason: Literal["began", "silent", "policy"]
    at: datetime
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Spans in which each kind of readers was counted until `now`. `since` is the first hit of any source, or None.

    `of_sources` are the spans in which each source counted, whatever the source policy.
    """

    spans: Mapping[str, Spans]
    since: datetime | None
    now: datetime
    of_sources: Mapping[str, Spans]

    def counts(self, kind: str, start: datetime, end: datetime | None) -> bool:
        """Return whether a kind of readers was counted in a part of a range. Without an end the range ends now."""
        return any(
            (end or self.now) > each.start and (each.end is None or start < each.end) for each in self.spans[kind]
        )

    def extent(self, kind: str, start: datetime, end: datetime | None) -> Extent:
        """Return how much of a range was measured: see `within`."""
        return self.extent_of(self.spans[kind], start, end)

    def extent_of(self, spans: Spans, start: datetime, end: datetime | None) -> Extent:
        """Return how much of a range is in spans: see `within`."""
        within = self.within(start, end)
        parts = clipped(spans, within)
        return "none" if not parts else "all" if parts == (within,) else "part"

    def limit(self, kind: str, start: datetime, end: datetime | None) -> Limit | None:
        """Return why readers were not counted in the last part of a range in which they were not.

        Return None if they were counted in all of the range, or never.
        """
        spans = self.spans[kind]
        *_, hole = (None, *holes(spans, self.within(start, end)))
        if hole is None or not spans:
            return None
        ends = [span.end for span in spans if span.end and span.end <= hole.start]
        if not ends:
            return Limit("began", spans[0].start)
        silent = tuple(
            source for source in SEEING[kind] if any(span.end == ends[-1] for span in self.of_sources.get(source, ()))
        )
        return Limit("silent" if silent else "policy", ends[-1], silent)

    def within(self, start: datetime, end: datetime | None) -> Span:
        """Return a range as a span. From FIRST it begins with the first hit of the project, and it ends at most now."""
        after = self.now + timedelta.resolution
        return Span(self.since or start if start == FIRST else start, min(end or after, after))


def of_kinds(of_sources: Mapping[str, Spans], periods: Periods) -> dict[str, Spans]:
    """Return the spans in which each kind of readers was counted, by the spans of the sources and the policies."""
    return {kind: merged(_counted(of_sources, periods, kind)) for kind in TRAFFIC}


def merged(spans: Iterable[Span]) -> Spans:
    result: list[Span] = []
    for span in sorted(spans, key=lambda each: each.start):
        last = result[-1] if result else None
        if last and (last.end is None or span.start <= last.end):
            result[-1] = Span(last.start, max(last.end, span.end) if last.end and span.end else None)
        else:
            result.append(span)
    return tuple(result)


def clipped(spans: Iterable[Span], within: Span) -> Spans:
    """Return the parts of spans within another span."""
    parts = (
        Span(max(each.start, within.start), min((end for end in (each.end, within.end) if end), default=None))
        for each in spans
    )
    return tuple(part for part in parts if part.end is None or part.start < part.end)


def holes(spans: Spans, within: Span) -> Iterator[Span]:
    """Yield the parts of a span, which has an end, that are in none of the merged `spans`."""
    start, last = within
    for part in clipped(spans, within):
        if start < part.start:
            yield Span(start, part.start)
        start = part.end or start
    if last and start < last:
        yield Span(start, last)


def _counted(of_sources: Mapping[str, Spans], periods: Periods, kind: str) -> Iterator[Span]:
    """Yield the parts of the spans of each source in which a policy counts a kind of readers."""
    for each in policy.spans(periods, date.min, date.max):
        end = None if each.end == date.max else midnight(each.end.toordinal())
        for source in SEEING[kind]:
            if sources.counts(each.policy, source, kind):
                yield from clipped(of_sources.get(source, ()), Span(midnight(each.start.toordinal()), end))


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
