"""Data folders for the tests of the command line."""

from pathlib import Path

import pytest

from tests.api.cli.console import SAMPLE, Done, Imported
from tests.processes.running import PROJECT, new_key, readership


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder with the project `site`, without a service."""
    new_key(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    data = tmp_path_factory.mktemp("imported") / "data"
    key = new_key(data)
    done = readership("--data", str(data), "import", PROJECT, str(SAMPLE / "access.log"))
    return Imported(data, key, Done(done.returncode, done.stdout, done.stderr))
