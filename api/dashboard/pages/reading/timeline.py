"""The chart of a page of counts: views over time, the previous period, and the beginnings of the sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from babel import Locale
from markupsafe import Markup

from api.dashboard.charts import time_chart
from api.dashboard.charts.time_chart import Interval, Mark, TimeChart
from api.dashboard.charts.time_labels import labels
from api.dashboard.pages.reading.measured import Measured
from api.dashboard.web import locale
from api.dashboard.web.period import Period
from api.dashboard.web.view import SOURCES, View
from warehouse.errors import TooManyBuckets
from warehouse.report.filters import Counts, Query

SLOTS_MIN = 7
"""Number of intervals for which a chart has space at least: a single bar is not as wide as the chart."""
HOURS_OF_A_DAY = 24
UNKNOWN = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Timeline:
    """A chart as SVG, the rows of its table, and the totals of the whole period.

    Each row of `rows` is the name of an interval, its counts or None, and the total of the previous period or None.
    """

    svg: Markup
    width: int
    rows: list[tuple[str, Counts | None, int | None]]
    totals: Counts
    has_previous: bool
    locale: Locale

    def body(self, *, sees_ai: bool) -> Markup:
        """Return the rows as HTML; without `sees_ai`, the counts of AI and other bots are unknown.

        The rows have no end tags, which HTML does not need: a chart can have 800 rows.
        """
        return Markup("\n").join(
            Markup("<td>").join([Markup("<tr><th scope=row>{}").format(label), *self._cells(counts, before, sees_ai)])
            for label, counts, before in self.rows
        )

    def _cells(self, counts: Counts | None, before: int | None, sees_ai: bool) -> list[str]:
        numbers = (
            [None] * 3 if counts is None else [counts.human, *([counts.ai, counts.bot] if sees_ai else [None] * 2)]
        )
        numbers += [before] if self.has_previous else []
        return [UNKNOWN if each is None else locale.number(each, self.locale) for each in numbers]


def timeline(view: View, measured: Measured) -> Timeline | None:
    """Return the chart of the counts of a view. None, and a fault of the view: all time has too many intervals."""
    try:
        return _timeline(view, measured)
    except TooManyBuckets:
        view.faults.append(
            "All time has too many intervals for a chart: choose a longer interval, or a shorter period."
        )
        return None


def _timeline(view: View, measured: Measured) -> Timeline:
    totals, starts, counts = _series(view, view.query(), view.period.interval)
    begins = [_instant(start, view.zone) for start in starts]
    shown = [each if _is_measured(begins, index, measured) else None for index, each in enumerate(counts)]
    previous = _previous(view, measured)
    names = labels(starts, view.period.interval, view.visit.locale)
    partial = _partial(view.period, begins)
    chart = TimeChart(
        id="views",
        title="Views over time",
        description=_description(view, totals, len(starts)),
        intervals=[
            Interval(name.label, name.tick, each, index in partial)
            for index, (name, each) in enumerate(zip(names, shown, strict=True))
        ],
        previous=previous,
        marks=_marks(view, measured, begins),
        slots=HOURS_OF_A_DAY if (view.period.days, view.period.interval) == (1, "hour") else SLOTS_MIN,
    )
    before = [*previous[: len(names)], *[None] * (len(names) - len(previous))]
    rows = [(name.label, each, total) for name, each, total in zip(names, shown, before, strict=True)]
    svg = time_chart.svg(chart, lambda value: locale.compact(value, view.visit.locale))
    return Timeline(svg, chart.width, rows, totals, view.previous is not None, view.visit.locale)


def _series(view: View, query: Query, interval: str) -> tuple[Counts, list[str], list[Counts]]:
    totals, rows = view.reports.series(view.snapshot, query, interval, view.zone)
    columns = (rows[name].to_pylist() for name in ("human", "ai", "bot"))
    return totals, rows["start"].to_pylist(), [Counts(*each) for each in zip(*columns, strict=True)]


def _previous(view: View, measured: Measured) -> list[int | None]:
    """Return the totals of the previous period by interval, if the page compares with it."""
    if view.previous is None:
        return []
    _, starts, counts = _series(view, view.query(view.previous), view.period.interval)
    begins = [_instant(start, view.zone) for start in starts]
    return [each.total if _is_measured(begins, index, measured) else None for index, each in enumerate(counts)]


def _is_measured(begins: Sequence[datetime], index: int, measured: Measured) -> bool:
    """Return whether a source has begun before the end of an interval. The last interval has one."""
    is_over = index + 1 < len(begins)
    return measured.since is not None and not (is_over and begins[index + 1] <= measured.since)


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


def _description(view: View, totals: Counts, intervals: int) -> str:
    number = [locale.number(each, view.visit.locale) for each in (totals.human, totals.ai, totals.bot)]
    return (
        f"Stacked bars for each {view.period.interval}, {intervals} in all: {number[0]} views by people, {number[1]} "
        f"by AI and {number[2]} by other bots. The table below the chart has the numbers."
    )


def _instant(start: str, zone: ZoneInfo) -> datetime:
    """Return the instant at which an interval of a series begins."""
    if "T" in start:
        return datetime.fromisoformat(start).astimezone(UTC)
    return datetime.combine(date.fromisoformat(start), time(), zone).astimezone(UTC)
