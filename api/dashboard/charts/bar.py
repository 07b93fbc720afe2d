"""Bars in tables: the bar behind a row, and a bar of the parts of one number."""

from collections.abc import Iterable

from markupsafe import Markup

from warehouse.report.results import Counts

Segment = tuple[str, int]
"""CSS class of a part of a bar, and its count."""


def svg(counts: Counts, largest: int) -> Markup:
    """Return the bar behind a row, of people, AI and other bots. `largest` is the largest sum of a row."""
    return parts((("people", counts.human), ("ai", counts.ai), ("bot", counts.bot)), largest, "row-bar")


def parts(segments: Iterable[Segment], largest: int, css: str = "parts") -> Markup:
    """Return a bar as an `<svg>` element. `largest` is the count of a full bar; `charts.css` gives the size."""
    drawn, position = [], 0
    for name, count in segments:
        if count and largest:
            start, width = _percent(position, largest), _percent(count, largest)
            drawn.append(Markup('<rect class="{}" x="{}" width="{}"/>').format(name, start, width))
        position += count
    return Markup('<svg class="{}" aria-hidden="true">{}</svg>').format(css, Markup().join(drawn))


def _percent(count: int, largest: int) -> str:
    return f"{100 * count / largest:.4g}%"
