"""Ticks of an axis are round, few and reach the maximum."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.dashboard.charts.scale import STEPS_MAX, ticks


@pytest.mark.parametrize(
    ("maximum", "expected"),
    [
        (0, (0, 1)),
        (1, (0, 1)),
        (2, (0, 1, 2)),
        (4, (0, 1, 2, 3, 4)),
        (5, (0, 2, 4, 6)),
        (9, (0, 5, 10)),
        (117, (0, 50, 100, 150)),
        (801, (0, 500, 1_000)),
        (10**18, (0, 5 * 10**17, 10**18)),
    ],
)
def test_ticks(maximum: int, expected: tuple[int, ...]) -> None:
    assert ticks(maximum) == expected


@given(st.integers(0, 2**63))
def test_ticks_begin_at_zero_reach_the_maximum_and_are_evenly_spaced(maximum: int) -> None:
    values = ticks(maximum)
    assert values[0] == 0
    assert values[-2] < max(maximum, 1) <= values[-1]
    assert len({after - before for before, after in itertools.pairwise(values)}) == 1
    assert 2 <= len(values) <= STEPS_MAX + 1
