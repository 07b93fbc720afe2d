"""Fixtures of the tests of warehouse."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.warehouse.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    site = Site(tmp_path / "data")
    yield site
    site.close()
