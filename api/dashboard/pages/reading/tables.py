"""The rows of a table of counts, with the same numbers as in the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from urllib.parse import urlsplit

from markupsafe import Markup

from api.dashboard.charts import bar
from api.dashboard.pages.reading.measured import Measured, Shown
from api.dashboard.web import links
from api.dashboard.web.view import View, value_name
from warehouse.columns.dimensions import FILTERS, OF_VISITS
from warehouse.report.measured import midnight
from warehouse.report.results import Counts, ReportPage

ROWS = 8
"""Number of rows of a table that has no pages."""
TOO_MANY = "counted for shorter periods only, because of these filters"
"""Reason why a period with many views has no visitors and visits."""
NO_NAMES: Mapping[str, str] = MappingProxyType({})
BOTH = ("human", "ai")
"""Kinds of readers in the total of a page."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table. `link` is the address of the page with this row as a filter; None for the unknown value.

    `name` is the value as the page shows it. `before` are the views in the previous period; None if they are unknown,
    or if the page does not compare.
    """

    value: str | None
    name: str
    counts: Counts | Shown
    bar: Markup
    link: str | None
    before: int | None = None


def known_since(view: View, measurement: Measured, name: str) -> str | None:
    """Return the first day with a known value of a dimension, if the period has earlier views or ends before it."""
    first, begin = view.reports.first_day(view.snapshot, view.project.id, name), measurement.since
    is_later = first and begin and max(begin, view.period.start) < midnight(first.toordinal())
    return view.day(midnight(first.toordinal())) if first and is_later else None


def own_hosts(view: View) -> frozenset[str]:
    """Return the hosts of the site itself: links between its pages are not referrers that its owner looks for."""
    return frozenset(host for origin in view.project.origins if (host := urlsplit(origin).hostname))


def rows_of(
    view: View,
    page: ReportPage,
    by: str,
    unknown: str = "Unknown",
    names: Mapping[str, str] = NO_NAMES,
    **carry: str | None,
) -> list[Row]:
    """Return the rows of a page of a breakdown, or of views, whose rows are paths without other bots.

    `names` are other names of values, and `carry` is in links.
    """
    column = "path" if "path" in page.rows.column_names else "value"
    name = links.readable if by in {"path", *OF_VISITS} else partial(value_name, by)
    listed, has_bots = page.rows.to_pylist(), column == "value"
    counts = [(row[column], Counts(row["human"], row["ai"], row["bot"] if has_bots else 0)) for row in listed]
    largest = max((each.human + each.ai + each.bot for _, each in counts), default=0)
    return [
        Row(
            value,
            unknown if value is None else names.get(value) or name(value),
            each,
            bar.svg(each, largest),
            None if value is None or by not in {"source", *FILTERS} else view.link(**(carry | {by: value})),
        )
        for value, each in counts
    ]
