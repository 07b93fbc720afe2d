"""A breakdown has each value once, in an order without ties."""

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounds import rounds
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import ROWS, SCOPES
from tests.warehouse.site import Row, view
from warehouse.columns.dimensions import BREAKDOWNS
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report import breakdown
from warehouse.report.cells import Scope, count_rows

EVERYTHING = Scope("site", TimeRange(FIRST, LAST), Filters())


def ranked(database: duckdb.DuckDBPyConnection, rows: list[Row], scope: Scope, by: str) -> list[tuple[object, ...]]:
    counts = count_rows(database, reference.hot(rows), scope, BREAKDOWNS[by])
    return [tuple(row.values()) for row in breakdown.rank(counts).to_pylist()]


def test_most_views_are_first_then_values_in_byte_order_then_unknown(database: duckdb.DuckDBPyConnection) -> None:
    hosts = ["b", "é", "Z", "\uffff", "\U0001f600", "", None, "a", "a"]
    rows = [view(referrer_host=host) for host in hosts]
    expected = ["a", "", "Z", "b", "é", "\uffff", "\U0001f600", None]
    assert [row[0] for row in ranked(database, rows, EVERYTHING, "referrerHost")] == expected


def test_value_of_bots_alone_is_last_with_a_total_of_zero(database: duckdb.DuckDBPyConnection) -> None:
    rows = [view(agent="A", traffic="bot"), view(agent="A", traffic="bot"), view(agent="B", traffic="ai")]
    assert ranked(database, rows, EVERYTHING, "agent") == [("B", 0, 1, 0, 1), ("A", 0, 0, 2, 0)]


@settings(max_examples=rounds(100))
@given(st.lists(ROWS, max_size=20), SCOPES, st.sampled_from(list(BREAKDOWNS)))
def test_breakdown_is_that_of_the_reference(
    database: duckdb.DuckDBPyConnection, rows: list[Row], scope: Scope, by: str
) -> None:
    assert ranked(database, rows, scope, by) == reference.breakdown(rows, scope, by)
