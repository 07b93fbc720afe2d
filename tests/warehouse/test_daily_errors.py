"""Rows of the hot log are divided into page views and errors."""

import pyarrow as pa
import pytest

from warehouse import daily_errors

ROWS = [("human", 200), ("bot", 404), ("ai", 599), ("human", 404), ("ai", None), ("bot", 399)]


@pytest.mark.parametrize(
    "order", [(0, 1, 2, 3, 4, 5), (3, 0, 4, 5, 2, 1), (1, 2, 0, 3, 4, 5), (0, 3, 4, 5), (2, 1), ()]
)
def test_page_views_and_errors_are_divided_in_any_order_of_the_rows(order: tuple[int, ...]) -> None:
    rows = [{"traffic": ROWS[place][0], "status": ROWS[place][1]} for place in order]
    table = pa.Table.from_pylist(rows, pa.schema({"traffic": pa.string(), "status": pa.int16()}))
    views, errors = daily_errors.split(table)
    assert views.to_pylist() == [rows[number] for number, place in enumerate(order) if place not in {1, 2}]
    assert errors.to_pylist() == [rows[number] for number, place in enumerate(order) if place in {1, 2}]
