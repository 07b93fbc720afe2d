"""The WAL can be emptied, unless a reader is using it, and a probe shows whether the hot log can be written."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from tests.warehouse.site import view
from warehouse.database.transaction import BUSY_TIMEOUT_S, transaction
from warehouse.hotlog import batches, wal
from warehouse.hotlog.connection import HotLogPlace
from warehouse.schema import HOT

SECRET = b"an-event-id-to-be-erased"


@pytest.fixture
def hot(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as connection:
        yield connection


def busy_timeout_ms(hot: sqlite3.Connection) -> int:
    return int(hot.execute("PRAGMA busy_timeout").fetchone()[0])


def insert_and_delete(hot: sqlite3.Connection) -> None:
    hot.execute("INSERT INTO batches (rows, committed_s, message) VALUES (1, 0, ?)", (SECRET,))
    hot.execute("DELETE FROM batches")


def test_deleted_row_is_in_no_file_once_the_wal_is_empty(hot: sqlite3.Connection, tmp_path: Path) -> None:
    insert_and_delete(hot)
    assert SECRET in (tmp_path / "hot.sqlite-wal").read_bytes()
    wal.empty(hot)
    assert (tmp_path / "hot.sqlite-wal").stat().st_size == 0
    assert SECRET not in (tmp_path / "hot.sqlite").read_bytes()


@pytest.mark.long
def test_wal_that_a_reader_uses_stays_and_is_emptied_later(hot: sqlite3.Connection, tmp_path: Path) -> None:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT id FROM batches").fetchall()
        insert_and_delete(hot)
        wal.empty(hot)
        assert SECRET in (tmp_path / "hot.sqlite-wal").read_bytes()
        assert busy_timeout_ms(hot) == BUSY_TIMEOUT_S * 1_000
        reader.execute("COMMIT")
    wal.empty(hot)
    assert (tmp_path / "hot.sqlite-wal").stat().st_size == 0


def insert_mib(hot: sqlite3.Connection, mib: int) -> None:
    hot.executemany("INSERT INTO batches (rows, committed_s, message) VALUES (1, 0, zeroblob(1048576))", mib * [()])


@pytest.mark.parametrize(("live", "deleted", "mib"), [(1, 60, 61), (1, 70, 1), (40, 70, 110), (30, 70, 30)])
def test_file_of_mostly_deleted_rows_shrinks(
    hot: sqlite3.Connection, tmp_path: Path, live: int, deleted: int, mib: int
) -> None:
    with transaction(hot):
        insert_mib(hot, live + deleted)
        hot.execute("DELETE FROM batches WHERE id > ?", (live,))
    wal.shrink(hot)
    size_mib = (tmp_path / "hot.sqlite").stat().st_size / 1024 / 1024
    assert size_mib == pytest.approx(mib, abs=1)
    assert hot.execute("SELECT count(*) FROM batches").fetchone() == (live,)
    assert (tmp_path / "hot.sqlite-wal").stat().st_size == 0


def test_probe_fails_at_once_while_another_process_writes(hot: sqlite3.Connection, tmp_path: Path) -> None:
    hot.execute("PRAGMA busy_timeout=3600000")
    with closing(batches.connect(tmp_path / "hot.sqlite")) as other, transaction(other):
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            wal.try_write(hot)
        assert busy_timeout_ms(hot) == 3_600_000
    wal.try_write(hot)


@pytest.mark.parametrize("hot_log", ["postgresql"], indirect=True)
def test_space_of_deleted_rows_in_postgresql_is_freed(hot_log: HotLogPlace) -> None:
    with closing(batches.connect(hot_log)) as hot:
        batches.append(hot, pa.RecordBatch.from_pylist([view("/" + "a" * 100_000)], HOT), 0)
        used = "SELECT pg_total_relation_size('batches')"
        before = hot.execute(used).fetchone()[0]
        batches.delete_through(hot, 1)
        wal.empty(hot)
        assert hot.execute(used).fetchone()[0] < before
        wal.try_write(hot)
