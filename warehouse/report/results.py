"""Parameters of a report (project, time range and filters) and its result."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters

Order = Literal["total", "human", "ai", "bot", "path"]
"""Number by which paths are ordered, largest first, or `path`. Paths with equal numbers are in byte order."""
Audience = Literal["all", "ai_only", "people_only"]
"""Audience of the listed paths.

`ai_only` are the paths with a view by AI and none by people; `people_only` those with a view by people and none by AI.
"""


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths of a report and their order. `with_bots` includes the paths that only bots viewed."""

    order: Order = "total"
    audience: Audience = "all"
    with_bots: bool = False


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
class ReportPage:
    """Some rows of a report, and the counts of all of its rows.

    `rows` has the column `path` or `value`, and human, ai, bot and total as int64. `has_more` is whether rows follow.
    """

    totals: Counts
    rows: pa.Table
    has_more: bool

    @property
    def nbytes(self) -> int:
        return int(self.rows.get_total_buffer_size())

    @classmethod
    def of(cls, totals: Counts, rows: pa.Table, offset: int, limit: int) -> "ReportPage":
        """Return a page of all rows of a report."""
        shown = rows.slice(offset, limit) if offset < rows.num_rows else rows.slice(0, 0)
        return cls(totals, shown, offset + limit < rows.num_rows)
