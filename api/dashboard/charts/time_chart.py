"""Time chart: stacked bars of people, AI and other bots, one stack for each interval.

Horizontal positions are percentages of the width of the plot, and bars are in a nested SVG that is stretched to the
width. Texts are outside of the nested SVG: they have the size of the page's text at every width. The labels of the time
axis have three levels, which `charts.css` shows by the width of the plot. Labels of counts are left of the plot, in the
padding of the element around the SVG.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from markupsafe import Markup

from api.dashboard.charts import scale
from warehouse.report.results import Counts

HEIGHT = 240
"""Height of the plot, in pixels."""
LABELS_HEIGHT = 26
"""Height of the labels of the time axis below the plot, in pixels."""
LABELS_MAX = 12
"""Maximum number of labels of the time axis in a wide plot. A medium plot has half, a narrow one a quarter of them."""
GAPLESS_INTERVALS = 150
"""Number of intervals from which bars have no gap between them, because the gap would be narrower than a pixel."""
BAR_WIDTH = 0.8
"""Width of a bar with gaps, in intervals."""
MARK_LINE_HEIGHT = 15
"""Height of a row of marks above the plot, in pixels."""
NARROW_START = -44
"""Horizontal position of the texts of marks in a narrow plot, in pixels. Left of the plot is space for its counts."""
LEADER = 12
"""Vertical position of the line from such a text to its mark in the row of the mark, in pixels."""
SERIES = (("people", "human"), ("ai", "ai"), ("bot", "bot"))
"""CSS class and count of each series, the lowest first."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a time chart.

    `label` is the complete name in the table and the tooltip. `tick` is the short name on the axis; empty if the axis
    never names this interval. `counts` is None for an interval without a measurement. An interval is partial if it has
    not ended, or begins before the range. An interval is incomplete if some readers were not counted in it.
    """

    label: str
    tick: str
    counts: Counts | None
    is_partial: bool = False
    is_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line with a text. `position` is the number of intervals left of the line; it may be a fraction."""

    position: float
    text: str


@dataclass(frozen=True, slots=True)
class TimeChart:
    """Content of a time chart.

    `id` is unique in the page. `previous` are the totals of the previous period by interval, None where nothing was
    measured. `slots` is the minimum number of intervals for which there is space.
    """

    id: str
    title: str
    description: str
    intervals: Sequence[Interval]
    previous: Sequence[int | None] = ()
    marks: Sequence[Mark] = ()
    slots: int = 0

    @property
    def width(self) -> int:
        """Return the width of the plot, in intervals."""
        return max(len(self.intervals), self.slots, 1)

    @property
    def maximum(self) -> int:
        """Return the largest stack or total of the previous period that is drawn."""
        stacks = (_stack(each.counts)[-1] for each in self.intervals if each.counts)
        return max((*stacks, *(total for total in self.previous[: self.width] if total is not None)), default=0)


def svg(chart: TimeChart, number: Callable[[int], str]) -> Markup:
    """Return the chart as an `<svg>` element. `number` formats the counts of the axis."""
    ticks = scale.ticks(chart.maximum)
    top = ticks[-1]
    parts = [
        *_grid(ticks, number),
        *_unmeasured(chart),
        _plot(chart, top),
        *_marks(chart),
        *_time_labels(chart),
    ]
    above = len(chart.marks) * MARK_LINE_HEIGHT
    return Markup(
        '<svg class="time-chart" width="100%" height="{height}" role="img" aria-labelledby="{id}-title"'
        ' aria-describedby="{id}-description"><title id="{id}-title">{title}</title>'
        '<desc id="{id}-description">{description}</desc><g transform="translate(0 {above})">{parts}</g></svg>'
    ).format(
        height=above + HEIGHT + LABELS_HEIGHT,
        above=above,
        id=chart.id,
        title=chart.title,
        description=chart.description,
        parts=Markup().join(parts),
    )


