"""How much of the tests a run has: the rounds of random kills or data, their seeds, and the part of the long tests.

$READERSHIP_TEST_ROUNDS is the share of the rounds that a run has: 1 at night, a twelfth elsewhere.
$READERSHIP_TEST_SEED changes all random numbers, also of Hypothesis; without it each run has the same ones.
$READERSHIP_TEST_PART divides the long tests, so that `.ci/run` ends soon. With `2/5`, a run has part 2 of the parts 0
to 4. The hash of its name decides in which part a test is; tests in the folders of EVERY_RUN are in all parts. Without
the variable, a run has all tests.
"""

import math
import os
from collections.abc import Iterable
from fractions import Fraction
from random import Random
from typing import TypeVar
from zlib import crc32

import pytest

Case = TypeVar("Case")
SEED = int(os.environ.get("READERSHIP_TEST_SEED", "0"))
EVERY_RUN = (
    "tests/promises/", "tests/nodes/", "tests/service/", "tests/simulation/", "tests/agent/service/",
    "tests/warehouse/consistency/",
)  # fmt: skip
"""Folders of the tests of promises, of several nodes and of the running service."""
DIVIDED = "tests/service/test_schemathesis.py"
"""A file in a folder of EVERY_RUN that is divided nevertheless: its tests take four minutes."""
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


def is_in(part: str, test: str) -> bool:
    """Return whether a long test is in a part. The name is pytest's: `tests/test_wheel.py::test_the_demo_runs`."""
    number, parts = map(int, part.split("/"))
    if not 0 <= number < parts:
        raise ValueError(f"READERSHIP_TEST_PART: expected a number from 0 to {parts - 1} before the slash, got {part}")
    if test.startswith(EVERY_RUN) and not test.startswith(DIVIDED):
        return True
    return crc32(test.encode()) % parts == number


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = os.environ.get("READERSHIP_TEST_PART")
    if not part:
        return
    left_out = {item for item in items if item.get_closest_marker("long") and not is_in(part, item.nodeid)}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
