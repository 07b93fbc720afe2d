"""Sparkline: small stacked bars of people and AI over time, without axes."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from api.dashboard.charts.time_chart import rect, runs
from warehouse.report.results import Counts

HEIGHT = 32
"""Height of the drawing, in its own units; `charts.css` gives the size on the page."""


def svg(intervals: Sequence[Counts | None], title: str) -> Markup:
    """Return the sparkline as an `<svg>` element. An interval is None if nothing was measured in it."""
    top = max((counts.total for counts in intervals if counts), default=0) or 1
    unmeasured = runs([each is None for each in intervals])
    bars = [rect("unmeasured", first, end - first, 0, HEIGHT) for first, end in unmeasured]
    for index, counts in enumerate(intervals):
        base = float(HEIGHT)
        for name, count in (("people", counts.human), ("ai", counts.ai)) if counts else ():
            height = round(HEIGHT * count / top, 2)
            base = round(base - height, 2)
            if count:
                bars.append(rect(name, index + 0.1, 0.8, base, height))
    width = max(len(intervals), 1)
    return Markup(  # noqa: S704  # the numbers are ours, and the texts escaped
        f'<svg class="sparkline" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img">'
        f'<title>{escape(title)}</title><rect class="baseline" y="{HEIGHT}" width="{width}" height="1"/>'
        f"{''.join(bars)}</svg>"
    )
