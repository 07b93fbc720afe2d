"""The first card of the overview: the totals of the period, the chart, and the sources under it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.dashboard.pages.reading import measured, visitors
from api.dashboard.pages.reading.ai import operators
from api.dashboard.pages.reading.measured import FILTERED, Measured, Shown
from api.dashboard.pages.reading.panels.dimension import before
from api.dashboard.pages.reading.tables import BOTH, known_since
from api.dashboard.pages.reading.timeline import CSS, timeline
from api.dashboard.pages.reading.visitors import Total
from api.dashboard.web import locale
from api.dashboard.web.view import SOURCES, TRAFFIC, View
from warehouse.report.results import Counts, Query
from warehouse.report.source_coverage import SourceCoverage

VIEWS = {"human": "Views by people", "ai": "Reads by AI", "bot": "Other bots"}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source. `source` is None if it is not set up. `before` are the views in the previous period, as in Row."""

    name: str
    shown: Shown
    before: int | None
    source: SourceCoverage | None
    link: str


def views(view: View, measurement: Measured) -> dict[str, Any]:
    """Return the values of the card. Templates of the other cards have them, too."""
    chart = timeline(view, measurement)
    counts = chart.totals if chart else _totals(view, view.query())
    shown = measurement.shown(counts, view.period.start, view.period.end)
    visits = operators.visits_sent(view) if view.filters["traffic"] in operators.PEOPLE else None
    of_visitors, about = visitors.totals(view, measurement)
    people = visitors.people(view, counts)
    return {
        "chart": chart,
        "totals": _groups(view, measurement, shown, visits, of_visitors),
        "about_visitors": about,
        "people": people,
        "evidence_since": known_since(view, measurement, "evidence") if people and people.not_measured else None,
        "shown": shown,
        "visits": visits,
        "sources": sources(view, measurement),
        "views_of": VIEWS,
        "formats": {
            "number": lambda count: locale.number(count, view.visit.locale),
            "percent": lambda percent: locale.percent(percent / 100, view.visit.locale),
            "duration": locale.duration,
        },
    }


def sources(view: View, measurement: Measured) -> list[SourceRow]:
    """Return a row for each source that the filters of the view select, with None for what was not counted."""
    rows = view.reports.breakdown(view.snapshot, view.query(), "source", 0, len(SOURCES)).rows.to_pylist()
    counts = {row["value"]: Counts(row["human"], row["ai"], row["bot"]) for row in rows}
    by_name = {source.source: source for source in measurement.sources}
    earlier = before(view, "source", measurement.selected) if view.previous else {}
    result = []
    for name in measurement.selected:
        source = by_name.get(name)
        now, then = (
            source and each and measurement.known.extent_of(source.spans, each.start, each.end)
            for each in (view.period, view.previous)
        )
        has_counted = now in ("all", "part")
        counted = [kind for kind in BOTH if has_counted and measurement.is_shown(name, kind)]
        numbers = measured.shown(counts.get(name, Counts()), counted)
        total = earlier.get(name, Counts()).total if now == then == "all" else None
        result.append(SourceRow(SOURCES[name], numbers, total, source, view.link(source=name)))
    return result


def _groups(
    view: View,
    measurement: Measured,
    now: Shown,
    visits: Mapping[str, int] | None,
    of_visitors: Mapping[str, list[Total]],
) -> tuple[list[Total], list[Total]]:
    """Return two groups of totals: of people, and of AI and other bots."""
    compared = [kind for kind in TRAFFIC if measurement.compares(kind)]
    earlier = _totals(view, view.query(measurement.previous)) if compared else Counts()
    human, ai, bot = (
        Total(
            name,
            CSS[traffic],
            getattr(now, traffic),
            getattr(earlier, traffic) if traffic in compared else None,
            measurement.reason(traffic),
            view.link(traffic=None if view.filters["traffic"] == traffic else traffic),
        )
        for traffic, name in VIEWS.items()
    )
    return [human, *of_visitors["human"]], [ai, *of_visitors["ai"], _visits(view, measurement, visits), bot]


def _visits(view: View, measurement: Measured, visits: Mapping[str, int] | None) -> Total:
    """Return the visits by people from all AI products."""
    reason = FILTERED if visits is None else measurement.unmeasured("human")
    earlier = operators.visits_sent(view, measurement.previous) if measurement.compares("human") else None
    link = view.link(f"{view.visit.base}/ai")
    now = None if visits is None or reason else sum(visits.values())
    then = None if earlier is None else sum(earlier.values())
    return Total("Visits from AI", "visits", now, then, reason, link if view.visit.has_pages else None)


def _totals(view: View, query: Query) -> Counts:
    return view.reports.breakdown(view.snapshot, query, "source", 0, 1).totals
