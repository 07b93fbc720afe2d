"""One dashboard for the tests of a module; a test that changes something uses a project or user of its own."""

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher
from playwright.sync_api import Browser, sync_playwright

from api import settings
from api.accounts import passwords
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.chromium import NOT_AUTOMATED, launch
from tests.processes.running import Running
from warehouse.control import database
from warehouse.database.pool import Pool


@pytest.fixture(scope="module", autouse=True)
def _quick_hashes() -> Iterator[None]:
    """Hash passwords with little memory. `test_passwords` uses the hashes of the service, which take 0.1 s each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=64))
        passwords._dummy_hash.cache_clear()
        yield
    passwords._dummy_hash.cache_clear()


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("dashboard") / "data") as opened_dashboard:
        yield opened_dashboard


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
