"""One dashboard for the tests of a module; a test that changes something uses a project or user of its own."""

from collections.abc import Iterator

import pytest

from tests.api.dashboard.site import Dashboard, opened


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("dashboard") / "data") as opened_dashboard:
        yield opened_dashboard
