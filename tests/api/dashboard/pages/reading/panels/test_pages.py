"""The pages with most views, from reports that are lists."""

from api.dashboard.pages.reading.panels import pages
from api.dashboard.pages.reading.panels.pages import PAGE_ROWS
from tests.api.dashboard.pages.reading.panels.listed import EVERYTHING, Listed, View, counted
from warehouse.columns.filters import Filters
from warehouse.report.results import Counts


def test_page_of_the_table_of_pages_has_its_rows_and_no_bots() -> None:
    listed: Listed = [(f"/{number}", Counts(40 - number, 1, 9)) for number in range(PAGE_ROWS + 3)]
    view = View(listed, sort="people", page="2")
    table = pages.paths(view, EVERYTHING)  # type: ignore[arg-type]
    assert view.queries == [(Filters(), "human", PAGE_ROWS, PAGE_ROWS)]
    assert [row.value for row in table.rows] == ["/10", "/11", "/12"]
    assert table.rows[0].name == "/<wbr>10"
    assert (table.sort, table.number, table.first, table.has_more) == ("people", 2, PAGE_ROWS + 1, False)
    assert table.rows[0].counts == Counts(30, 1, 0)
    assert table.rows[0].link == "{'path': '/10'}"
    assert {row.before for row in table.rows} == {None}


def test_path_has_the_people_and_ai_that_read_it_before() -> None:
    view = View([("/b", Counts(1, 0, 0)), ("/new", Counts(1, 0, 0))], [("/b", Counts(20, 30, 40))])
    table = pages.paths(view, EVERYTHING)  # type: ignore[arg-type]
    assert [row.before for row in table.rows] == [50, 0]
    later = pages.paths(view, counted(beacon=1, log=6))  # type: ignore[arg-type]
    assert [row.before for row in later.rows] == [None, None]
    silent = pages.paths(view, counted(beacon=1, log=1, silent=9))  # type: ignore[arg-type]
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
        assert pages.order(view) == order  # type: ignore[arg-type]
        assert len(view.faults) == faults
