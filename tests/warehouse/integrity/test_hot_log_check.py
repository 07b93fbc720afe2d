"""The check of a PostgreSQL server finds settings that can lose data, and hits that no node loads."""

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pytest

from tests.stores.postgresql import new_database
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.transaction import transaction
from warehouse.hotlog import batches
from warehouse.hotlog.connection import Server, server_of
from warehouse.integrity import hot_log_check
from warehouse.schema import HOT

NOW_S = 1_790_000_000.0


@pytest.fixture
def server(postgresql: str) -> Server:
    server = server_of(new_database(postgresql))
    assert server is not None
    return server


@pytest.fixture
def hot(server: Server) -> Iterator[PostgresqlConnection]:
    with closing(batches.connect(server)) as hot:
        assert isinstance(hot, PostgresqlConnection)
        yield hot


def warnings(hot: PostgresqlConnection, now_s: float = NOW_S) -> dict[str, str | None]:
    return dict(hot_log_check.server_warnings(hot, late_s=300, now_s=now_s))


def test_settings_that_are_off_are_warnings(server: Server, hot: PostgresqlConnection) -> None:
    warning = warnings(hot)[hot_log_check.SYNCED]
    assert warning is not None
    assert warning.startswith("fsync is off: a loss of power"), "the server of the tests does not sync"
    assert "synchronous_commit" not in warning
    hot.execute(f"ALTER DATABASE {hot.database} SET synchronous_commit = off")
    with closing(batches.connect(server)) as later:
        assert isinstance(later, PostgresqlConnection)
        assert "synchronous_commit is off" in (warnings(later)[hot_log_check.SYNCED] or "")


def test_hit_that_waits_too_long_is_a_warning(hot: PostgresqlConnection) -> None:
    assert warnings(hot)[hot_log_check.LOADED] is None
    with transaction(hot):
        batches.append(hot, pa.RecordBatch.from_pylist([], HOT), NOW_S)
    assert warnings(hot, NOW_S - 1)[hot_log_check.LOADED] is None, "the clock of another node is a second ahead"
    assert warnings(hot, NOW_S + 299)[hot_log_check.LOADED] is None
    assert "no node runs" in (warnings(hot, NOW_S + 301)[hot_log_check.LOADED] or "")


def test_server_that_answers_has_no_fault(server: Server, hot: PostgresqlConnection) -> None:
    assert hot_log_check.broken_server(server) is None
    hot.execute(f"ALTER DATABASE {hot.database} SET default_transaction_read_only = on")
    assert "read-only" in (hot_log_check.broken_server(server) or "")
