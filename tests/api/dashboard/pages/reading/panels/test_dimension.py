"""Cards by a dimension, from reports that are lists."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from api.dashboard.charts import bar
from api.dashboard.pages.reading.measured import FILTERED, NOT_COUNTED, NOT_SET_UP, Measured
from api.dashboard.pages.reading.panels import dimension
from api.dashboard.pages.reading.panels.dimension import DIMENSIONS
from api.dashboard.pages.reading.tables import ROWS, Row
from tests.api.dashboard.pages.reading.panels.listed import BEFORE, EVERYTHING, NOW, Listed, View, counted
from warehouse.columns.filters import Filters
from warehouse.errors import TooManyViews
from warehouse.report.results import Counts


def by_dimension(view: View, name: str, measured: Measured = EVERYTHING) -> dimension.Table:
    return dimension.by_dimension(view, name, measured)  # type: ignore[arg-type]


def names(rows: list[Row]) -> list[str]:
    return [row.name for row in rows]


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
    assert dimension.query(view, DIMENSIONS["browsers"]).filters["traffic"] == "bot"  # type: ignore[arg-type]
    assert dimension.query(View(NOW), DIMENSIONS["browsers"]).filters["traffic"] == "human"  # type: ignore[arg-type]
    assert dimension.query(View(NOW), DIMENSIONS["sources"]).filters["traffic"] is None  # type: ignore[arg-type]


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
    assert wide == bar.svg(Counts(1, 2, 3), 15)
    assert narrow == bar.svg(Counts(9, 1, 5), 15)


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
