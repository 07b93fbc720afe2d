"""One connection at a time has an advisory lock, and loses it when it is silent, but not while its owner works."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.processes.waiting import until
from tests.stores.postgresql import new_database
from warehouse.database.advisory_lock import advisory_lock
from warehouse.database.postgresql import PostgresqlConnection, ServerError

IDLE_S = 0.2
KEY = 7


@pytest.fixture(scope="module")
def url(postgresql: str) -> str:
    return new_database(postgresql).replace("+psycopg", "")


@pytest.fixture
def clients(url: str) -> Iterator[tuple[PostgresqlConnection, PostgresqlConnection]]:
    with closing(connect(url)) as first, closing(connect(url)) as second:
        yield first, second


def connect(url: str) -> PostgresqlConnection:
    return PostgresqlConnection(url, "public", "SELECT 1", 30)


def process(connection: PostgresqlConnection) -> int:
    return int(connection.execute("SELECT pg_backend_pid()").fetchone()[0])


def is_free(connection: PostgresqlConnection, key: int = KEY) -> bool:
    with advisory_lock(connection, key) as is_free:
        return is_free


def is_connected(other: PostgresqlConnection, process: int) -> bool:
    return other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (process,)).fetchone() is not None


def test_second_client_gets_the_lock_after_the_first(
    clients: tuple[PostgresqlConnection, PostgresqlConnection],
) -> None:
    first, second = clients
    with advisory_lock(first, KEY) as is_first:
        assert is_first
        assert not is_free(second)
        assert is_free(second, KEY + 1)
    assert is_free(second)
    with pytest.raises(InterruptedError), advisory_lock(first, KEY):
        raise InterruptedError
    assert is_free(second)


def test_lock_of_an_owner_that_works_without_the_server_outlasts_the_timeout(
    clients: tuple[PostgresqlConnection, PostgresqlConnection],
) -> None:
    first, second = clients
    with advisory_lock(first, KEY, IDLE_S), advisory_lock(first, KEY + 1, IDLE_S):
        (began,) = second.execute("SELECT clock_timestamp()").fetchone()
        until(lambda: second.execute("SELECT clock_timestamp() > %s + interval '0.6 s'", (began,)).fetchone()[0])
        assert not is_free(second)
        assert not is_free(second, KEY + 1)
    assert first.execute("SHOW idle_session_timeout").fetchone() == ("0",)
    assert is_free(second)


def test_client_that_is_paused_loses_the_lock_and_its_next_statement_fails(
    clients: tuple[PostgresqlConnection, PostgresqlConnection],
) -> None:
    first, second = clients
    number = process(first)

    with advisory_lock(first, KEY, IDLE_S):
        with first._mutex:  # its thread sends nothing
            until(lambda: not is_connected(second, number))
        assert is_free(second)
        with pytest.raises(ServerError):
            first.execute("SELECT 1")
        assert first.is_lost
    assert is_free(first)
    assert is_free(second)
