"""A view whose reports are lists, which a test writes by hand."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from api.dashboard.pages.reading.measured import Measured
from api.dashboard.web.period import Period
from tests.api.dashboard.pages.reading.measuring import day, measured, period
from warehouse.columns.filters import Filters
from warehouse.report.results import Counts, ReportPage

PERIOD = period(10, 20)
Listed = list[tuple[str | None, Counts]]
NOW: Listed = [("a", Counts(9, 1, 5)), (None, Counts(3, 4, 0)), ("b", Counts(1, 2, 3))]
BEFORE: Listed = [("b", Counts(20, 30, 40)), ("gone", Counts(1, 1, 1)), (None, Counts(5, 6, 7))]


def counted(
    *kinds: str, policy: Any = "all", shown: Period = PERIOD, silent: int | None = None, **first_days: int
) -> Measured:
    """Return the sources with these days of their first views. The log is silent from the day `silent` on."""
    return measured(
        *kinds,
        shown=shown,
        previous=period(5, 10),
        policies=(policy, policy),
        silent={"log": silent} if silent else {},
        selected=("beacon", "server", "log"),
        **{name: day(first) for name, first in first_days.items()},
    )


EVERYTHING = counted(beacon=1, log=1)


class View:
    """A view whose reports are lists. `queries` are the filters, the first row and the number of rows of each query."""

    def __init__(self, rows: Listed, before: Listed | None = None, **values: str) -> None:
        self.rows, self.before, self.values = rows, before, values
        self.period = PERIOD
        self.previous = period(5, 10) if before is not None else None
        self.filters, self.snapshot, self.reports = Filters(), None, self
        self.faults: list[str] = []
        self.queries: list[tuple[Filters, Any, int, int]] = []
        self.project = SimpleNamespace(origins=("https://own.example", "http://own.example:8000", "*"))

    def query(self, chosen: Period | None = None, **changes: Any) -> Any:
        return SimpleNamespace(period=chosen or self.period, filters=self.filters.but(**changes))

    def link(self, **changes: str | None) -> str:
        return str(changes)

    def page_number(self) -> int:
        return int(self.values.get("page", "1"))

    def breakdown(self, snapshot: None, query: Any, by: str, offset: int, limit: int) -> ReportPage:
        return self._page("value", query, by, offset, limit)

    def views(self, snapshot: None, query: Any, offset: int, limit: int, order: str = "total") -> ReportPage:
        return self._page("path", query, order, offset, limit)

    def views_of(self, snapshot: None, query: Any, paths: Sequence[str]) -> dict[str, Counts]:
        assert query.period is self.previous
        return {path: counts for path, counts in self.before or [] if path in paths}

    def _page(self, column: str, query: Any, how: str, offset: int, limit: int) -> ReportPage:
        self.queries.append((query.filters, how, offset, limit))
        listed = (self.before or []) if query.period is self.previous else self.rows
        rows = [
            {column: value, "human": each.human, "ai": each.ai, "bot": each.bot}
            for value, each in listed[offset:][:limit]
        ]
        schema = pa.schema([(column, pa.string()), *((name, pa.int64()) for name in ("human", "ai", "bot"))])
        totals = Counts(*(sum(getattr(each, kind) for _, each in listed) for kind in ("human", "ai", "bot")))
        return ReportPage(totals, pa.Table.from_pylist(rows, schema), len(listed) > offset + limit)
