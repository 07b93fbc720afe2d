"""Groupings of page views: the SQL expressions of what breakdowns and series count by, over `hits` and over rollups."""

from dataclasses import dataclass

from warehouse.report.filters import VERIFICATION, Filters
from warehouse.rollups.schema import AGENT_COLUMNS, DIMENSION_VALUES, QUARTER_S

DAY_S = 86_400
ORIGIN_S = -62_135_596_800
"""Start of the year 1, in seconds since 1970. Units of time are numbered from it: no number is negative."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Value by which page views are counted, as an SQL expression over the columns of `hits`.

    `rollup` is the same value over the rows of one `dimension` in a rollup, which also have their `date`. A grouping
    without a dimension can only be counted from `hits`.
    """

    hits: str
    dimension: str | None = None
    rollup: str = "value"

    def dimension_for(self, filters: Filters) -> str | None:
        """Return the dimension whose rows have the columns of the filters, or None if only `hits` has them.

        No dimension has paths.
        """
        if self.dimension is None or filters.path is not None:
            return None
        return (
            _BY_AGENT.get(self.dimension, self.dimension) if filters.fields.keys() & AGENT_COLUMNS else self.dimension
        )


_BY_AGENT = {"quarter": "agentQuarter"}
"""Dimensions with the same values and AGENT_COLUMNS, by the dimensions WITHOUT_AGENT.

The series of a year by the hour at 100 million hits reads 0.25 million rows of `quarter`, but 4.9 million of
`agentQuarter`.
"""


def _by_dimension(name: str) -> Grouping:
    return Grouping(DIMENSION_VALUES[name], name)


def _by_key(expression: str) -> Grouping:
    """Return the grouping by columns that the rows of every dimension have."""
    return Grouping(expression, "total", expression)


BREAKDOWNS = {
    "agent": _by_key("agent"),
    "operator": _by_key("operator"),
    "purpose": _by_key("purpose"),
    "verification": _by_key(VERIFICATION),
    "referrerHost": _by_dimension("referrerHost"),
    "utmSource": _by_dimension("utmSource"),
    "browser": _by_dimension("browser"),
    "os": _by_dimension("os"),
    "device": _by_dimension("device"),
    "format": _by_dimension("format"),
    "status": _by_dimension("status"),
    "source": _by_key("source"),
    "rule": _by_dimension("rule"),
    "path": Grouping("path"),
}
"""Groupings of breakdowns, by the name that the API has for them."""


def _by_time(unit_s: int, dimension: str | None = None, rollup: str = "") -> Grouping:
    return Grouping(f"(epoch_us(ts) - ({ORIGIN_S * 1_000_000})) // {unit_s * 1_000_000}", dimension, rollup)


_DAYS = "(date - DATE '0001-01-01')"
TIME_UNITS = {
    DAY_S: _by_time(DAY_S, "total", _DAYS),
    QUARTER_S: _by_time(QUARTER_S, "quarter", f"{_DAYS} * {DAY_S // QUARTER_S} + value::BIGINT"),
    1: _by_time(1),
}
"""Groupings by units of time, which are numbered from ORIGIN_S, by the length of the unit in seconds."""
SOURCE_DAYS = Grouping(
    f"{{'source': source, 'day': {TIME_UNITS[DAY_S].hits}}}", "total", f"{{'source': source, 'day': {_DAYS}}}"
)
"""Grouping by source and UTC day, of which the first is that of ORIGIN_S."""
