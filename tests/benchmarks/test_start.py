"""The benchmark of the way of a newcomer, from an empty folder. That of `make run` would install the packages."""

from pathlib import Path

import pytest

from benchmarks import start

pytestmark = pytest.mark.night


def test_first_view_of_an_empty_folder_is_on_a_chart(tmp_path: Path) -> None:
    assert 0 < start.first_view(tmp_path / "run" / "data") < start.DEADLINE_S
