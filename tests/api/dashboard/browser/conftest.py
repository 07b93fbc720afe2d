"""One browser per module, and one service with sample data for the whole run."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.api.dashboard.browser import sample
from tests.api.dashboard.browser.sample import Sample
from tests.api.dashboard.browser.visiting import CHROMIUM_ARGS
from tests.processes.running import Running
from tests.programs import find, require


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    require("chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=find("chromium"), args=CHROMIUM_ARGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    running = Running(tmp_path_factory.mktemp("browser") / "data", environ={"READERSHIP_JOBS_AT_ONCE": "0"})
    running.start()
    try:
        yield sample.create(running)
    finally:
        status = running.stop()
    assert status == 0
