"""Sparkline: small stacked bars of people and AI over time, without axes."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from warehouse.report.results import Counts

HEIGHT = 32
"""Height of the drawing, in its own units; `charts.css` gives the size on the page."""


def svg(intervals: Sequence[Counts | None], title: str) -> Markup:
    """Return the sparkline as an `<svg>` element. An interval is None if nothing was measured in it."""
    top = max((counts.total for counts in intervals if counts), default=0) or 1
    bars = []
    for index, counts in enumerate(intervals):
        base = float(HEIGHT)
        for name, count in (("people", counts.human), ("ai", counts.ai)) if counts else ():
            height = round(HEIGHT * count / top, 2)
            base = round(base - height, 2)
            if count:
                bars.append(f'<rect class="{name}" x="{index}.1" width=".8" y="{base:g}" height="{height:g}"/>')
    width = max(len(intervals), 1)
    return Markup(  # noqa: S704  # the numbers are ours, and the texts escaped
        f'<svg class="sparkline" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img">'
        f'<title>{escape(title)}</title><rect class="baseline" y="{HEIGHT}" width="{width}" height="1"/>'
        f"{''.join(bars)}</svg>"
    )
