"""The chart of a page of counts: views over time, the previous period, and the beginnings of the sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from babel import Locale
from markupsafe import Markup

from api.dashboard.charts import time_chart
from api.dashboard.charts.time_chart import Interval, Mark, TimeChart
from api.dashboard.charts.time_labels import labels
from api.dashboard.pages.reading.measured import READERS, Measured, Shown
from api.dashboard.web import locale
from api.dashboard.web.period import Period
from api.dashboard.web.view import SOURCES, View
from warehouse.columns.sources import TRAFFIC
from warehouse.errors import TooManyBuckets
from warehouse.report.results import Counts, Query
from warehouse.report.time_buckets import instant

SLOTS_MIN = 7
"""Minimum number of intervals for which a chart has space, so that a single bar is not as wide as the chart."""
HOURS_OF_A_DAY = 24
UNCOUNTED = Shown(None, None, None)
UNKNOWN = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Timeline:
    """A chart as SVG, the rows of its table, and the totals of the whole period.

    `before` are the totals of the previous period; None for readers that cannot be compared. Each row of `rows` is the
    name of an interval, its counts, and the total of the previous period or None. `compared` has the names of the
    readers in this total.
    """

    svg: Markup
    width: int
    rows: list[tuple[str, Shown, int | None]]
    totals: Counts
    before: Shown
    compared: str
    has_previous: bool
    locale: Locale

    @property
    def has_line(self) -> bool:
        """Return whether the chart has a line of the previous period, which needs two adjacent intervals."""
        return any(before is not None is not after for (_, _, before), (_, _, after) in pairwise(self.rows))

    def body(self, kinds: Sequence[str]) -> Markup:
        """Return the rows as HTML, with a column for each kind of readers.

        The rows have no end tags, line breaks or scope of the row's head, which HTML does not need: a chart can have
        800 rows. A `<th>` before cells is the head of its row: https://html.spec.whatwg.org/#attr-th-scope.
        """
        return Markup().join(
            Markup("<td>").join([Markup("<tr><th>{}").format(label), *self._cells(shown, before, kinds)])
            for label, shown, before in self.rows
        )

    def _cells(self, shown: Shown, before: int | None, kinds: Sequence[str]) -> list[str]:
        numbers = [getattr(shown, kind) for kind in kinds] + ([before] if self.has_previous else [])
        return [UNKNOWN if each is None else locale.number(each, self.locale) for each in numbers]


def timeline(view: View, measured: Measured) -> Timeline | None:
    """Return the chart of the counts of a view. If all time has too many intervals, return None and add a fault to the
    view."""
    try:
        return _timeline(view, measured)
    except TooManyBuckets:
        view.faults.append(
            "All time has too many intervals for a chart: choose a longer interval, or a shorter period."
        )
        return None


def _timeline(view: View, measured: Measured) -> Timeline:
    totals, starts, counts = _series(view, view.query(), view.period.interval)
    begins = [instant(start, view.zone) for start in starts]
    ends = [*begins[1:], view.period.end]
    shown = [
        measured.shown(each, max(begin, view.period.start), end)
        for each, begin, end in zip(counts, begins, ends, strict=True)
    ]
    incomplete = _incomplete(measured, shown)
    previous, totals_before, compared = _previous(view, measured)
    names = labels(starts, view.period.interval, view.visit.locale)
    partial = _partial(view.period, begins)
    chart = TimeChart(
        id="views",
        title="Views over time",
        description=_description(view, measured, totals, len(starts)),
        intervals=[
            Interval(name.label, name.tick, _drawn(each), index in partial, index in incomplete)
            for index, (name, each) in enumerate(zip(names, shown, strict=True))
        ],
        previous=previous,
        marks=_marks(view, measured, begins),
        slots=HOURS_OF_A_DAY if (view.period.days, view.period.interval) == (1, "hour") else SLOTS_MIN,
    )
    before = [*previous[: len(names)], *[None] * (len(names) - len(previous))]
    rows = [(name.label, each, total) for name, each, total in zip(names, shown, before, strict=True)]
    svg = time_chart.svg(chart, lambda value: locale.compact(value, view.visit.locale))
    has_previous = view.previous is not None
    return Timeline(svg, chart.width, rows, totals, totals_before, compared, has_previous, view.visit.locale)


def _series(view: View, query: Query, interval: str) -> tuple[Counts, list[str], list[Counts]]:
    totals, rows = view.reports.series(view.snapshot, query, interval, view.zone)
    columns = (rows[name].to_pylist() for name in ("human", "ai", "bot"))
    return totals, rows["start"].to_pylist(), [Counts(*each) for each in zip(*columns, strict=True)]


def _previous(view: View, measured: Measured) -> tuple[list[int | None], Shown, str]:
    """Return the totals of the previous period by interval and of the whole period, and the names of their readers.

    The intervals have the readers that were counted in both periods, from the same sources.
    """
    if view.previous is None:
        return [], UNCOUNTED, ""
    totals, starts, counts = _series(view, view.query(view.previous), view.period.interval)
    begins = [instant(start, view.zone) for start in starts]
    drawn = [kind for kind in measured.traffic if kind != "bot"] or list(measured.traffic)
    kinds = [
        kind
        for kind in drawn
        if measured.is_counted_alike(kind)
        and "none" not in (measured.extent(kind), measured.extent(kind, view.previous))
    ]
    by_interval = [
        sum(getattr(each, kind) for kind in kinds)
        if kinds and all(measured.known.counts(kind, max(begin, view.previous.start), end) for kind in kinds)
        else None
        for each, begin, end in zip(counts, begins, [*begins[1:], view.previous.end], strict=True)
    ]
    complete = [kind for kind in TRAFFIC if measured.compares(kind)]
    before = Shown(*(getattr(totals, kind) if kind in complete else None for kind in TRAFFIC))
    return by_interval, before, " and ".join(READERS[kind] for kind in kinds)


def _drawn(shown: Shown) -> Counts | None:
    """Return the counts of a stack; None if no kind of readers was counted."""
    return None if shown == UNCOUNTED else Counts(*(each or 0 for each in shown))


def _incomplete(measured: Measured, shown: Sequence[Shown]) -> set[int]:
    """Return the indexes of the intervals in which people or AI were not counted, but were at another time."""
    known = [kind for kind in ("human", "ai") if kind in measured.traffic and measured.known.spans[kind]]
    return {index for index, each in enumerate(shown) if any(getattr(each, kind) is None for kind in known)}


def _partial(period: Period, begins: Sequence[datetime]) -> set[int]:
    """Return the indexes of the intervals of which the period has a part only."""
    partial = {len(begins) - 1} if period.end is None else set()
    return partial | {0} if begins and begins[0] < period.start else partial


def _marks(view: View, measured: Measured, begins: Sequence[datetime]) -> list[Mark]:
    """Return a mark for each source that began in the period."""
    if not begins:
        return []
    start = max(view.period.start, begins[0])
    result = []
    for source in measured.began_in(start, view.period.end or view.now):
        position = sum(begin <= source.first_hit for begin in begins) - 1
        day = locale.day(source.first_hit.astimezone(view.zone).date(), view.visit.locale)
        result.append(Mark(position, f"{SOURCES[source.source]} began on {day}"))
    return result


def _description(view: View, measured: Measured, totals: Counts, intervals: int) -> str:
    number = {kind: locale.number(getattr(totals, kind), view.visit.locale) for kind in measured.traffic}
    names = {"human": "people", "ai": "AI", "bot": "other bots"}
    parts = [f"{number[kind]} by {name}" for kind, name in names.items() if kind in number]
    return (
        f"Stacked bars of views for each {view.period.interval}, {intervals} in all: {', '.join(parts)}. The table "
        "below the chart has the numbers."
    )
