"""Differences of cumulated counts are exact, whatever their width."""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from warehouse.blocks.cumulative import CumulativeCounts

counts = st.sampled_from([0, 0, 0, 1, 2, 100, 255, 256, 65_535, 65_536, 2**32 - 1])


@settings(max_examples=200)
@given(
    arrays.arrays(np.uint32, st.tuples(st.integers(1, 6), st.integers(0, 12)), elements=counts),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
    st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_difference_is_the_sum_of_the_rows(
    rows: npt.NDArray[Any], bounds: tuple[int, int], ends: tuple[int, int]
) -> None:
    first, end = sorted(min(each, len(rows)) for each in bounds)
    columns = slice(*sorted(min(each, rows.shape[1]) for each in ends))
    expected = [sum(int(row[column]) for row in rows[first:end]) for column in range(columns.start, columns.stop)]
    assert CumulativeCounts.of(rows).between(first, end, columns, np.int64).tolist() == expected


@settings(max_examples=100)
@given(
    arrays.arrays(np.uint32, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=counts),
    st.lists(st.integers(0, 11), max_size=5),
)
def test_rows_of_columns_are_those_that_were_cumulated(rows: npt.NDArray[Any], columns: list[int]) -> None:
    chosen = np.array([column % rows.shape[1] for column in columns], np.int64)
    assert CumulativeCounts.of(rows).rows(chosen).tolist() == rows[:, chosen].tolist()


def test_few_large_counts_do_not_widen_the_others() -> None:
    rows = np.ones((12, 10_000), np.uint32)
    rows[:, 5_000] = 1_000_000
    cumulated = CumulativeCounts.of(rows)
    assert cumulated.small.dtype == np.uint8
    assert cumulated.nbytes < 135_000
    assert cumulated.between(2, 12, slice(4_999, 5_002), np.int64).tolist() == [10, 10_000_000, 10]
