"""Parameters of a report (project, time range and filters) and its result.

The condition of a filter is SQL over the columns of `hits`. It is also valid for hot rows, and, without a path, for the
dimensions of a rollup, because the columns have the same names there.
"""

import dataclasses
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.control import policy
from warehouse.control.policy import Periods
from warehouse.rollups.schema import AGENT_COLUMNS, TRAFFIC
from warehouse.schema import PathBounds

VERIFICATION = "coalesce(verification, CASE WHEN traffic <> 'human' THEN 'not_checked' END)"
"""SQL expression of the verification of a hit: `not_checked` for an AI agent or bot that was not checked."""
_LAST_CODE_POINT, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)
_COLUMNS = {"verification": f"({VERIFICATION})"}
"""SQL expressions of the filters that are not named after their column."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Values that a hit must have to be counted. None is any value.

    `path` is an exact path, or a prefix of paths with a `*` at its end. `policy` is the source policy of the project,
    by which every report counts.
    """

    path: str | None = None
    traffic: str | None = None
    agent: str | None = None
    operator: str | None = None
    purpose: str | None = None
    verification: str | None = None
    source: str | None = None
    policy: Periods = ()

    @property
    def fields(self) -> dict[str, str]:
        """Return the filters that have a value, by name."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "policy"}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def is_prefix(self) -> bool:
        """Return whether `path` is a prefix."""
        return self.path is not None and self.path.endswith("*")

    @property
    def by_hit(self) -> "Filters":
        """Return the filters by columns that blocks do not have: all but those by path, traffic and source."""
        return dataclasses.replace(self, path=None, traffic=None, source=None)

    @property
    def is_by_format(self) -> bool:
        """Return whether the source policy depends on the format of a hit."""
        return any(each.policy == policy.BY_FORMAT for each in self.policy)

    @property
    def needs_page_views(self) -> bool:
        """Return whether the rows of dimensions lack a column of these filters."""
        return self.path is not None or self.is_by_format

    @property
    def is_empty(self) -> bool:
        return not self.fields

    @property
    def path_bounds(self) -> PathBounds | None:
        """Return the range of the paths that can match; None without a path filter."""
        if self.path is None:
            return None
        if self.is_prefix:
            return self.path[:-1], _after_prefix(self.path[:-1])
        return self.path, self.path + "\0"

    @property
    def agents(self) -> dict[str, str]:
        """Return the filters by AGENT_COLUMNS that have a value, by name."""
        return {name: value for name, value in self.fields.items() if name in AGENT_COLUMNS}

    @property
    def selected_traffic(self) -> tuple[str, ...]:
        """Return the traffic that the filter by traffic matches."""
        return tuple(traffic for traffic in TRAFFIC if self.traffic in {None, traffic})

    def condition(self) -> tuple[str, dict[str, object]]:
        """Return the SQL condition of the filters and the values that it binds. It is `true` without any filter."""
        fields = self.fields
        path = fields.pop("path", None)
        conditions = [f"{_COLUMNS.get(name, name)} = $only_{name}" for name in fields]
        values: dict[str, object] = {f"only_{name}": value for name, value in fields.items()}
        if path is not None and not self.is_prefix:
            conditions.append("path = $only_path")
            values["only_path"] = path
        elif self.path_bounds is not None:
            # As a range, because DuckDB then reads only the row groups that can contain such a path.
            first, after = self.path_bounds
            conditions.append("path >= $first_path")
            values["first_path"] = first
            if after is not None:
                conditions.append("path < $after_path")
                values["after_path"] = after
        if self.policy:
            is_counted, days = policy.condition(self.policy)
            conditions.append(is_counted)
            values |= days
        return " AND ".join(conditions) or "true", values


@dataclass(frozen=True, slots=True)
class Query:
    """A request for counts of the hits of one project with start <= ts < end that match the filters.

    `end` is None for a range up to `now`. All times are timezone-aware and in UTC.
    """

    project: str
    start: datetime
    end: datetime | None
    filters: Filters
    now: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    """Page views of people, AI agents and other bots. `total` leaves out the bots."""

    human: int = 0
    ai: int = 0
    bot: int = 0

    @classmethod
    def of(cls, rows: pa.Table) -> "Counts":
        """Return the sums of the columns human, ai and bot."""
        return cls(*(pc.sum(rows[name]).as_py() or 0 for name in ("human", "ai", "bot")))

    @property
    def total(self) -> int:
        return self.human + self.ai


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a report, and the counts of all of its rows.

    `rows` has the column `path` or `value`, and human, ai, bot and total as int64. `has_more` is whether rows follow.
    """

    totals: Counts
    rows: pa.Table
    has_more: bool

    @classmethod
    def of(cls, totals: Counts, rows: pa.Table, offset: int, limit: int) -> "Page":
        """Return a page of all rows of a report."""
        shown = rows.slice(offset, limit) if offset < rows.num_rows else rows.slice(0, 0)
        return cls(totals, shown, offset + limit < rows.num_rows)


def _after_prefix(prefix: str) -> str | None:
    """Return the first text in byte order after all texts that start with `prefix`; None if there is no such text.

    The byte order of UTF-8 is the order of the code points.
    """
    stem = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
