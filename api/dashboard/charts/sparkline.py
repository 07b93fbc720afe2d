"""Sparkline: small stacked bars of people and AI over time, without axes."""

from collections.abc import Sequence

from markupsafe import Markup

from warehouse.report.results import Counts

HEIGHT = 32
"""Height of the drawing, in its own units; `charts.css` gives the size on the page."""


def svg(intervals: Sequence[Counts | None], title: str) -> Markup:
    """Return the sparkline as an `<svg>` element. An interval is None if nothing was measured in it."""
    top = max((counts.total for counts in intervals if counts), default=0) or 1
    spans = {
        "people": [(0, counts.human) if counts else (0, 0) for counts in intervals],
        "ai": [(counts.human, counts.total) if counts else (0, 0) for counts in intervals],
    }
    drawn = {name: "".join(_bar(index, *span, top) for index, span in enumerate(of)) for name, of in spans.items()}
    paths = Markup().join(
        Markup('<path class="{}" d="{}"/>').format(name, path) for name, path in drawn.items() if path
    )
    return Markup(
        '<svg class="sparkline" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img">'
        '<title>{title}</title><path class="baseline" vector-effect="non-scaling-stroke" d="M0 {height}H{width}"/>'
        "{paths}</svg>"
    ).format(width=max(len(intervals), 1), height=HEIGHT, title=title, paths=paths)


def _bar(index: int, low: int, high: int, top: int) -> str:
    if low == high:
        return ""
    return f"M{index}.1 {_y(low, top)}V{_y(high, top)}h.8V{_y(low, top)}z"


def _y(count: int, top: int) -> str:
    return f"{HEIGHT * (top - count) / top:.2f}".rstrip("0").rstrip(".")
