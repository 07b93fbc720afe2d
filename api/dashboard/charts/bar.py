"""Bar behind a row of a table: people, then AI, then other bots, as a share of the largest row."""

from markupsafe import Markup

from warehouse.report.results import Counts


def svg(counts: Counts, largest: int) -> Markup:
    """Return the bar as an `<svg>` element. `largest` is the largest sum of a row; `charts.css` gives the size."""
    parts, position = [], 0
    for name, count in (("people", counts.human), ("ai", counts.ai), ("bot", counts.bot)):
        if count and largest:
            start = Markup(' x="{}"').format(_percent(position, largest)) if position else ""
            parts.append(Markup('<rect class="{}"{} width="{}"/>').format(name, start, _percent(count, largest)))
        position += count
    return Markup('<svg class="row-bar" aria-hidden="true">{}</svg>').format(Markup().join(parts))


def _percent(count: int, largest: int) -> str:
    return f"{100 * count / largest:.2f}".rstrip("0").rstrip(".") + "%"
