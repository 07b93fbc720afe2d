"""Bar behind a row of a table: people, then AI, then other bots, as a share of the largest row."""

from markupsafe import Markup

from warehouse.report.filters import Counts


def svg(counts: Counts, largest: int) -> Markup:
    """Return the bar as an `<svg>` element that fills its parent. `largest` is the largest sum of a row."""
    parts, position = [], 0
    for name, count in (("people", counts.human), ("ai", counts.ai), ("bot", counts.bot)):
        if count and largest:
            parts.append(
                Markup('<rect class="{}" x="{}" width="{}" height="100%"/>').format(
                    name, _percent(position, largest), _percent(count, largest)
                )
            )
        position += count
    return Markup('<svg class="row-bar" width="100%" height="100%" aria-hidden="true">{}</svg>').format(
        Markup().join(parts)
    )


def _percent(count: int, largest: int) -> str:
    return f"{100 * count / largest:.2f}".rstrip("0").rstrip(".") + "%"
