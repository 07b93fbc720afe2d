"""A connection opens again after it was lost, and a paused client loses its transaction."""

from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tests.processes.waiting import until
from tests.stores.outage import way_to
from tests.stores.postgresql import LOCKS, new_database
from warehouse.database import postgresql as module
from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.database.psycopg_connection import COUNT_OTHERS, IDLE_IN_TRANSACTION_S
from warehouse.database.transaction import transaction
from warehouse.database_errors import Cause, cause_of

LOCK = "SELECT 1 FROM locked FOR UPDATE"


def connect(url: str, lock_timeout_s: float = 30) -> PostgresqlConnection:
    return PostgresqlConnection(url.replace("+psycopg", ""), "public", LOCK, lock_timeout_s)


@pytest.fixture
def url(postgresql: str) -> str:
    url = new_database(postgresql)
    with closing(connect(url)) as connection:
        connection.execute("CREATE TABLE locked AS SELECT 1")
        connection.execute("CREATE TABLE days (day TEXT UNIQUE)")
    return url


@pytest.fixture
def connection(url: str) -> Iterator[PostgresqlConnection]:
    with closing(connect(url)) as opened:
        yield opened


def days(connection: PostgresqlConnection) -> list[str]:
    return [day for (day,) in connection.execute("SELECT day FROM days ORDER BY day")]


def add(connection: PostgresqlConnection, day: str) -> None:
    connection.execute("INSERT INTO days VALUES (%s)", (day,))


def end(url: str, lost: PostgresqlConnection) -> None:
    """End the session of a connection on the server."""
    (process,) = lost.execute("SELECT pg_backend_pid()").fetchone()
    with closing(connect(url)) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (process,))


def test_transaction_is_stored_as_a_whole_or_rolled_back(connection: PostgresqlConnection) -> None:
    with transaction(connection):
        add(connection, "a")
    for days_of_block in (["b", "a"], ["b", "c"]):
        with pytest.raises((ServerError, InterruptedError)):
            add_and_fail(connection, days_of_block)
        assert not connection.in_transaction
    assert days(connection) == ["a"]


def add_and_fail(connection: PostgresqlConnection, days: list[str]) -> None:
    """Fail after adding days, in one transaction."""
    with transaction(connection):
        for day in days:
            add(connection, day)
        raise InterruptedError


def add_in_transaction(connection: PostgresqlConnection, day: str) -> None:
    with transaction(connection):
        add(connection, day)


def test_transaction_whose_failed_statement_was_ignored_is_not_reported_as_stored(
    connection: PostgresqlConnection,
) -> None:
    def add_and_ignore() -> None:
        with transaction(connection):
            add(connection, "a")
            with suppress(ServerError):
                add(connection, "a")

    with pytest.raises(ServerError, match="rolled back"):
        add_and_ignore()
    assert days(connection) == []


def test_transaction_whose_lost_connection_was_ignored_is_not_reported_as_stored(
    url: str, connection: PostgresqlConnection
) -> None:
    def add_lose_and_ignore() -> None:
        with transaction(connection):
            add(connection, "a")
            end(url, connection)
            with suppress(ServerError):
                add(connection, "b")
            add(connection, "c")

    with pytest.raises(ServerError):
        add_lose_and_ignore()
    assert days(connection) == []


def test_statement_alone_is_a_transaction(connection: PostgresqlConnection) -> None:
    sql = "INSERT INTO days VALUES (%(day)s)"
    assert connection.execute_alone(sql, {"day": "a"}).rowcount == 1
    with pytest.raises(ServerError) as raised:
        connection.execute_alone(sql, {"day": "a"})
    assert raised.value.sqlstate == "23505"
    assert not connection.in_transaction
    with transaction(connection):
        connection.execute_alone(sql, {"day": "b"})
        assert connection.in_transaction
    assert days(connection) == ["a", "b"]


def test_statement_for_each_value_has_a_result_for_each(connection: PostgresqlConnection) -> None:
    values = [{"day": day} for day in ("a", "b", "a")]
    added = connection.execute_each("INSERT INTO days VALUES (%(day)s) ON CONFLICT DO NOTHING", values)
    assert [each.rowcount for each in added] == [1, 1, 0]
    assert list(connection.execute_each("SELECT %(day)s", [])) == []
    read = connection.execute_each("SELECT day FROM days WHERE day = %(day)s", values)
    assert [each.fetchall() for each in read] == [[("a",)], [("b",)], [("a",)]]
    assert list(connection.stream("SELECT day FROM days ORDER BY day", {})) == [("a",), ("b",)]


def test_idle_connection_that_the_server_ended_opens_again(url: str, connection: PostgresqlConnection) -> None:
    end(url, connection)
    add(connection, "a")
    end(url, connection)
    with transaction(connection):
        add(connection, "b")
    assert days(connection) == ["a", "b"]


