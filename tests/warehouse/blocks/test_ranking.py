"""The first columns of a partial sort are those of a full one."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.blocks import ranking

columns = st.lists(st.integers(0, 4), max_size=20)


@pytest.mark.long
@settings(max_examples=300)
@given(columns, columns, st.integers(0, 45), st.randoms(use_true_random=False))
def test_first_columns_are_those_of_a_full_sort(
    ordered: list[int], later: list[int], count: int, random: Random
) -> None:
    totals = np.array([*ordered, *later], np.uint32)
    places = list(range(totals.size))
    random.shuffle(places)
    positions = np.array(sorted(places[: len(ordered)]) + places[len(ordered) :], np.int64)
    expected = sorted(np.flatnonzero(totals), key=lambda column: (-int(totals[column]), positions[column]))[:count]
    chosen = ranking.candidates(totals, count, len(ordered))
    assert chosen[ranking.order(totals[chosen], positions[chosen])][:count].tolist() == expected


def test_equal_totals_of_sorted_columns_are_not_all_candidates() -> None:
    assert ranking.candidates(np.ones(1_000_000, np.uint32), 50, 1_000_000).size == 50
