"""The lock of the lake over several nodes: one node has it at a time, and the loss of it is an error."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.postgresql import new_database
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.errors import LakeBusy
from warehouse.hotlog import batches
from warehouse.hotlog.connection import server_of
from warehouse.integrity.lake_lock import LAKE, ROLLUPS, Lock, lake_lock
from warehouse.lake.roots import LocalPath


@pytest.fixture
def nodes(postgresql: str) -> Iterator[tuple[PostgresqlConnection, PostgresqlConnection]]:
    """Yield the connections of two nodes to one hot log."""
    server = server_of(new_database(postgresql))
    with closing(batches.connect(server)) as first, closing(batches.connect(server)) as second:
        assert isinstance(first, PostgresqlConnection)
        assert isinstance(second, PostgresqlConnection)
        yield first, second


@pytest.mark.parametrize("lock", [LAKE, ROLLUPS])
def test_second_node_is_refused_until_the_first_has_ended(
    nodes: tuple[PostgresqlConnection, PostgresqlConnection], tmp_path: Path, lock: Lock
) -> None:
    first, second = nodes
    # the lock file of one folder would refuse it, too
    folders = [LocalPath(tmp_path / name) for name in ("first", "second")]

    def lock_both() -> None:
        with lake_lock(first, folders[0], 0, lock), lake_lock(second, folders[1], 0, lock):
            pytest.fail("both nodes have the lock")

    for _ in range(2):
        with pytest.raises(LakeBusy, match=f"the lock of {lock.name}"):
            lock_both()
    with lake_lock(second, folders[1], 0, lock):
        pass


def test_statement_on_the_hot_log_fails_after_the_lock_was_lost(
    nodes: tuple[PostgresqlConnection, PostgresqlConnection], tmp_path: Path
) -> None:
    first, second = nodes

    def work() -> None:
        with lake_lock(first, LocalPath(tmp_path), 0):
            end(first, second)
            batches.last_id(first)  # not on a new connection, which would not have the lock

    with pytest.raises(LakeBusy, match="was lost"):
        work()
    with lake_lock(first, LocalPath(tmp_path), 0):
        assert batches.last_id(first) == 0


def test_work_that_is_done_when_the_lock_is_lost_is_no_error(
    nodes: tuple[PostgresqlConnection, PostgresqlConnection], tmp_path: Path
) -> None:
    first, second = nodes
    with lake_lock(first, LocalPath(tmp_path), 0):
        end(first, second)
    with lake_lock(second, LocalPath(tmp_path), 0):
        pass


def end(lost: PostgresqlConnection, other: PostgresqlConnection) -> None:
    """End the session of a connection on the server."""
    (process,) = lost.execute("SELECT pg_backend_pid()").fetchone()
    other.execute("SELECT pg_terminate_backend(%s, 10000)", (process,))
