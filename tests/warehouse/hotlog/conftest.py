"""A new hot log for each test, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection, HotLogPlace


@pytest.fixture
def hot(hot_log: HotLogPlace) -> Iterator[HotConnection]:
    with closing(batches.connect(hot_log)) as connection:
        yield connection
