"""A control database with one owner, Ada."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from api.dashboard.accounts import users
from api.dashboard.accounts.users import User
from warehouse.control import database

NOW_S = 1_790_000_000
PASSWORD = "correct horse"


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    """Yield an engine, on SQLite and on PostgreSQL in turn."""
    engine = database.connect(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def ada(engine: sa.Engine) -> User:
    return users.create(engine, "Ada", "owner", PASSWORD, NOW_S)
