"""A dashboard whose server works on no jobs: their turns are ended by the tests."""

from collections.abc import Iterator

import pytest

from tests.api.dashboard.pages.jobs.jobs import Jobs
from tests.api.dashboard.site import Dashboard, opened


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("jobs") / "data"
    with opened(folder, {"READERSHIP_JOBS_AT_ONCE": "0"}) as opened_dashboard:
        yield opened_dashboard


@pytest.fixture
def jobs(dashboard: Dashboard) -> Jobs:
    """Return the jobs of a new project, whose coding agent is a command."""
    return Jobs.create(dashboard)
