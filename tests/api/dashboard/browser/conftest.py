"""One browser per module, and one service with sample data for the whole run."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.api.dashboard.browser import sample
from tests.api.dashboard.browser.sample import Sample
from tests.processes.chromium import NOT_AUTOMATED, launch
from tests.processes.running import Running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launch(playwright, NOT_AUTOMATED) as launched:
        yield launched


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    running = Running(tmp_path_factory.mktemp("browser") / "data", environ={"READERSHIP_JOBS_AT_ONCE": "0"})
    running.start()
    try:
        yield sample.create(running)
    finally:
        status = running.stop()
    assert status == 0
