"""Rounds of the tests with random kills or random data, and the seeds of their random numbers.

$READERSHIP_TEST_ROUNDS is the share of the rounds that a run has: 1 at night, a twelfth elsewhere.
$READERSHIP_TEST_SEED changes all random numbers, also of Hypothesis; without it each run has the same ones.
"""

import math
import os
from collections.abc import Iterable
from fractions import Fraction
from random import Random
from typing import TypeVar

Case = TypeVar("Case")
SEED = int(os.environ.get("READERSHIP_TEST_SEED", "0"))
_SHARE = Fraction(os.environ.get("READERSHIP_TEST_ROUNDS", "1/12"))


def rounds(number: int) -> int:
    """Return how many of `number` rounds a test runs here, at least one."""
    return max(1, math.ceil(number * _SHARE))


def seeded(seed: int) -> Random:
    """Return random numbers that are the same in each run with the same $READERSHIP_TEST_SEED."""
    return Random(seed + SEED)


def some(chance: Random, cases: Iterable[Case], least: int = 1) -> list[Case]:
    """Return as many random cases as this run has rounds of all of them, or `least`."""
    every = list(cases)
    return chance.sample(every, min(len(every), max(least, rounds(len(every)))))
