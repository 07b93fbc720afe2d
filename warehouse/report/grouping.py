"""Groupings of page views: what breakdowns and series count by, over `hits` and over the rows of rollups."""

from dataclasses import dataclass

from warehouse.query.edge_rows import NOT_AT_EDGES
from warehouse.report.dimensions import count
from warehouse.report.dimensions.rows import VALUE
from warehouse.report.filters import VERIFICATION, Filters
from warehouse.rollups.schema import AGENT_KEY_COLUMNS, DIMENSION_VALUES, QUARTER_S

DAY_S = 86_400
ORIGIN_S = -62_135_596_800
"""Start of the year 1, in seconds since 1970. Units of time are numbered from this instant: no number is negative."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Value by which page views are counted, as an SQL expression over the columns of `hits`.

    `columns` are the same value over the rows of one `dimension` in a rollup: see `dimensions.count`. A grouping
    without a dimension can only be counted from `hits`, and may be limited to the hits of an SQL condition.
    """

    hits: str
    dimension: str | None = None
    columns: tuple[str, ...] = (VALUE,)
    condition: str = "true"

    @property
    def needs_files(self) -> bool:
        """Return whether the value has a column that the rows of an edge do not have."""
        return any(name in self.hits for name in NOT_AT_EDGES)

    def dimension_for(self, filters: Filters) -> str | None:
        """Return the dimension whose rows have the columns of the filters, or None if only `hits` has them."""
        if self.dimension is None:
            return None
        return (
            BY_AGENT.get(self.dimension, self.dimension)
            if filters.fields.keys() & AGENT_KEY_COLUMNS
            else self.dimension
        )


BY_AGENT = {"quarter": "agentQuarter"}
"""Dimensions with the same values and AGENT_KEY_COLUMNS, by the dimensions WITHOUT_AGENT.

The series of a year by the hour at 100 million hits reads 0.25 million rows of `quarter`, but 4.9 million of
`agentQuarter`.
"""


def _by_dimension(name: str) -> Grouping:
    return Grouping(DIMENSION_VALUES[name], name)


def _by_key(column: str, expression: str | None = None) -> Grouping:
    """Return the grouping by a column that the rows of every dimension have."""
    return Grouping(expression or column, "total", (column,))


BREAKDOWNS = {
    "agent": _by_key("agent"),
    "operator": _by_key("operator"),
    "purpose": _by_key("purpose"),
    "verification": _by_key(count.VERIFICATION, VERIFICATION),
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


def _by_time(unit_s: int, dimension: str | None = None, *columns: str) -> Grouping:
    return Grouping(f"(epoch_us(ts) - ({ORIGIN_S * 1_000_000})) // {unit_s * 1_000_000}", dimension, columns)


TIME_UNITS = {
    DAY_S: _by_time(DAY_S, "total", count.DAY),
    QUARTER_S: _by_time(QUARTER_S, "quarter", count.QUARTER),
    1: _by_time(1),
}
"""Groupings by units of time, which are numbered from ORIGIN_S, by the length of the unit in seconds."""
SOURCE_DAYS = Grouping(f"{{'source': source, 'day': {TIME_UNITS[DAY_S].hits}}}", "total", ("source", count.DAY))
"""Grouping by source and UTC day. Days are numbered from ORIGIN_S."""
