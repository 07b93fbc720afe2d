"""The chart of a page of counts: views over time, the previous period, and the days of new sources and robots.txt."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from api.dashboard.charts import time_chart
from api.dashboard.charts.time_chart import Band, Interval, TimeChart, labels
from api.dashboard.pages.reading.measured import READERS, Measured, Shown
from api.dashboard.web import locale
from api.dashboard.web.period import Period
from api.dashboard.web.view import SOURCES, TRAFFIC, View
from warehouse.columns.sources import TRAFFIC as KINDS
from warehouse.errors import TooManyBuckets
from warehouse.report.results import Counts, Query
from warehouse.report.time_buckets import instant

SLOTS_MIN = 7
"""Minimum number of intervals for which a chart has space, so that a single bar is not as wide as the chart."""
HOURS_OF_A_DAY = 24
UNCOUNTED = Shown(None, None, None)
CSS = {"human": "people", "ai": "ai", "bot": "bot"}
"""Class of the bars of each kind of readers."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A chart as SVG, the rows of its table, and the totals of the whole period.

    `kinds` are the kinds of readers in the chart. `before` are the totals of the previous period; None for readers that
    cannot be compared. Each row of `rows` is the name of an interval, and for each kind its count, and if the page
    compares, the count in the previous period. `marks` are the texts of the numbered marks.
    """

    svg: Markup
    width: int
    kinds: tuple[str, ...]
    rows: list[tuple[str, list[int | None]]]
    totals: Counts
    before: Shown
    marks: list[str]
    has_previous: bool
    has_partial: bool
    has_unmeasured: bool


def timeline(view: View, measured: Measured) -> Timeline | None:
    """Return the chart of the counts of a view. If all time has too many intervals, return None and add a fault to the
    view."""
    try:
        return _timeline(view, measured)
    except TooManyBuckets:
        fault = "All time has too many intervals for a chart: choose a longer interval, or a shorter period."
        view.faults.append(fault)
        return None


def _timeline(view: View, measured: Measured) -> Timeline:
    totals, starts, counts = _series(view, view.query(), view.period.interval)
    begins = [instant(start, view.zone) for start in starts]
    ends = [*begins[1:], view.period.end]
    spans = zip(counts, begins, ends, strict=True)
    shown = [measured.shown(each, max(begin, view.period.start), end) for each, begin, end in spans]
    # Other bots are drawn alone: there can be many more of them than of all other readers.
    kinds = tuple(kind for kind in measured.traffic if kind != "bot") or measured.traffic
    previous, totals_before = _previous(view, measured, kinds, len(starts))
    names = labels(starts, view.period.interval, view.visit.locale)
    partial = _partial(view.period, begins)
    marks = _marks(view, measured, kinds, begins)
    bands = [Band(TRAFFIC[kind], CSS[kind], [getattr(each, kind) for each in shown], previous[kind]) for kind in kinds]
    chart = TimeChart(
        description=_description(view, totals, kinds, len(starts)),
        intervals=[Interval(name.tick, index in partial) for index, name in enumerate(names)],
        bands=bands,
        marks=[position for position, _ in marks],
        slots=HOURS_OF_A_DAY if (view.period.days, view.period.interval) == (1, "hour") else SLOTS_MIN,
    )
    has_previous = any(each is not None for band in chart.bands for each in band.previous)
    columns = [each for band in chart.bands for each in (band.counts, band.previous)[: 2 if has_previous else 1]]
    return Timeline(
        time_chart.svg(chart, lambda value: locale.compact(value, view.visit.locale)),
        chart.width,
        kinds,
        [(name.label, list(row)) for name, *row in zip(names, *columns, strict=True)],
        totals,
        totals_before,
        [text for _, text in marks],
        has_previous=has_previous,
        has_partial=bool(partial),
        has_unmeasured=any(None in band.counts for band in chart.bands),
    )


def _series(view: View, query: Query, interval: str) -> tuple[Counts, list[str], list[Counts]]:
    totals, rows = view.reports.series(view.snapshot, query, interval, view.zone)
    columns = (rows[name].to_pylist() for name in ("human", "ai", "bot"))
    return totals, rows["start"].to_pylist(), [Counts(*each) for each in zip(*columns, strict=True)]


def _previous(
    view: View, measured: Measured, kinds: Sequence[str], length: int
) -> tuple[dict[str, list[int | None]], Shown]:
    """Return the counts of the previous period by kind and interval, and its totals.

    A count is None if the kind was not counted in both periods, or not from the same sources. There are `length` counts
    of each kind.
    """
    if view.previous is None:
        return {kind: [] for kind in kinds}, UNCOUNTED
    totals, starts, counts = _series(view, view.query(view.previous), view.period.interval)
    begins = [instant(start, view.zone) for start in starts]
    spans = list(zip(counts, begins, [*begins[1:], view.previous.end], strict=True))
    by_kind, is_counted = dict[str, list[int | None]](), measured.known.counts
    for kind in kinds:
        is_alike = measured.is_counted_alike(kind) and measured.extent(kind) != "none"
        values = [
            getattr(each, kind) if is_alike and is_counted(kind, max(begin, view.previous.start), end) else None
            for each, begin, end in spans
        ]
        by_kind[kind] = [*values[:length], *[None] * (length - len(values))]
    before = Shown(*(getattr(totals, kind) if measured.compares(kind) else None for kind in KINDS))
    return by_kind, before


def _partial(period: Period, begins: Sequence[datetime]) -> set[int]:
    """Return the indexes of the intervals of which the period has a part only."""
    partial = {len(begins) - 1} if period.end is None else set()
    return partial | {0} if begins and begins[0] < period.start else partial


def _marks(view: View, measured: Measured, kinds: Sequence[str], begins: Sequence[datetime]) -> list[tuple[int, str]]:
    """Return the position and the text of a mark for each source that began in the period, and if the chart has AI, for
    each robots.txt."""
    if not begins:
        return []
    start, end = max(view.period.start, begins[0]), view.period.end or view.now
    firsts = {SOURCES[each.source]: each.first_hit for each in measured.sources}
    began = [(at, f"{name} began on {view.day(at)}") for name, at in firsts.items()]
    if "ai" in kinds:
        began += [(at, f"robots.txt of {view.day(at)}") for at in view.robots_changes]
    inside = sorted(mark for mark in began if start <= mark[0] < end)
    return [(sum(begin <= at for begin in begins) - 1, text) for at, text in inside]


def _description(view: View, totals: Counts, kinds: Sequence[str], intervals: int) -> str:
    numbers = [f"{locale.number(getattr(totals, kind), view.visit.locale)} by {READERS[kind]}" for kind in kinds]
    return (
        f"Bars of views for each {view.period.interval}, {intervals} in all: {', '.join(numbers)}. The table "
        "below the chart has the numbers."
    )
