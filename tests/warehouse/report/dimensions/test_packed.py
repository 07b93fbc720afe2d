"""Packed rows of a month are those that were packed."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.report.dimensions.packed import CELLS, LARGE_VIEWS, PackedDimension, pack
from warehouse.report.dimensions.rows import COLUMNS, DimensionRows

from warehouse.columns.sources import DIMENSION_KEY, DIMENSIONS, DIMENSIONS_ORDER

NAMES = ("browser", "os", "status", "total")
DAYS = [f"2026-09-{day:02}" for day in range(1, 31)]
DAY_BEFORE_THE_MONTH = date(2026, 8, 31).toordinal() - 1
"""Number of days from the first day of the year 1 to 2026-08-31."""
Row = tuple[str, int, tuple[str | None, ...], int]
"""Dimension, day of the month, value and key, and views."""
CELL = st.tuples(
    st.sampled_from(["browser", "os", "total"]),
    st.integers(1, 30),
    st.tuples(
        st.sampled_from([None, "", "é", "Firefox"]),
        st.sampled_from(["beacon", "log"]),
        st.sampled_from(["human", "ai"]),
        *(st.sampled_from([None, "b", "a"]) for _ in DIMENSION_KEY[2:]),
    ),
)
VIEWS = st.integers(1, 3) | st.sampled_from([LARGE_VIEWS - 1, LARGE_VIEWS, LARGE_VIEWS + 1, 1 << 31])


def table(rows: list[Row]) -> pa.Table:
    """Return rows in the order of the file of a rollup, without the project."""
    columns = {
        "dimension": [dimension for dimension, *_ in rows],
        "day": [day for _, day, _, _ in rows],
        **{name: [key[index] for _, _, key, _ in rows] for index, name in enumerate(COLUMNS)},
        "views": [views for *_, views in rows],
    }
    fields = [DIMENSIONS.field(name) for name in columns]
    return pa.table(columns, pa.schema(fields)).sort_by([(name, "ascending") for name in DIMENSIONS_ORDER[1:]])


def unpacked(dimension: str, rows: DimensionRows) -> list[Row]:
    columns = [rows.keys[name].at(rows.keys[name].codes).to_pylist() for name in COLUMNS]
    return [
        (dimension, rows.first_day + int(day) - DAY_BEFORE_THE_MONTH, tuple(each[key] for each in columns), int(views))
        for key, day, views in zip(rows.key_ids, rows.days, rows.views, strict=True)
    ]


@settings(max_examples=50)
@given(
    st.dictionaries(CELL, VIEWS, max_size=30),
    st.lists(st.sampled_from(DAYS), min_size=1, unique=True).map(sorted) | st.just(DAYS),
    st.sampled_from([1, CELLS]),
)
def test_unpacked_rows_of_some_days_are_those_that_were_packed(
    cells: dict[tuple[str, int, tuple[str | None, ...]], int], days: list[str], cells_at_once: int
) -> None:
    rows = [(*cell, views) for cell, views in cells.items()]
    month = pack(table(rows), "2026-09", NAMES, cells_at_once)
    unpacked_rows = [row for name in NAMES for row in unpacked(name, PackedDimension(month, name).on(days))]
    assert sorted(unpacked_rows, key=str) == sorted((row for row in rows if DAYS[row[1] - 1] in days), key=str)


def test_rows_of_each_range_of_days_have_the_views_of_these_days() -> None:
    key = ("log", "human", None, None, None, None)
    rows: list[Row] = [(name, day, (None, *key), day * LARGE_VIEWS // 20) for name in NAMES for day in range(2, 31)]
    month = pack(table(rows), "2026-09", NAMES)
    for first, end in ((0, 30), (1, 3), (2, 9), (15, 16), (29, 30)):
        unpacked_rows = [
            row for name in NAMES for row in unpacked(name, PackedDimension(month, name).on(DAYS[first:end]))
        ]
        assert unpacked_rows == [row for row in rows if first < row[1] <= end]


@pytest.mark.parametrize(("views", "row_bytes"), [(1, 1.2), (1_000, 9.2)])
def test_row_takes_few_bytes(views: int, row_bytes: float) -> None:
    key = ("log", "human", None, None, None, None)
    rows: list[Row] = [("os", day, (str(os), *key), views) for day in range(1, 31) for os in range(1_000)]
    month = pack(table(rows), "2026-09", ["os"])
    used = sum(each.nbytes for each in (month.bits, month.views, month.large, month.large_views))
    assert used < row_bytes * len(rows)
    assert np.array_equal(month.views_of(slice(0, len(rows))), [views] * len(rows))
