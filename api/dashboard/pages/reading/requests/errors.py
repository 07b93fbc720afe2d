"""The errors that AI agents and bots got, such as missing pages that they ask for: by page, and for one page by agent.

The days are of UTC.
"""

from collections.abc import Iterable
from datetime import date
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from api.dashboard.charts import sparkline
from api.dashboard.pages.reading import measured
from api.dashboard.pages.reading.export import table_file
from api.dashboard.pages.reading.measured import SERVER_SOURCES
from api.dashboard.pages.reading.requests.days import run_of_days
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.view import View
from api.dashboard.web.visit import ProjectVisit
from api.http.operation import CSV
from api.reports.parameters import ERROR_FILTERS, ERROR_STATUSES
from api.reports.records import ERRORS
from warehouse.columns.dimensions import FILTERS
from warehouse.report.audience.errors import GroupBy
from warehouse.report.results import Counts

ROWS = 50
"""Number of rows on a page of the table."""
BARS_MAX = 60
"""Maximum number of bars of a trend; each bar of a longer range is of several days."""


def error_list(visit: ProjectVisit) -> Response:
    view = _view(visit)
    query, number = run_of_days(view).selection.errors, view.page_number()
    by, moment = _by(view), view.snapshot.moment
    groups = visit.state.reports.error_groups(query, moment, by, (number - 1) * ROWS, ROWS + 1).to_pylist()
    measured_now = measured.measured_in(view, has_policy=False)
    return render.counts_page(
        view,
        "reading/errors.html",
        title=f"Errors of {view.project.id}",
        tab="Errors",
        by=by,
        rows=_rows(view, by, groups[:ROWS]),
        has_more=len(groups) > ROWS,
        number_of_page=number,
        first=(number - 1) * ROWS + 1,
        measured=measured_now,
        is_counted=measured_now.extent("ai") != "none",
        has_logs=any(source.source == "log" for source in measured_now.sources),
        may_count_twice={*SERVER_SOURCES} <= {source.source for source in measured_now.sources},
    )


def export(visit: ProjectVisit) -> Response:
    view = _view(visit)
    view.require_valid()
    by = "path" if _by(view) == "path" else ""
    return table_file(view, CSV, "errors", ERRORS.table(run_of_days(view, by=by), CSV))


def _view(visit: ProjectVisit) -> View:
    """Return the view, without the filters that errors do not have."""
    view = View(visit)
    view.drop(*{*FILTERS} - {*ERROR_FILTERS})
    text = view.filters["status"]
    if text is not None and text not in ERROR_STATUSES:
        view.faults.append(f"“{text[:40]}” is not the status of an error, such as 404; these are all of them.")
        view.fix(status=None)
    return view


def _by(view: View) -> GroupBy:
    """Return what the rows are: agents if the page names a path or asks for agents, else paths."""
    path = view.filters.path
    return "agent" if view.values.get("by") == "agent" or (path and "*" not in path) else "path"


def _rows(view: View, by: GroupBy, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups of requests with `value`, which may be unknown, `others` agents or paths, and `trend`."""
    days = [day for row in rows for day in row["days"]]
    first = view.period.first or min(days, default=view.period.last)
    last = max(view.period.last, *days) if days else view.period.last
    return [
        row
        | {
            "value": row[by],
            "others": row["agents" if by == "path" else "paths"],
            "trend": _trend(zip(row["days"], row["requests_of_days"], strict=True), first, last),
        }
        for row in rows
    ]


def _trend(requests: Iterable[tuple[date, int]], first: date, last: date) -> Markup:
    """Return the requests from the first to the last UTC day as a sparkline."""
    days = (last - first).days + 1
    days_of_bar = -(-days // BARS_MAX)
    bars = [0] * -(-days // days_of_bar)
    for day, count in requests:
        bars[(day - first).days // days_of_bar] += count
    unit = "day" if days_of_bar == 1 else f"{days_of_bar} days"
    return sparkline.svg([Counts(ai=count) for count in bars], f"Requests by {unit}, at most {max(bars):,}")


PAGES = (
    Page("GET", "/projects/{project}/errors", error_list, Access.PROJECT),
    Page("GET", "/projects/{project}/errors.csv", export, Access.PROJECT),
)
