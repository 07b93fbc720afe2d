"""Time chart: bars of people, AI or other bots, each in a band of its own, one bar for each interval.

Texts and marks have positions in percent of the plot's width, so that texts have the size of the page's text at every
width. The bars of a band have a coordinate system of their own in intervals, whose numbers are shorter. The labels of
the time axis have three levels, which `charts.css` shows by the width of the plot. Labels of counts are left of the
plot, in the padding of the element around the SVG. The names of intervals are in the language of the viewer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache
from itertools import pairwise

from babel import Locale
from babel.dates import format_date, format_skeleton, format_time
from markupsafe import Markup, escape

HEIGHT, BAND_HEIGHT = 240, 120
"""Height of the only band of a chart, and of each of several bands, in pixels."""
GAP = 26
"""Space above each band, in pixels, for its name and the numbers of marks, and below the last one for the time axis."""
LABELS_MAX = 12
"""Maximum number of labels of the time axis in a wide plot. A medium plot has half, a narrow one a quarter of them."""
GAPLESS_INTERVALS = 150
"""Number of intervals from which bars have no gap between them, because the gap would be narrower than a pixel."""
JOINED_INTERVALS = 60
"""Number of intervals from which the strokes of the previous period are one line, because they are short."""
STEPS_MAX = 4
"""Maximum number of steps between the lowest and the highest tick of an axis of counts."""
BAR_WIDTH = 0.8
"""Width of a bar with gaps, in intervals."""
LABELLED_HOURS_MAX = 48
"""Number of hours up to which the axis names hours; more hours have labels at midnight only."""
LABELLED_DAYS_MAX = 92
"""Number of days up to which the axis names days; more days have labels on the first day of a month only."""

MIDNIGHT = time()


@dataclass(frozen=True, slots=True)
class TimeLabel:
    """Names of an interval: `label` is complete, `tick` is short, for the axis, and may be empty."""

    label: str
    tick: str


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a time chart. `tick` is its name on the axis; empty if the axis never names this interval.

    An interval is partial if it has not ended, or begins before the range.
    """

    tick: str
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """Counts of one kind of readers, and of the previous period, by interval. None: nothing was measured.

    `css` is the class of the bars.
    """

    name: str
    css: str
    counts: Sequence[int | None]
    previous: Sequence[int | None] = ()


@dataclass(frozen=True, slots=True)
class TimeChart:
    """Content of a time chart.

    `marks` are the positions of numbered vertical lines, in intervals. `slots` is the minimum number of intervals for
    which there is space.
    """

    description: str
    intervals: Sequence[Interval]
    bands: Sequence[Band]
    marks: Sequence[float] = ()
    slots: int = 0

    @property
    def width(self) -> int:
        """Return the width of the plot, in intervals."""
        return max(len(self.intervals), self.slots, 1)


def svg(chart: TimeChart, number: Callable[[int], str]) -> Markup:
    """Return the chart as an `<svg>` element. `number` formats the counts of the axis."""
    height = HEIGHT if len(chart.bands) == 1 else BAND_HEIGHT
    total = len(chart.bands) * (GAP + height)
    parts = [
        f'<g transform="translate(0 {GAP + place * (GAP + height)})">{"".join(_band(chart, band, height, number))}</g>'
        for place, band in enumerate(chart.bands)
    ]
    return Markup(  # noqa: S704  # the numbers are ours, and the texts escaped
        f'<svg class="time-chart" width="100%" height="{total + GAP}" role="img"'
        f' aria-label="{escape(chart.description)}">'
        f"{''.join(parts)}{''.join(_marks(chart, total))}{''.join(_time_labels(chart, total))}</svg>"
    )


def _band(chart: TimeChart, band: Band, height: int, number: Callable[[int], str]) -> Iterator[str]:
    """Yield the parts of a band: its name, grid, times without a measurement, bars, and the previous period."""
    previous = band.previous[: chart.width]
    known = [each for each in (*band.counts, *previous) if each is not None]
    ticks = round_ticks(max(known, default=0))
    if len(chart.bands) > 1:
        yield f'<text class="band" x="6" y="-8">{escape(band.name)}</text>'
    for tick in ticks:
        y = _y(tick, ticks[-1], height)
        yield f'<line class="gridline" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        if known or not band.counts:
            yield f'<text class="count" x="-8" y="{y}" dy="0.32em">{escape(number(tick))}</text>'
    yield f'<svg width="100%" height="{height}" viewBox="0 0 {chart.width} {height}" preserveAspectRatio="none">'
    for first, end in runs([count is None for count in band.counts]):
        yield rect("unmeasured", first, end - first, 0, height)
    width = BAR_WIDTH if chart.width < GAPLESS_INTERVALS else 1
    for index, (interval, count) in enumerate(zip(chart.intervals, band.counts, strict=True)):
        if count:
            y = _y(count, ticks[-1], height)
            css = f"{band.css} partial" if interval.is_partial else band.css
            yield rect(css, index + (1 - width) / 2, width, y, round(height - y, 1))
    lines = "".join(_previous(previous, ticks[-1], height, joined=chart.width >= JOINED_INTERVALS))
    css = "previous joined" if chart.width >= JOINED_INTERVALS else "previous"
    yield f'<path class="{css}" d="{lines}" vector-effect="non-scaling-stroke"/></svg>' if lines else "</svg>"


