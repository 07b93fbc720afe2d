"""The tables of the overview, from pages of reports that are written here by hand."""

from collections.abc import Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from api.dashboard.pages.reading import tables
from api.dashboard.pages.reading.measured import FILTERED, NOT_COUNTED, NOT_SET_UP, Measured, Shown
from api.dashboard.pages.reading.tables import DIMENSIONS, PAGE_ROWS, ROWS, Row
from api.dashboard.web.period import Period
from tests.api.dashboard.pages.reading.measuring import NOW as NOW_DAY
from tests.api.dashboard.pages.reading.measuring import day, measured, period
from warehouse.columns.filters import Filters
from warehouse.errors import TooManyViews
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


def by_dimension(view: View, name: str, measured: Measured = EVERYTHING) -> tables.Table:
    return tables.by_dimension(view, name, measured)  # type: ignore[arg-type]


def names(rows: list[Row]) -> list[str]:
    return [row.name for row in rows]


def test_page_of_the_table_of_pages_has_its_rows_and_no_bots() -> None:
    listed: Listed = [(f"/{number}", Counts(40 - number, 1, 9)) for number in range(PAGE_ROWS + 3)]
    view = View(listed, sort="people", page="2")
    table = tables.paths(view, EVERYTHING)  # type: ignore[arg-type]
    assert view.queries == [(Filters(), "human", PAGE_ROWS, PAGE_ROWS)]
    assert [row.value for row in table.rows] == ["/10", "/11", "/12"]
    assert table.rows[0].name == "/<wbr>10"
    assert (table.sort, table.number, table.first, table.has_more) == ("people", 2, PAGE_ROWS + 1, False)
    assert table.rows[0].counts == Counts(30, 1, 0)
    assert table.rows[0].link == "{'path': '/10'}"
    assert {row.before for row in table.rows} == {None}


def test_path_has_the_people_and_ai_that_read_it_before() -> None:
    view = View([("/b", Counts(1, 0, 0)), ("/new", Counts(1, 0, 0))], [("/b", Counts(20, 30, 40))])
    table = tables.paths(view, EVERYTHING)  # type: ignore[arg-type]
    assert [row.before for row in table.rows] == [50, 0]
    later = tables.paths(view, counted(beacon=1, log=6))  # type: ignore[arg-type]
    assert [row.before for row in later.rows] == [None, None]
    silent = tables.paths(view, counted(beacon=1, log=1, silent=9))  # type: ignore[arg-type]
    assert [row.before for row in silent.rows] == [20, 0]


def test_unknown_order_is_a_fault() -> None:
    for sort, order, faults in (
        ({}, "views", 0),
        ({"sort": "ai"}, "ai", 0),
        ({"sort": "path"}, "path", 0),
        ({"sort": "total"}, "views", 1),
        ({"sort": ""}, "views", 1),
    ):
        view = View([], **sort)
        assert tables.order(view) == order  # type: ignore[arg-type]
        assert len(view.faults) == faults


def test_dimension_has_its_readers_names_and_links() -> None:
    view = View([("training", Counts(0, 9, 0)), (None, Counts(0, 3, 0)), ("x", Counts(0, 1, 0))])
    table = by_dimension(view, "purposes")
    assert view.queries == [(Filters(traffic="ai"), "purpose", 0, ROWS)]
    assert names(table.rows) == ["Training", "Unknown", "x"]
    assert [row.link for row in table.rows] == ["{'purpose': 'training'}", None, "{'purpose': 'x'}"]
    assert (table.kind, table.reason, table.has_more, table.hides_rows) == ("ai", None, False, False)
    links = [row.link for row in by_dimension(View(NOW), "browsers").rows]
    assert links == ["{'browser': 'a'}", None, "{'browser': 'b'}"]


def test_filter_by_readers_replaces_those_of_the_table() -> None:
    view = View(NOW)
    view.filters = Filters(traffic="bot")
    assert tables.query(view, DIMENSIONS["browsers"]).filters["traffic"] == "bot"  # type: ignore[arg-type]
    assert tables.query(View(NOW), DIMENSIONS["browsers"]).filters["traffic"] == "human"  # type: ignore[arg-type]
    assert tables.query(View(NOW), DIMENSIONS["sources"]).filters["traffic"] is None  # type: ignore[arg-type]


