"""A control database with one owner, Ada."""

from collections.abc import Iterator

import pytest

from api.accounts import passwords, users
from api.accounts.users import User
from warehouse.control import database
from warehouse.database.pool import Pool

NOW_S = 1_790_000_000
PASSWORD = "correct horse"


@pytest.fixture
def engine(database_url: str) -> Iterator[Pool]:
    """Yield an engine, on SQLite and on PostgreSQL in turn."""
    engine = database.connect(database_url)
    yield engine
    engine.close()


@pytest.fixture
def ada(engine: Pool) -> User:
    return users.create(engine, "Ada", "owner", passwords.hashed(PASSWORD), NOW_S)