def round_ticks(maximum: int) -> tuple[int, ...]:
    """Return ticks from 0 up to a round number that is at least `maximum`, and at least 1."""
    step = _step(max(maximum, 1))
    count = -(-max(maximum, 1) // step)
    return tuple(step * number for number in range(count + 1))


def _step(maximum: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50 ... of which STEPS_MAX reach `maximum`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power * STEPS_MAX >= maximum:
                return factor * power
        power *= 10


def _previous(counts: Sequence[int | None], top: int, height: int, *, joined: bool) -> Iterator[str]:
    """Yield the strokes of the previous period, one for each interval, joined to steps if there are many."""
    before: int | None = None
    for at, count in enumerate(counts):
        if count is not None:
            y = f"{_y(count, top, height):g}"
            yield f"V{y}h1" if joined and before is not None else f"M{at} {y}h1"
        before = count


def _marks(chart: TimeChart, height: int) -> Iterator[str]:
    """Yield a vertical line and the number of each mark. The numbers of marks at one position are one text."""
    for position in sorted(set(chart.marks)):
        numbers = ", ".join(str(place + 1) for place, each in enumerate(chart.marks) if each == position)
        x = _percent(position, chart)
        yield f'<line class="mark" x1="{x}" x2="{x}" y1="{GAP - 17}" y2="{height}"/>'
        yield f'<text class="mark" x="{x}" y="{GAP - 19}">{numbers}</text>'


def _time_labels(chart: TimeChart, height: int) -> Iterator[str]:
    """Yield the labels of the time axis. Every fourth is for any width, every second for medium and wide plots."""
    named = [index for index, each in enumerate(chart.intervals) if each.tick]
    # A day that has not ended has the labels that the same hours of a whole day have.
    step = max(-(-len(named) * chart.width // (LABELS_MAX * max(len(chart.intervals), 1))), 1)
    for order, index in enumerate(named[::step]):
        level = "any" if order % 4 == 0 else "medium" if order % 2 == 0 else "wide"
        tick, x = escape(chart.intervals[index].tick), _percent(index + 0.5, chart)
        yield f'<text class="time {level}" x="{x}" y="{height + 18}">{tick}</text>'


def runs(flags: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first index and the end of each run of true values."""
    edges = [index for index, (before, after) in enumerate(pairwise((False, *flags, False))) if before != after]
    yield from zip(edges[::2], edges[1::2], strict=True)


def rect(css: str, x: float, width: float, y: float, height: float) -> str:
    return f'<rect class="{css}" x="{x:g}" width="{width:g}" y="{y:g}" height="{height:g}"/>'


def _y(count: int, top: int, height: int) -> float:
    return round(height * (top - count) / top, 1)


def _percent(position: float, chart: TimeChart) -> str:
    return f"{100 * position / chart.width:.4g}%"


def labels(starts: Sequence[str], interval: str, locale: Locale) -> list[TimeLabel]:
    """Return the names of the intervals of a series. A start is a date, or the time of an hour, in ISO 8601."""
    if interval == "hour":
        return _hours([datetime.fromisoformat(start) for start in starts], locale)
    days = [date.fromisoformat(start) for start in starts]
    return {"day": _days, "week": _weeks, "month": _months}[interval](days, locale)


def _hours(times: Sequence[datetime], locale: Locale) -> list[TimeLabel]:
    is_long = len(times) > LABELLED_HOURS_MAX
    result = []
    for each in times:
        day, hour = each.date(), _clock(each.time(), locale)
        tick = _formatted(day, "MMMd", locale) if each.time() == MIDNIGHT else "" if is_long else hour
        result.append(TimeLabel(f"{_medium(day, locale)}, {hour}", tick))
    return result


def _days(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    is_long = len(days) > LABELLED_DAYS_MAX
    return [
        TimeLabel(
            _formatted(day, "yMMMEd", locale),
            "" if is_long and day.day > 1 else _formatted(day, "yMMM" if is_long else "MMMd", locale),
        )
        for day in days
    ]


def _weeks(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    return [TimeLabel(f"Week of {_medium(day, locale)}", _formatted(day, "MMMd", locale)) for day in days]


def _months(days: Sequence[date], locale: Locale) -> list[TimeLabel]:
    return [TimeLabel(_formatted(day, "yMMMM", locale), _formatted(day, "yMMM", locale)) for day in days]


# Without the caches, formatting takes 0.1 ms per text. A chart of hours repeats the same 31 days and 24 times.
@lru_cache(maxsize=1_024)
def _clock(at: time, locale: Locale) -> str:
    return format_time(at, "short", locale=locale)


@lru_cache(maxsize=4_096)
def _medium(day: date, locale: Locale) -> str:
    return format_date(day, "medium", locale=locale)


@lru_cache(maxsize=4_096)
def _formatted(day: date, skeleton: str, locale: Locale) -> str:
    """Return a day by a skeleton of CLDR, which names the parts of a date: https://cldr.unicode.org."""
    # At noon, because format_skeleton does not accept dates, and would convert midnight to UTC.
    noon = datetime(day.year, day.month, day.day, 12)  # noqa: DTZ001  # the day has no zone
    return format_skeleton(skeleton, noon, locale=locale)
