"""Daily views of a month add up to those of a plain count."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.blocks.months import MonthBlock, build

Row = tuple[int, int, int, int, int, int]
"""Day, path id, source, and the views of human, ai and bot."""
PATHS = 7
views = st.sampled_from([0, 0, 1, 2, 255, 256, 511, 70_000])
rows = st.dictionaries(
    st.tuples(st.integers(1, 31), st.integers(0, PATHS - 1), st.integers(0, 2)), st.tuples(views, views, views)
).map(lambda counted: [(*key, *counted[key]) for key in sorted(counted)])


def block_of(rows: list[Row], paths: int = PATHS) -> MonthBlock:
    days, ids, sources, *traffic = np.array(rows, np.int64).reshape(-1, 6).T
    return build(days, ids, sources, tuple(traffic), paths)


def expected(rows: list[Row], key: tuple[int, int], days: range) -> list[int]:
    source, traffic = key
    counted = Counter[int]()
    for row in rows:
        if row[0] in days and row[2] == source:
            counted[row[1]] += row[3 + traffic]
    return [counted[id] for id in range(PATHS)]


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@settings(max_examples=200)
@given(rows, st.integers(1, 32), st.integers(1, 32), st.integers(0, PATHS), st.integers(0, PATHS))
def test_views_of_any_days_and_paths_are_their_sum(
    dtype: type, rows: list[Row], day: int, other: int, id: int, another: int
) -> None:
    days, ids = range(*sorted((day, other))), slice(*sorted((id, another)))
    block = block_of(rows)
    for key in [(source, traffic) for source in range(3) for traffic in range(3)]:
        sums = np.zeros(ids.stop - ids.start, dtype)
        if key in block.views:
            block.views[key].add(sums, ids, days)
        assert sums.tolist() == expected(rows, key, days)[ids]


def test_month_of_few_views_stores_them_and_one_sum_of_each_path() -> None:
    views = block_of([(1, 3, 0, 5, 0, 0), (30, 4, 0, 6, 0, 0)], 1_000).views[0, 0]
    assert (views.spacing, views.cumulated.small.shape, views.ids.tolist()) == (31, (2, 1_000), [3, 4])


def test_month_in_which_each_path_has_views_daily_stores_no_cells() -> None:
    views = block_of([(day, id, 0, 1, 0, 0) for day in range(1, 32) for id in range(PATHS)]).views[0, 0]
    assert (views.spacing, views.ids.size) == (1, 0)


@pytest.mark.long
@settings(max_examples=200)
@given(rows, st.integers(0, PATHS), st.integers(0, PATHS))
def test_views_by_day_are_those_of_each_day(rows: list[Row], id: int, another: int) -> None:
    ids = slice(*sorted((id, another)))
    for key, views in block_of(rows).views.items():
        days = [sum(expected(rows, key, range(day, day + 1))[ids]) for day in range(1, 32)]
        assert views.by_day(ids).tolist() == days
