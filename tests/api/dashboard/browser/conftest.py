"""One browser per module, and one service with sample data for the whole run."""

from collections.abc import Iterator

import pytest

from tests.api.dashboard.browser import sample
from tests.api.dashboard.browser.sample import Sample
from tests.processes.running import Running


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    running = Running(tmp_path_factory.mktemp("browser") / "data", environ={"READERSHIP_JOBS_AT_ONCE": "0"})
    running.start()
    try:
        yield sample.create(running)
    finally:
        status = running.stop()
    assert status == 0
