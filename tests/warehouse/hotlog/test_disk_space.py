"""Posts are refused while the disk has less space than a load of the waiting hits needs."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from warehouse.hotlog import batches, disk_space

MIB = 1024 * 1024
MARGIN = 8 * MIB


@pytest.fixture
def hot(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a hot log with 3 MiB of batches, and 10 MiB of rows in another table."""
    with closing(batches.connect(tmp_path / "hot.sqlite")) as connection:
        for size in (MIB, 2 * MIB):
            connection.execute("INSERT INTO batches (rows, committed_s, message, bytes) VALUES (1, 0, x'', ?)", (size,))
        connection.execute("CREATE TABLE other (content BLOB)")
        connection.execute("INSERT INTO other VALUES (zeroblob(?))", (10 * MIB,))
        yield connection


@pytest.mark.parametrize(
    ("more", "needed"),
    [(0, MARGIN + 3 * MIB), (5 * MIB, MARGIN + (3 + 5) * MIB + 5 * MIB)],
    ids=["waiting batches", "and one more"],
)
def test_copy_of_the_waiting_batches_and_the_margin_must_fit(hot: sqlite3.Connection, more: int, needed: int) -> None:
    assert disk_space.shortage(hot, needed, more) is None
    shortage = disk_space.shortage(hot, needed - 1, more)
    assert shortage is not None
    assert shortage.startswith(f"disk full: {(needed - 1) / MIB:.1f} MiB are free, and {needed / MIB:.1f} MiB are")


def test_deleted_batches_need_no_space(hot: sqlite3.Connection) -> None:
    batches.delete_through(hot, 2)
    assert disk_space.shortage(hot, MARGIN) is None
    assert disk_space.shortage(hot, MARGIN - 1) is not None


def test_free_space_of_a_folder_is_that_of_its_file_system(tmp_path: Path) -> None:
    total = os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
    assert 0 < disk_space.free_bytes(tmp_path) < total


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (OSError(errno.ENOSPC, "any text"), True),
        (OSError(errno.EDQUOT, "any text"), True),
        (OSError(errno.EIO, "No space left on device"), False),
        (duckdb.IOException('Could not write file "x": No space left on device'), True),
        (duckdb.IOException('Could not write file "x": Permission denied'), False),
    ],
)
def test_full_disk_is_recognised_by_code_or_by_message(error: Exception, is_full: bool) -> None:
    assert disk_space.is_full(error) == is_full


def test_full_database_of_sqlite_is_a_full_disk(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE a (b BLOB)")
        connection.execute("PRAGMA max_page_count=3")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.execute("INSERT INTO a VALUES (zeroblob(100000))")
        with pytest.raises(sqlite3.OperationalError) as wrong:
            connection.execute("SELECT c FROM a")
    assert disk_space.is_full(full.value)
    assert not disk_space.is_full(wrong.value)
