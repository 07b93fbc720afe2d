"""A database for the queries of reports."""

from collections.abc import Iterable

import duckdb
import pytest

from warehouse.query import engine


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterable[duckdb.DuckDBPyConnection]:
    database = engine.connect(tmp_path_factory.mktemp("spill"))
    yield database
    database.close()
