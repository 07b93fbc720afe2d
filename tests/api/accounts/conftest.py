"""A control database with one owner, Ada."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.accounts import passwords, users
from api.accounts.users import User
from tests.stores import postgresql as postgresql_server
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url

NOW_S = 1_790_000_000
PASSWORD = "correct horse"


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pool]:
    """Yield an engine, on SQLite and on PostgreSQL in turn."""
    url = sqlite_url(tmp_path / "control.sqlite")
    if request.param == "postgresql":
        folder = request.getfixturevalue("postgresql")
        url = postgresql_server.new_database(folder, postgresql_server.control_template(folder))
    engine = database.connect(url)
    yield engine
    engine.close()


@pytest.fixture
def ada(engine: Pool) -> User:
    return users.create(engine, "Ada", "owner", passwords.hashed(PASSWORD), NOW_S)
