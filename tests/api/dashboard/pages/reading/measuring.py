"""What the sources of a project counted, written by hand. All days are in September 2026."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from babel import Locale

from api.dashboard.pages.reading.measured import Measured
from api.dashboard.web.period import Period
from warehouse.control import policy
from warehouse.control.policy import Policy
from warehouse.report.measured import Measured as Known
from warehouse.report.measured import Span, of_kinds
from warehouse.report.source_coverage import SourceCoverage

ZONE = ZoneInfo("UTC")
NOW = 28
"""Day of the present."""


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2026, 9, number, hour, tzinfo=UTC)


def period(first: int, end: int | None, interval: str = "day") -> Period:
    last = date(2026, 9, (end or 31) - 1)
    return Period("custom", date(2026, 9, first), last, ZONE, interval, day(first), end and day(end))


def source(name: str, first: datetime, silent: int | None = None) -> SourceCoverage:
    """Return a source whose first view is at `first`, and that is silent from the day `silent` on."""
    return SourceCoverage(name, first, day(NOW), (), (Span(first, silent and day(silent)),))


def measured(
    *kinds: str,
    shown: Period,
    previous: Period | None = None,
    policies: tuple[Policy, Policy] = ("all", "all"),
    silent: dict[str, int] | None = None,
    selected: tuple[str, ...] = ("beacon", "log"),
    **firsts: datetime,
) -> Measured:
    """Return the sources with these times of their first views.

    `policies` are those of the previous period and of the period, and `silent` are the days from which a source is
    silent.
    """
    sources = tuple(source(name, first, (silent or {}).get(name)) for name, first in firsts.items())
    periods = (policy.Period(date.min, policies[0]), policy.Period(shown.start.date(), policies[1]))
    of_sources = {each.source: each.spans for each in sources}
    spans = of_kinds(of_sources, periods)
    return Measured(
        shown,
        previous,
        Locale("en"),
        kinds or ("human", "ai", "bot"),
        selected,
        sources,
        (),
        known=Known(spans, min(firsts.values(), default=None), day(NOW), of_sources),
        policies=frozenset({policies[1]}),
        policies_before=frozenset({policies[0]}) if previous else frozenset(),
    )
