"""Page *Cost*: requests of logs and servers with their bytes and times, by agent or another column."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from api.dashboard.pages.reading import measured
from api.dashboard.pages.reading.export import table_file
from api.dashboard.pages.reading.requests.days import run_of_days
from api.dashboard.web import locale, render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import Chip, View
from api.dashboard.web.visit import ProjectVisit
from api.http.operation import CSV
from api.reports import parameters
from api.reports.records import COST
from warehouse.columns.dimensions import FILTERS
from warehouse.columns.filters import Filters
from warehouse.columns.kinds import KINDS
from warehouse.report.audience.requests import BY, READERS

ROWS_MAX = 50
"""Maximum number of rows. The file has all of them."""
NAMES = dict(zip(BY, ("Agents", "Operators", "Kinds", "Statuses", "Sources", "Days"), strict=True))
_FILTERS = {each.name for each in parameters.COST} & {*FILTERS}
_SUMS = ("requests", "bytes", "sized", "timed", "cached", "refused")


def cost(visit: ProjectVisit) -> Response:
    view = _view(visit)
    by = _by(view)
    rows = _rows(view, by)
    total = {name: sum(row[name] or 0 for row in rows) for name in _SUMS}
    return render.counts_page(
        view,
        "reading/cost.html",
        title=f"Cost of {view.project.id}",
        tab="Cost",
        by=by,
        names=NAMES,
        rows=rows[:ROWS_MAX],
        left_out=max(len(rows) - ROWS_MAX, 0),
        total=total,
        measured=measured.measured_in(view, has_policy=False),
        ai=_ai(view, by, total),
        of_sources=_rows(view, "source"),
        has_refusals=by in READERS and total["refused"],
        has_failures=bool(total["refused"]) or _has_failures(view),
        without_status=0 if rows else _without_status(view),
        size=lambda count: locale.size(count, visit.locale),
        price=(per_gb := visit.state.settings.price_per_gb)
        and (lambda count: locale.price(count, per_gb, visit.locale)),
    )


def export(visit: ProjectVisit) -> Response:
    view = _view(visit)
    view.require_valid()
    return table_file(view, CSV, "cost", COST.table(run_of_days(view, by=_by(view), kind=_kind(view)), CSV))


def _view(visit: ProjectVisit) -> View:
    """Return the view, without the filters that requests do not have, and with the chip of their kind."""
    view = View(visit)
    view.drop(*{*FILTERS} - _FILTERS)
    if kind := _kind(view):
        view.chips.append(Chip("kind", "Kind", kind))
    elif "kind" in view.values:
        view.faults.append(f"There is no kind “{view.values['kind'][:40]}”: it is one of {', '.join(KINDS)}.")
    return view


def _kind(view: View) -> str | None:
    return kind if (kind := view.values.get("kind")) in KINDS else None


def _by(view: View) -> str:
    by = view.values.get("by")
    return by if by in BY else BY[0]


def _rows(view: View, by: str, **filters: str) -> list[dict[str, Any]]:
    query = run_of_days(view, kind=_kind(view)).selection.requests
    chosen = replace(query, filters={**query.filters, **filters})
    rows: list[dict[str, Any]] = view.reports.requests(chosen, view.snapshot.moment, by).to_pylist()
    return rows


def _ai(view: View, by: str, total: dict[str, int]) -> dict[str, float] | None:
    """Return the share of AI in the requests and bytes of all readers; None if readers are chosen."""
    if not total["requests"] or {"traffic", "agent", "operator"} & view.filters.fields.keys():
        return None
    rows = _rows(view, by, traffic="ai")
    return {name: sum(row[name] or 0 for row in rows) / total[name] for name in ("requests", "bytes") if total[name]}


def _has_failures(view: View) -> bool:
    """Return whether a request of any reader failed, moved or was for robots.txt: not all senders post these."""
    days = replace(run_of_days(view).selection.requests, filters={})
    statuses, kinds = (view.reports.requests(days, view.snapshot.moment, by)["value"] for by in ("status", "kind"))
    return "robots" in kinds.to_pylist() or any(int(each) >= 300 and each != "304" for each in statuses.to_pylist())


def _without_status(view: View) -> int:
    """Return the number of views that servers posted: without a status they are no requests, and have no kind."""
    if _kind(view) or view.filters["source"] not in (None, "server"):
        return 0
    query = replace(view.query(), filters=Filters((), **view.filters.fields | {"source": "server"}))
    counts = view.reports.breakdown(view.snapshot, query, "source", 0, 1).totals
    return counts.total + counts.bot


PAGES = (
    Page("GET", "/projects/{project}/cost", cost, Access.PROJECT),
    Page("GET", "/projects/{project}/cost.csv", export, Access.PROJECT),
)