def _grid(ticks: Sequence[int], number: Callable[[int], str]) -> Iterator[Markup]:
    """Yield a horizontal line and a label for each tick."""
    for tick in ticks:
        y = _y(tick, ticks[-1])
        yield Markup('<line class="gridline" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(y)
        yield Markup('<text class="count" x="-8" y="{}" dy="0.32em">{}</text>').format(y, number(tick))


def _unmeasured(chart: TimeChart) -> Iterator[Markup]:
    """Yield an area behind each run of intervals without a measurement, and of incomplete intervals."""
    kinds = [
        ("unmeasured", [each.counts is None for each in chart.intervals]),
        ("incomplete", [each.counts is not None and each.is_incomplete for each in chart.intervals]),
    ]
    for name, flags in kinds:
        for first, end in _runs(flags):
            yield Markup('<rect class="{}" x="{}" width="{}" y="0" height="{}"/>').format(
                name, _percent(first, chart.width), _percent(end - first, chart.width), HEIGHT
            )


def _plot(chart: TimeChart, top: int) -> Markup:
    """Return the nested SVG of the bars and of the line of the previous period, whose unit of x is an interval."""
    return Markup(
        '<svg width="100%" height="{0}" viewBox="0 0 {1} {0}" preserveAspectRatio="none">{2}{3}</svg>'
    ).format(HEIGHT, chart.width, Markup().join(_bars(chart, top)), _previous(chart, top))


def _bars(chart: TimeChart, top: int) -> Iterator[Markup]:
    """Yield the paths of each series: one of the whole intervals, and one of the partial intervals.

    A path goes along the upper ends of its series down to the axis. The lower series is drawn later and covers it.
    """
    width = BAR_WIDTH if chart.width < GAPLESS_INTERVALS else 1
    for level, (name, count) in reversed(tuple(enumerate(SERIES))):
        for is_partial in (False, True):
            of_path = [each.counts if each.is_partial is is_partial else None for each in chart.intervals]
            if any(counts is not None and getattr(counts, count) for counts in of_path):
                heights = [0 if counts is None else _stack(counts)[level] for counts in of_path]
                path = _separate(heights, width, top) if width < 1 or is_partial else _outline(heights, top)
                yield Markup('<path class="{}" d="{}"/>').format(f"{name} partial" if is_partial else name, path)


def _separate(heights: Sequence[int], width: float, top: int) -> str:
    """Return the path of a bar for each interval whose height is not 0."""
    start, width_text = (1 - width) / 2, _text(width)
    return "".join(
        f"M{_text(index + start)} {HEIGHT}V{_y(height, top)}h{width_text}V{HEIGHT}z"
        for index, height in enumerate(heights)
        if height
    )


def _outline(heights: Sequence[int], top: int) -> str:
    """Return the path of bars without gaps, in relative steps of whole pixels: about 5 bytes for each bar."""
    parts, last = [], HEIGHT
    for y, bars in groupby(_pixel(height, top) for height in heights):
        parts.append(f"v{y - last}h{len(list(bars))}")
        last = y
    return f"M0 {HEIGHT}{''.join(parts)}V{HEIGHT}z"


def _previous(chart: TimeChart, top: int) -> Markup:
    """Return the line through the totals of the previous period, with a gap where nothing was measured.

    The positions are whole pixels. Those after the first are steps from the last.
    """
    parts: list[str] = []
    last: int | None = None
    for index, total in enumerate(chart.previous[: chart.width]):
        y = None if total is None else _pixel(total, top)
        if y is not None:
            parts.append(f"M{index}.5 {y}" if last is None else f"l1 {y - last}".replace(" -", "-"))
        last = y
    path = "".join(parts)
    return (
        Markup('<path class="previous" vector-effect="non-scaling-stroke" d="{}"/>').format(path) if path else Markup()
    )


def _marks(chart: TimeChart) -> Iterator[Markup]:
    """Yield a line and a text for each mark. Each text has a row above the plot, on the side that has more space.

    In a narrow plot the text begins at the left edge instead, and a line below the text leads to the mark.
    """
    for row, mark in enumerate(chart.marks):
        top = (row - len(chart.marks)) * MARK_LINE_HEIGHT
        x, y = _percent(mark.position, chart.width), top + 10
        is_left = mark.position * 2 <= chart.width
        yield Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
            x, top + MARK_LINE_HEIGHT, HEIGHT
        )
        yield Markup('<line class="mark medium" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
            x, top, top + MARK_LINE_HEIGHT
        )
        yield Markup('<line class="mark narrow" x1="0" x2="{0}" y1="{1}" y2="{1}"/>').format(x, top + LEADER)
        yield Markup('<text class="mark medium {}" x="{}" y="{}" dx="{}">{}</text>').format(
            "begins" if is_left else "ends", x, y, 5 if is_left else -5, mark.text
        )
        yield Markup('<text class="mark narrow" x="{}" y="{}">{}</text>').format(NARROW_START, y - 2, mark.text)


def _time_labels(chart: TimeChart) -> Iterator[Markup]:
    """Yield the labels of the time axis. Every fourth is for any width, every second for medium and wide plots."""
    named = [index for index, each in enumerate(chart.intervals) if each.tick]
    # A day that has not ended has the labels that the same hours of a whole day have.
    step = max(-(-len(named) * chart.width // (LABELS_MAX * max(len(chart.intervals), 1))), 1)
    for order, index in enumerate(named[::step]):
        level = "any" if order % 4 == 0 else "medium" if order % 2 == 0 else "wide"
        yield Markup('<text class="time {}" x="{}" y="{}">{}</text>').format(
            level, _percent(index + 0.5, chart.width), HEIGHT + 18, chart.intervals[index].tick
        )


def _stack(counts: Counts) -> tuple[int, int, int]:
    """Return the upper end of each series in a stack."""
    return counts.human, counts.human + counts.ai, counts.human + counts.ai + counts.bot


def _runs(flags: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first index and the end of each run of true values."""
    edges = [index for index, (before, after) in enumerate(pairwise((False, *flags, False))) if before != after]
    yield from zip(edges[::2], edges[1::2], strict=True)


def _pixel(count: int, top: int) -> int:
    return round(HEIGHT * (top - count) / top)


def _y(count: int, top: int) -> str:
    return _text(HEIGHT * (top - count) / top, 1)


def _percent(position: float, width: int) -> str:
    return f"{_text(100 * position / width)}%"


def _text(number: float, decimals: int = 2) -> str:
    """Return a coordinate."""
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
