"""The UTC days of pages of requests."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

from api.dashboard.web.view import View
from api.reports.report import Run
from warehouse.report.audience.requests import FIRST_DAY

_DAY = timedelta(days=1)


def run_of_days(view: View, **chosen: Any) -> Run:
    """Return the computation of a report of the page's days, which are UTC days here. `chosen`: see `View.run`.

    A period that ends now includes the present UTC day, which in America begins before the viewer's day ends.
    """
    period = view.period
    last = period.last if period.end else max(period.last, view.visit.now.date())
    start, end = (datetime.combine(day, time(), UTC) for day in (period.first or FIRST_DAY, last + _DAY))
    return view.run(replace(view.query(), start=start, end=end), **chosen)
