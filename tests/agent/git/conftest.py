"""A new git server for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.servers.git_server import GitServer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serving(tmp_path / "server") as running:
        yield running
