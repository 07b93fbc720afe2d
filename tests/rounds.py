"""Rounds of the tests with random kills or random data, and the seeds of their random numbers.

$READERSHIP_TEST_ROUNDS is the share of the rounds that a run has: 1 at night, a sixth elsewhere.
$READERSHIP_TEST_SEED changes all random numbers, also of Hypothesis; without it each run has the same ones.
"""

import math
import os
from fractions import Fraction
from random import Random

SEED = int(os.environ.get("READERSHIP_TEST_SEED", "0"))
_SHARE = Fraction(os.environ.get("READERSHIP_TEST_ROUNDS", "1/6"))


def rounds(number: int) -> int:
    """Return how many of `number` rounds a test runs here, at least one."""
    return max(1, math.ceil(number * _SHARE))


def seeded(seed: int) -> Random:
    """Return random numbers that are the same in each run with the same $READERSHIP_TEST_SEED."""
    return Random(seed + SEED)
