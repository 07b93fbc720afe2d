"""One dashboard for the tests of a module; a test that changes something uses a project or user of its own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from starlette.testclient import TestClient

from api import settings
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.chromium import NOT_AUTOMATED, launch
from tests.processes.running import Running
from warehouse.control import database
from warehouse.database.pool import Pool


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("dashboard") / "data") as opened_dashboard:
        yield opened_dashboard


@pytest.fixture(scope="module")
def viewer(dashboard: Dashboard) -> TestClient:
    return dashboard.visitor("viewer")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launch(playwright, NOT_AUTOMATED) as launched:
        yield launched


@pytest.fixture(scope="module")
def engine(service: Running) -> Iterator[Pool]:
    """Yield the control database of the shared service."""
    engine = database.connect(settings.read({}, service.data).database_url)
    yield engine
    engine.close()
