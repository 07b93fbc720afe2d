"""Counts of the rows of a dimension are those of DuckDB over the same hits."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from warehouse.report.dimensions.count import count
from warehouse.report.dimensions.rows import of_hits
from warehouse.report.grouping import BREAKDOWNS, SOURCE_DAYS, TIME_UNITS, Grouping

from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import FILTERS, ROWS
from tests.warehouse.site import NOON, Row, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods, Policy
from warehouse.query.time_range import TimeRange
from warehouse.report.audience.agents import AGENT_DAYS
from warehouse.report.cells import Scope, count_rows

GROUPINGS = [
    each for each in (*BREAKDOWNS.values(), *TIME_UNITS.values(), SOURCE_DAYS, AGENT_DAYS) if each.dimension is not None
]
POLICIES: list[Periods] = [
    (Period(date.min, "beacon_people_log_machines"),),
    (Period(date(2026, 9, 1), "beacon_only"), Period(date(2026, 9, 15), "log_only"), Period(date(2026, 9, 16), "all")),
    (Period(date(2026, 9, 15), "beacon_people_log_machines"),),
]
Counted = list[tuple[str, int, int, int]]
"""Text of each value, and its views by people, AI and bots."""


def counted(rows: Sequence[Row], filters: Filters, grouping: Grouping, sign: int = 1) -> Counted:
    """Return the counts of the rows of a dimension."""
    hits = reference.hot([row for row in rows if row["project_id"] == "site"])
    dimension = grouping.dimension_for(filters)
    assert dimension is not None
    return texts(count(of_hits(hits, dimension), filters, grouping.columns, sign).to_pylist())


def texts(rows: Sequence[Row]) -> Counted:
    return sorted((str(row["value"]), row["human"], row["ai"], row["bot"]) for row in rows)


@given(
    st.lists(ROWS.filter(lambda row: abs(row["ts"] - NOON).days < 100), max_size=20),
    FILTERS.filter(lambda filters: filters.path is None),
    st.sampled_from([(), *POLICIES]),
    st.sampled_from(GROUPINGS),
)
def test_counts_are_those_of_sql(
    database: duckdb.DuckDBPyConnection, rows: list[Row], filters: Filters, policy: Periods, grouping: Grouping
) -> None:
    filters = replace(filters, policy=policy)
    expected = count_rows(database, reference.hot(rows), Scope("site", TimeRange(), filters), grouping)
    assert counted(rows, filters, grouping) == texts(expected.to_pylist())


def test_subtracted_hits_have_negative_counts() -> None:
    rows = [view(source="log"), view(source="log", traffic="bot"), view(source="beacon", traffic="ai")]
    assert counted(rows, Filters(), BREAKDOWNS["source"], -1) == [("beacon", 0, -1, 0), ("log", -1, 0, -1)]


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_filter_by_a_value_that_no_hit_has_counts_nothing(grouping: Grouping) -> None:
    assert counted([view(), view(traffic="ai", agent="GPTBot")], Filters(agent="Another"), grouping) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("all", [("ai", 0, 2, 0), ("bot", 0, 0, 1), ("human", 4, 0, 0)]),
        ("beacon_only", [("ai", 0, 1, 0), ("human", 1, 0, 0)]),
        ("log_only", [("ai", 0, 1, 0), ("bot", 0, 0, 1), ("human", 3, 0, 0)]),
        ("beacon_people_log_machines", [("ai", 0, 1, 0), ("bot", 0, 0, 1), ("human", 2, 0, 0)]),
    ],
)
def test_policy_of_a_day_counts_its_sources(policy: Policy, expected: Counted) -> None:
    rows = [
        view(source="beacon"),
        view(source="log"),
        view(source="server", format="html"),
        view(source="log", format="text/markdown"),
        view(source="beacon", traffic="ai"),
        view(source="log", traffic="ai"),
        view(source="log", traffic="bot"),
    ]
    filters = Filters(policy=(Period(NOON.date(), policy), Period(NOON.date() + timedelta(days=1), "all")))
    assert counted(rows, filters, Grouping("traffic", "total", ("traffic",))) == expected
