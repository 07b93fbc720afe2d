"""Both definitions of the daily count, in SQL and in Arrow, count as a Counter does."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse.site import DAY, NOON, Row, key, view
from warehouse import daily_count
from warehouse.schema import DAILY_VIEWS, DAILY_VIEWS_ORDER, HOT

LAST_MICROSECOND = datetime(2026, 8, 31, 23, 59, 59, 999_999, tzinfo=UTC)
rows_of_any_key = st.builds(
    view,
    path=st.sampled_from(["/", "/a", "/a%2Fb", "/a'b"]),
    ts=st.sampled_from([NOON, NOON + DAY, LAST_MICROSECOND, datetime(1, 1, 1, tzinfo=UTC)]),
    project_id=st.sampled_from(["site", "other"]),
    traffic=st.sampled_from(["human", "ai", "bot"]),
    agent=st.none() | st.sampled_from(["GPTBot", ""]),
)


def by_key(counts: pa.Table) -> Counter[tuple[Any, ...]]:
    """Return the views of each key. Assert that each month is that of its date."""
    rows = counts.to_pylist()
    assert all(row["month"] == row["date"].isoformat()[:7] for row in rows)
    views = Counter({(r["project_id"], r["date"], r["path"], r["traffic"], r["agent"]): r["views"] for r in rows})
    assert len(views) == len(rows)
    return views


def run(sql: str, **tables: pa.Table) -> pa.Table:
    """Return the result of a query over registered tables, in the schema of `daily_views`."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql).to_arrow_table().cast(DAILY_VIEWS)


def encoded(hits: pa.Table) -> pa.Table:
    """Return the counts of two chunks of rows whose dictionaries differ."""
    chunks = [hits.slice(0, 2), hits.slice(2)]
    texts = [index for index, field in enumerate(HOT) if field.type == pa.string()]
    for index in texts:
        chunks = [each.set_column(index, HOT.names[index], each.column(index).dictionary_encode()) for each in chunks]
    counts = daily_count.count_encoded(pa.concat_tables(chunks))
    assert all(pa.types.is_dictionary(counts[name].type) for name in ("month", "path", "agent"))
    return counts.cast(DAILY_VIEWS)


def in_sql(hits: pa.Table) -> pa.Table:
    dated = hits.append_column("date", hits["ts"].cast(pa.date32()))
    return run(daily_count.count_sql("dated"), dated=dated)


@pytest.mark.long
@pytest.mark.parametrize("count", [daily_count.count, encoded, in_sql], ids=["Arrow", "encoded", "SQL"])
@settings(max_examples=30)
@given(rows=st.lists(rows_of_any_key))
def test_each_key_has_the_number_of_its_hits(count: Any, rows: list[Row]) -> None:
    assert by_key(count(pa.Table.from_pylist(rows, HOT))) == Counter(map(key, rows))


def test_counts_of_rows_in_memory_are_in_the_order_of_a_file() -> None:
    rows = [view(path, NOON - days * DAY, project_id=id) for path in "ba" for days in (0, 1) for id in ("z", "b")]
    counts = daily_count.count(pa.Table.from_pylist(rows, HOT))
    places = [tuple(row[name] for name in DAILY_VIEWS_ORDER) for row in counts.to_pylist()]
    assert len(places) == 8
    assert places == sorted(places)


def test_counts_of_rows_in_memory_are_sorted_by_month_first() -> None:
    rows = [view(path, NOON - days * DAY) for path in "ab" for days in (0, 40)]
    counts = daily_count.count(pa.Table.from_pylist(rows, HOT)).to_pylist()
    assert [(row["month"], row["path"]) for row in counts] == [
        (month, path) for month in ("2026-08", "2026-09") for path in "ab"
    ]


def test_partial_counts_of_one_key_add_up() -> None:
    whole = daily_count.count(pa.Table.from_pylist([view(), view(), view("/b", agent="x")], HOT))
    part = daily_count.count(pa.Table.from_pylist([view()], HOT))
    added = run(daily_count.add_up_sql("counts"), counts=pa.concat_tables([whole, part]))
    assert by_key(added) == {key(view()): 3, key(view("/b", agent="x")): 1}


ROWS = [("human", 200), ("bot", 404), ("ai", 599), ("human", 404), ("ai", None), ("bot", 399)]


@pytest.mark.parametrize(
    "order", [(0, 1, 2, 3, 4, 5), (3, 0, 4, 5, 2, 1), (1, 2, 0, 3, 4, 5), (0, 3, 4, 5), (2, 1), ()]
)
def test_page_views_and_errors_are_divided_in_any_order_of_the_rows(order: tuple[int, ...]) -> None:
    rows = [{"traffic": ROWS[place][0], "status": ROWS[place][1]} for place in order]
    table = pa.Table.from_pylist(rows, pa.schema({"traffic": pa.string(), "status": pa.int16()}))
    views, errors = daily_count.split(table)
    assert views.to_pylist() == [rows[number] for number, place in enumerate(order) if place not in {1, 2}]
    assert errors.to_pylist() == [rows[number] for number, place in enumerate(order) if place in {1, 2}]
