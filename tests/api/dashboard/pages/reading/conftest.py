"""One dashboard with the hits of `ai_traffic`, shared by the tests of a module."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.pages.reading.ai import ai_traffic
from tests.api.dashboard.pages.reading.overview import overview_page
from tests.api.dashboard.site import Dashboard, opened


@pytest.fixture(scope="module")
def read_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("reading") / "data") as dashboard:
        dashboard.post_hits(*map(ai_traffic.hit, range(ai_traffic.HITS)))
        yield dashboard


@pytest.fixture(scope="session")
def overview_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """Yield a dashboard with the hits of `overview_page` in its project; tests add others."""
    with opened(tmp_path_factory.mktemp("overview") / "data") as dashboard:
        dashboard.post_hits(*map(overview_page.hit, range(overview_page.HITS)))
        yield dashboard


@pytest.fixture(scope="module")
def reader(read_site: Dashboard) -> TestClient:
    """Return a client with a session of a viewer."""
    return read_site.visitor("viewer")
