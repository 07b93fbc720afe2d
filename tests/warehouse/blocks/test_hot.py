"""Distinct ids of hot rows are those of NumPy's `unique`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from warehouse.blocks.hot import _distinct


@given(st.lists(st.integers(0, 12), max_size=30))
def test_distinct_ids_are_sorted_and_have_the_places_of_all_ids(ids: list[int]) -> None:
    distinct, places = _distinct(np.array(ids, np.int64))
    assert distinct.tolist() == sorted(set(ids))
    assert distinct[places].tolist() == ids
