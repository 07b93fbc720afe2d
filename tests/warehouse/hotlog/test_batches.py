"""The hot log is opened so that a commit is on the disk, and writers wait for each other."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from warehouse.hotlog import batches, wal
from warehouse.transaction import BUSY_TIMEOUT_S


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("secure_delete", 1),
        ("busy_timeout", BUSY_TIMEOUT_S * 1_000),
        ("journal_size_limit", batches.WAL_BYTES_MAX),
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
    wal.empty(connection)
    last = batches.last_id(connection)
    batches.delete_through(connection, last - 1, {})
    assert [id for (id,) in connection.execute("SELECT id FROM batches")] == [last]
    assert (tmp_path / "hot.sqlite-wal").stat().st_size < 8_000_000
