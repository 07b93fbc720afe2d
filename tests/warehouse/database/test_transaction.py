"""A block is one write transaction: all of it is stored or nothing, and its error is raised unchanged."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from warehouse.database.transaction import transaction


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.sqlite"


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as opened:
        opened.execute("PRAGMA journal_mode=WAL")
        opened.execute("CREATE TABLE days (date TEXT UNIQUE)")
        yield opened


def days(connection: sqlite3.Connection) -> list[str]:
    return [day for (day,) in connection.execute("SELECT date FROM days ORDER BY date")]


def test_block_that_ends_is_committed(connection: sqlite3.Connection, file: Path) -> None:
    with transaction(connection):
        connection.execute("INSERT INTO days VALUES ('2026-09-02')")
    with closing(sqlite3.connect(file)) as other:
        assert days(other) == ["2026-09-02"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_block_that_raises_is_rolled_back(connection: sqlite3.Connection, error: type[BaseException]) -> None:
    def write(day: str) -> None:
        with transaction(connection):
            connection.execute("INSERT INTO days VALUES (?)", (day,))
            raise error

    with pytest.raises(error):
        write("2026-09-02")
    assert days(connection) == []
    assert not connection.in_transaction


def test_statement_that_fails_rolls_back_the_statements_before_it(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError), transaction(connection):
        connection.executemany("INSERT INTO days VALUES (?)", [("2026-09-01",), ("2026-09-01",)])
    assert days(connection) == []


def test_transaction_that_sqlite_has_rolled_back_raises_its_first_error(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA max_page_count={connection.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(sqlite3.OperationalError, match="^database or disk is full$"), transaction(connection):
        connection.execute("INSERT INTO days VALUES (zeroblob(100000))")
    assert not connection.in_transaction


def test_second_writer_is_refused_at_its_begin_and_not_at_its_first_write(
    connection: sqlite3.Connection, file: Path
) -> None:
    entered = False
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other, transaction(connection):
        with pytest.raises(sqlite3.OperationalError, match="database is locked"), transaction(other):
            entered = True
        connection.execute("INSERT INTO days VALUES ('2026-09-02')")
    assert not entered
    assert days(connection) == ["2026-09-02"]