def test_own_hosts_and_views_without_a_campaign_are_left_out() -> None:
    others: Listed = [(f"{number}.example", Counts(1)) for number in range(ROWS)]
    view = View([("own.example", Counts(9)), (None, Counts(5)), *others])
    table = by_dimension(view, "referrers")
    assert view.queries[0][3] == ROWS + 1
    assert names(table.rows) == ["Direct or unknown", *(f"{number}.example" for number in range(ROWS - 1))]
    assert (table.has_more, table.hides_rows) == (True, True)
    campaigns = by_dimension(View([(None, Counts(9)), ("mail", Counts(2))]), "campaigns")
    assert (names(campaigns.rows), campaigns.has_more, campaigns.hides_rows) == (["mail"], False, True)
    whole = by_dimension(View(others), "referrers")
    assert (len(whole.rows), whole.has_more, whole.hides_rows) == (ROWS, False, False)


def test_longest_bar_is_that_of_the_most_views() -> None:
    wide, narrow, _ = (row.bar for row in by_dimension(View([NOW[2], NOW[0], NOW[1]]), "sources").rows)
    assert wide == tables.bar.svg(Counts(1, 2, 3), 15)
    assert narrow == tables.bar.svg(Counts(9, 1, 5), 15)


def test_table_without_a_count_has_a_reason() -> None:
    for known, rows, reason in (
        (counted("human", log=1), NOW, FILTERED),
        (counted(beacon=1), [], NOT_SET_UP),
        (counted(beacon=1), NOW, None),  # an agent that runs the script
        (counted(log=1), [], None),
        (counted(log=1, silent=10), [], NOT_COUNTED),
    ):
        table = by_dimension(View(rows), "agents", known)
        assert (table.reason, len(table.rows)) == (reason, 0 if reason else len(rows))


def test_value_has_the_views_of_its_readers_in_the_previous_period() -> None:
    view = View(NOW, BEFORE)
    assert {row.name: row.before for row in by_dimension(view, "agents").rows} == {"a": 0, "Unknown": 6, "b": 30}
    assert {filters["traffic"] for filters, *_ in view.queries} == {"ai"}
    assert {row.name: row.before for row in by_dimension(view, "systems").rows} == {"a": 0, "Unknown": 5, "b": 20}
    later = by_dimension(view, "agents", counted(beacon=1, log=6))
    assert {row.before for row in later.rows} == {None}


def test_rows_have_no_change_if_the_previous_period_has_too_many_views() -> None:
    class Many(View):
        def run(self) -> Any:
            return SimpleNamespace(visitors_known=EVERYTHING.known)

        def visitor_counts(self, snapshot: None, query: Any, by: str) -> pa.Table:
            if query.period is self.previous:
                raise TooManyViews(2, 1, ())
            return pa.table({by: ["/a"], "visits": [3]})

    (row,) = by_dimension(Many([], []), "entry").rows
    assert (row.value, row.counts.human, row.before) == ("/a", 3, None)


SOURCES: Listed = [("beacon", Counts(7, 2, 0)), ("log", Counts(1, 0, 3))]


def sources(view: View, measured: Measured) -> dict[str, tuple[Shown, int | None, datetime | None]]:
    rows = tables.sources(view, measured)  # type: ignore[arg-type]
    assert [row.link for row in rows] == [f"{{'source': '{name}'}}" for name in measured.selected]
    return {row.name: (row.shown, row.before, row.source and row.source.last_hit) for row in rows}


def test_source_has_no_number_of_readers_that_it_does_not_see() -> None:
    assert sources(View(SOURCES), counted(beacon=1, log=1)) == {
        "Website script": (Shown(7, 2, None), None, day(28)),  # an AI agent can run the script
        "Your server": (Shown(None, None, None), None, None),
        "Access logs": (Shown(1, 0, 3), None, day(28)),
    }
    by_policy = counted(beacon=1, log=1, policy="beacon_people_log_machines")
    assert sources(View([("beacon", Counts())]), by_policy)["Access logs"][0] == Shown(None, 0, None)


def test_source_that_begins_after_the_period_has_no_number() -> None:
    shown = sources(View([]), counted(beacon=20, log=19))
    assert (shown["Website script"][0], shown["Access logs"][0]) == (Shown(None, None, None), Shown(0, 0, None))


def test_source_that_fell_silent_before_the_period_has_no_number() -> None:
    shown = sources(View([], []), counted(log=1, silent=10))
    assert shown["Access logs"] == (Shown(None, None, None), None, day(NOW_DAY))
    assert sources(View([]), counted(log=1, silent=11))["Access logs"][0] == Shown(0, 0, None)


def test_source_has_its_views_in_the_previous_period_if_it_began_before_that() -> None:
    before: Listed = [("beacon", Counts(20, 30, 40)), ("log", Counts(1, 2, 3))]
    shown = sources(View(SOURCES, before), counted(beacon=5, log=6))
    assert [before for _, before, _ in shown.values()] == [50, None, None]
    shown = sources(View(SOURCES, before[:1]), counted(beacon=5, log=5))
    assert [before for _, before, _ in shown.values()] == [50, None, 0]
