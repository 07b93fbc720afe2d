"""Visitors and visits beside the views of the overview: their totals, and the visitors of the last minutes."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from api.dashboard.pages.reading import tables
from api.dashboard.pages.reading.measured import NOT_COUNTED, Measured
from api.dashboard.web import locale
from api.dashboard.web.view import View
from api.reports import metrics
from api.reports.report import Run
from warehouse.errors import TooManyViews
from warehouse.report.audience.people import People
from warehouse.report.results import Counts, Query

VIEWS_MINUTES, VISITORS_MINUTES = 30, 5
"""Lengths of the ranges of the live counts of views and of visitors, in minutes."""
NUMBERS = {
    "human": {
        "Visitors": ("visitorsHuman", "number"),
        "Visits": ("visits", "number"),
        "Bounce rate": ("bounceRate", "percent"),
        "Visit duration": ("visitDuration", "duration"),
    },
    "ai": {"AI clients": ("visitorsAi", "number")},
}
"""Totals beside the views of each kind of readers: their column in the API, and their format."""
NOT_BY_SCRIPT, NO_VISIT = "only the website script knows it", "the website script saw no visit"
NOT_KNOWN = "not known for these views"
KNOWN_PERCENT = 99.5
"""Percentage of the views with a known visitor from which the page does not name it."""


@dataclass(frozen=True, slots=True)
class Total:
    """A number of the period, and of the previous period; None where nothing was measured, because of `reason`.

    `link` is the address of the page with these readers as a filter, or without this filter if it is on. The total of
    the visits from AI leads to the AI readers. `unit` is the name of a format.
    """

    name: str
    css: str
    now: float | None
    before: float | None = None
    reason: str | None = None
    link: str | None = None
    unit: str = "number"


def totals(view: View, measurement: Measured) -> tuple[Mapping[str, list[Total]], str]:
    """Return the totals of NUMBERS, and a text about their limits."""
    try:
        run = view.run()
        known = replace(measurement, known=run.visitors_known)
        every = {kind: _totals(view, run, known, kind) for kind in NUMBERS}
        return every, _limits(view, run, measurement)
    except TooManyViews:
        return {"human": [], "ai": []}, f"Visitors are {tables.TOO_MANY}."


def _totals(view: View, run: Run, known: Measured, kind: str) -> list[Total]:
    """Return the totals of a kind of readers. Without a visitor there are no visits."""
    reason = known.reason(kind)
    if reason not in (None, NOT_COUNTED):
        return []
    name, (column, _) = next(iter(NUMBERS[kind].items()))
    if not reason and run.visitors[column] is None:
        return [Total(name, kind, None, reason=NOT_KNOWN)]
    before = view.run(view.query(known.previous)).visitors if known.compares(kind) else {}
    has_script = any(each.source == "beacon" and known.counts("beacon", "human") for each in known.sources)
    unknown = reason or (NO_VISIT if has_script else NOT_BY_SCRIPT)
    every = [
        Total(name, kind, run.visitors[column], before.get(column), unknown, unit=unit)
        for name, (column, unit) in NUMBERS[kind].items()
    ]
    return every[:1] if reason else every


def _limits(view: View, run: Run, measurement: Measured) -> str:
    """Return whom the numbers leave out, and who counts twice."""
    start, end = view.period.start, view.period.end
    limit, texts = run.visitors_known.limit("human", start, end), list[str]()
    for kind, views in {"human": "views by people", "ai": "reads by AI"}.items():
        percent = run.visitors[metrics.KNOWN[kind]]
        if run.visitors[metrics.VISITORS[kind]] is not None and percent is not None and percent < KNOWN_PERCENT:
            share = locale.percent(percent / 100 if percent > 0.1 else 0.002, view.visit.locale)
            share = f"less than {share}" if percent == 0.1 else share
            texts.append(f"{next(iter(NUMBERS[kind]))} are known for {share} of the {views}.")
    if "human" not in measurement.traffic or run.visitors["visitorsHuman"] is None:
        return " ".join(texts)
    if limit and limit.reason == "began" and limit != measurement.known.limit("human", start, end):
        texts.insert(0, f"Visitors are known since {view.day(limit.at)}.")
    row = metrics.whole(run.reports.visitor_counts(view.snapshot, run.query)).to_pylist()[0]
    if view.period.days != 1:
        texts.append("A person who comes on two days counts twice.")
    if 0 < row["timed"] < row["visits"]:
        timed = locale.number(row["timed"], view.visit.locale)
        texts.append(f"Bounce rate and duration are known for the {timed} visits that the website script saw.")
    return " ".join(texts)


def people(view: View, counts: Counts) -> People | None:
    """Count the views by people for each kind of evidence. None if there are none, or if evidence is a filter."""
    if not counts.human or "evidence" in view.filters.fields:
        return None
    return view.reports.people(view.snapshot, view.query())


def live(view: View) -> dict[str, Any]:
    """Return the visitors of the last minutes, or the views if the visitors are not known or cannot be counted."""
    visitors = _live_visitors(view)
    if visitors is not None:
        return {"live": Counts(**visitors), "live_minutes": VISITORS_MINUTES, "visitors": visitors}
    counts = view.reports.breakdown(view.snapshot, _last(view, VIEWS_MINUTES), "source", 0, 1).totals
    return {"live": counts, "live_minutes": VIEWS_MINUTES, "visitors": None}


def _live_visitors(view: View) -> dict[str, int] | None:
    """Return the known visitors of the last minutes; None if none are known, or if others than these were here."""
    known = view.run().visitors_known
    kinds = [kind for kind in NUMBERS if kind in view.filters.selected_traffic and known.counts(kind, view.now, None)]
    if not kinds:
        return None
    with suppress(TooManyViews):
        counted = view.run(_last(view, VISITORS_MINUTES)).visitors
        visitors = {kind: count for kind in kinds if (count := counted[metrics.VISITORS[kind]]) is not None}
        return visitors if len(visitors) == len(kinds) or any(visitors.values()) else None
    return None


def _last(view: View, minutes: int) -> Query:
    return Query(view.project.id, view.now - timedelta(minutes=minutes), None, view.filters, view.now)