def test_transaction_whose_connection_is_lost_stores_nothing(url: str, connection: PostgresqlConnection) -> None:
    def add_and_lose() -> None:
        with transaction(connection):
            add(connection, "a")
            end(url, connection)
            add(connection, "b")

    with pytest.raises(ServerError) as raised:
        add_and_lose()
    assert cause_of(raised.value) is Cause.UNAVAILABLE
    assert days(connection) == []


def test_only_an_error_after_the_commit_was_sent_leaves_the_outcome_open(connection: PostgresqlConnection) -> None:
    def in_transaction() -> None:
        with transaction(connection):
            add(connection, "a")

    def before_commit() -> None:
        with transaction(connection):
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    def alone() -> None:
        connection.execute_alone("INSERT INTO days VALUES (%(day)s)", {"day": "b"})

    def alone_and_refused() -> None:
        connection.execute_alone("SELECT 1 / %(zero)s", {"zero": 0})

    connection.execute(
        "CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
    )
    connection.execute(
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON days DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION end_session()"
    )
    for write, is_open in ((in_transaction, True), (alone, True), (before_commit, False), (alone_and_refused, False)):
        with pytest.raises(ServerError) as raised:
            write()
        assert raised.value.may_be_committed is is_open


def test_pinned_connection_does_not_open_again(url: str, connection: PostgresqlConnection) -> None:
    with connection.pinned():
        end(url, connection)
        for _ in range(2):
            with pytest.raises(ServerError):
                days(connection)
    assert days(connection) == []


def test_unreachable_server_is_unavailable_until_it_answers(postgresql: str) -> None:
    with way_to(postgresql) as (way, url, _), closing(connect(url)) as connection:
        way.cut()
        for _ in range(2):
            with pytest.raises(ServerError) as raised:
                connection.execute("SELECT 1")
            assert cause_of(raised.value) is Cause.UNAVAILABLE
        way.restore()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_write_transaction_waits_for_another_for_the_lock_timeout(url: str, connection: PostgresqlConnection) -> None:
    with closing(connect(url, lock_timeout_s=0.1)) as other:
        with transaction(connection):
            for write in (lambda: add_in_transaction(other, "b"), lambda: other.execute_alone("DELETE FROM days", {})):
                with pytest.raises(ServerError) as raised:
                    write()
                assert (raised.value.sqlstate, cause_of(raised.value)) == ("55P03", Cause.UNAVAILABLE)
                assert not other.in_transaction
        with transaction(other):
            add(other, "a")


@pytest.mark.long
def test_transaction_of_a_silent_client_ends_and_another_one_writes(url: str, connection: PostgresqlConnection) -> None:
    def add_after_a_pause() -> None:
        with transaction(connection):
            add(connection, "a")
            with closing(connect(url)) as other, transaction(other):  # waits until the server has ended the first one
                add(other, "b")
            add(connection, "c")

    with pytest.raises(ServerError) as raised:
        add_after_a_pause()
    assert cause_of(raised.value) is Cause.UNAVAILABLE
    assert days(connection) == ["b"]


@pytest.mark.long
def test_client_paused_while_it_sends_a_transaction_loses_the_lock(url: str) -> None:
    with closing(connect(url)) as paused, closing(connect(url, lock_timeout_s=2.5)) as other:
        sender = paused._connection.pgconn
        sender.enter_pipeline_mode()
        for part_of_transaction in (module.BEGIN, LOCK):  # the server has no timeout for the rest
            sender.send_query_params(part_of_transaction.encode(), None)
        sender.send_flush_request()
        sender.flush()
        until(lambda: other.execute(f"SELECT 1 {LOCKS} AND mode = 'RowShareLock'").fetchone() is not None)
        with pytest.raises(ServerError) as raised:
            add_in_transaction(other, "b")
        assert cause_of(raised.value) is Cause.UNAVAILABLE
        with transaction(other):
            add(other, "a")


def test_commit_is_synchronous_on_a_server_that_has_turned_it_off(url: str) -> None:
    with closing(connect(url)) as connection:
        (database,) = connection.execute("SELECT current_database()").fetchone()
        connection.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
    with closing(connect(url)) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_paused_client_keeps_its_lock_for_less_than_a_post_waits() -> None:
    from ingest.hotlog.writer import LOCK_WAIT_S  # noqa: PLC0415

    assert IDLE_IN_TRANSACTION_S < LOCK_WAIT_S


def others(connection: PostgresqlConnection) -> int:
    """Return the number of other connections. The server counts a closed one until its process has ended."""
    row = connection.execute(COUNT_OTHERS).fetchone()
    assert row is not None
    return int(row[0])


def test_other_connections_are_counted_whatever_their_name_also_after_they_were_lost(
    url: str, connection: PostgresqlConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGAPPNAME", "node 1")
    with closing(connect(url)) as other:
        until(lambda: others(connection) == 1)
        end(url, other)
        other.execute("SELECT 1")
        until(lambda: others(connection) == 1)
    until(lambda: others(connection) == 0)
