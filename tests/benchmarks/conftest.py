"""A small generated lake, shared by the tests of the benchmarks."""

from datetime import date

import pytest

from benchmarks import lake
from benchmarks.lake import Lake, Shape

SHAPE = Shape(hits=30_000, days=40, paths=300, projects=3, end=date(2026, 10, 5))


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    target = lake.generate(tmp_path_factory.mktemp("lakes") / "lake", SHAPE)
    lake.derive(target)
    return target
