"""The hot log is opened so that a commit is on the disk, and writers wait for each other."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from warehouse.hotlog import batches


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("secure_delete", 1),
        ("busy_timeout", batches.BUSY_TIMEOUT_S * 1_000),
        ("journal_size_limit", batches.WAL_BYTES_KEPT),
    ],
)
def test_every_connection_waits_for_the_disk_and_for_others(tmp_path: Path, pragma: str, value: str | int) -> None:
    file = tmp_path / "hot.sqlite"
    with closing(batches.connect(file)) as made, closing(batches.connect(file)) as opened:
        for connection in (made, opened):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as made:
        yield made


def days(connection: sqlite3.Connection) -> list[str]:
    return [day for (day,) in connection.execute("SELECT date FROM recounts ORDER BY date")]


def test_deleting_20_mb_of_batches_grows_the_wal_by_no_more_than_some_parts(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    for rows in (1, 5_000):
        connection.execute("INSERT INTO batches (rows, committed_s, message) VALUES (?, 0, zeroblob(3000000))", (rows,))
    connection.executemany(
        "INSERT INTO batches (rows, committed_s, message) VALUES (1, 0, zeroblob(?))", 7_000 * [(2_000,)]
    )
    batches.empty_wal(connection)
    last = batches.last_id(connection)
    batches.delete_through(connection, last - 1, {})
    assert [id for (id,) in connection.execute("SELECT id FROM batches")] == [last]
    assert (tmp_path / "hot.sqlite-wal").stat().st_size < 8_000_000


def test_transaction_that_sqlite_has_rolled_back_raises_its_first_error(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA max_page_count={connection.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(sqlite3.OperationalError, match="^database or disk is full$"), batches.transaction(connection):
        connection.execute("INSERT INTO batches (rows, committed_s, message) VALUES (1, 0, zeroblob(100000))")
    assert not connection.in_transaction


def test_transaction_rolls_back_on_an_error_of_its_block_and_commits_otherwise(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError), batches.transaction(connection):
        connection.executemany("INSERT INTO recounts (date) VALUES (?)", [("2026-09-01",), ("2026-09-01",)])
    with batches.transaction(connection):
        connection.execute("INSERT INTO recounts (date) VALUES ('2026-09-02')")
    assert days(connection) == ["2026-09-02"]
