"""Fixtures of the tests of lost stores."""

from pathlib import Path

import pytest

from tests.promises.lost_stores import Folder, filled


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return filled(tmp_path_factory.mktemp("original"))


@pytest.fixture
def folder(original: Folder, tmp_path: Path) -> Folder:
    """Return a data folder with hits, of which a test may lose a store."""
    return original.copied(tmp_path)
