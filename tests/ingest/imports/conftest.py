"""Fixtures of the tests of imports."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warehouse.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = Site(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log that does not exist yet."""
    return tmp_path / "access.log"
