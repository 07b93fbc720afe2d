"""Fixtures of the tests of warehouse."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from tests.warehouse.site import Site
from warehouse.report.reports import Reports


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterable[Site]:
    """Yield a new site, or one after the function `prepare` of the test's module.

    The function runs once per process. A load takes 40 ms of processor time, and a copy of the data folder 3 ms.
    """
    prepare, folder = getattr(request.module, "prepare", None), tmp_path / "data"
    with closing(Site.after(prepare, folder) if prepare else Site(folder)) as site:
        yield site


@pytest.fixture
def reports(site: Site) -> Iterable[Reports]:
    with closing(site.reports()) as reports:
        yield reports
