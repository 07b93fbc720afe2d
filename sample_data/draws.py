"""Random draws that are the same in each release of Python.

They use `Random.random` only, the one method whose sequence Python promises to keep:
https://docs.python.org/3/library/random.html#notes-on-reproducibility
"""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import TypeVar

T = TypeVar("T")


def draw(rng: Random, rows: Sequence[T], weights: Sequence[int]) -> T:
    """Return a random row. A row with twice the weight is drawn twice as often."""
    return rows[bisect(list(accumulate(weights)), below(rng, sum(weights)))]


def one_of(rng: Random, rows: Sequence[T]) -> T:
    """Return a random row."""
    return rows[below(rng, len(rows))]


def below(rng: Random, bound: int) -> int:
    """Return a random whole number from 0 to `bound` - 1."""
    return int(rng.random() * bound)


def about(rng: Random, mean: float) -> int:
    """Return one of the two whole numbers next to `mean`; their average is `mean`."""
    return int(mean + rng.random())
