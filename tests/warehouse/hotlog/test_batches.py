"""Batches are synced, checksummed and deleted in small transactions, and their ids are never reused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from tests.warehouse.site import view
from warehouse.database.transaction import BUSY_TIMEOUT_S, transaction
from warehouse.errors import BatchDamaged
from warehouse.hotlog import batches, refusals, wal
from warehouse.hotlog.connection import STATEMENTS, HotConnection
from warehouse.schema import HOT

INSERT = "INSERT INTO batches (rows, committed_s, message, bytes) VALUES"


def append(hot: HotConnection, *paths: str, now_s: float = 0) -> None:
    batches.append(hot, pa.RecordBatch.from_pylist([view(path) for path in paths], HOT), now_s)


def ids(hot: HotConnection) -> list[int]:
    return [batch.id for batch in batches.above(hot, 0)]


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
def test_each_connection_syncs_and_waits_for_locks(tmp_path: Path, pragma: str, value: str | int) -> None:
    file = tmp_path / "hot.sqlite"
    with closing(batches.connect(file)) as first, closing(batches.connect(file)) as second:
        for connection in (first, second):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)


def test_batches_above_an_offset_have_the_rows_that_were_appended(hot: HotConnection) -> None:
    for path in ("/a", "/b", "/c"):
        append(hot, path, path)
    assert [(batch.id, batch.rows["path"].to_pylist()) for batch in batches.above(hot, 1)] == [
        (2, ["/b", "/b"]),
        (3, ["/c", "/c"]),
    ]


def test_batch_of_an_older_release_has_null_in_later_columns(hot: HotConnection) -> None:
    row = {**view("/a"), "verification": "verified"}
    schema = pa.schema([HOT.field(index) for index in range(batches.FIRST_COLUMNS)])
    message = pa.RecordBatch.from_pylist([row], schema).serialize().to_pybytes()
    values = {
        "rows": 1,
        "now_s": 0,
        "message": message,
        "checksum": None,
        "columns": None,
        "bytes": len(message),
        "kind": None,
    }
    STATEMENTS.run(hot, "APPEND", values)
    batches.append(hot, pa.RecordBatch.from_pylist([row], HOT), 0)
    older, newer = (batch.rows.to_pylist()[0] for batch in batches.above(hot, 0))
    assert older == {**newer, "verification": None}
    assert newer["verification"] == "verified"


def test_id_of_a_deleted_batch_is_not_reused(hot: HotConnection) -> None:
    append(hot, "/a")
    append(hot, "/b")
    batches.delete_through(hot, 2)
    append(hot, "/c")
    assert (ids(hot), batches.last_id(hot), batches.deleted_through(hot)) == ([3], 3, 2)


def test_batch_that_is_posted_while_the_ids_are_read_is_not_deleted(
    hot: HotConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = batches.last_id

    def read_between_posts(connection: HotConnection) -> int:
        append(hot, "/before")
        id = read(connection)
        append(hot, "/after")
        return id

    with monkeypatch.context() as patch:
        patch.setattr(batches, "last_id", read_between_posts)
        assert batches.deleted_through(hot) == 0
    batches.delete_through(hot, 2)
    monkeypatch.setattr(batches, "last_id", read_between_posts)
    assert batches.deleted_through(hot) == 2


@pytest.mark.parametrize(("raised_to", "next_id"), [(1, 3), (9, 10)])
def test_highest_used_id_is_raised_and_never_lowered(hot: HotConnection, raised_to: int, next_id: int) -> None:
    append(hot, "/a")
    append(hot, "/b")
    with transaction(hot):
        batches.continue_above(hot, raised_to)
    append(hot, "/c")
    assert ids(hot) == [1, 2, next_id]


def test_highest_used_id_of_an_empty_hot_log_is_raised(hot: HotConnection) -> None:
    assert (batches.last_id(hot), batches.deleted_through(hot)) == (0, 0)
    batches.continue_above(hot, 7)
    append(hot, "/a")
    assert ids(hot) == [8]


@pytest.mark.parametrize("last_refusal", [0, 1])
def test_append_is_refused_after_a_refusal_that_the_writer_has_not_seen(hot: HotConnection, last_refusal: int) -> None:
    refusals.add(hot, "deleted")
    rows = pa.RecordBatch.from_pylist([view("/a")], HOT)
    size = len(rows.serialize()) if last_refusal == 1 else 0
    assert batches.append_if_none_refused(hot, rows, 0, last_refusal) == size
    assert len(ids(hot)) == last_refusal


def test_batch_with_a_changed_byte_is_an_error(hot: HotConnection) -> None:
    append(hot, "/a")
    append(hot, "/b")
    (message,) = hot.execute("SELECT message FROM batches WHERE id = 2").fetchone()
    damaged = message[:-1] + bytes([message[-1] ^ 1])
    value = "?" if isinstance(hot, sqlite3.Connection) else "%s"
    hot.execute(f"UPDATE batches SET message = {value} WHERE id = 2", (damaged,))
    read = batches.above(hot, 0)
    assert next(read).id == 1
    with pytest.raises(BatchDamaged, match=r"batch 2 in .*(hot\.sqlite|test_\w+) is damaged"):
        next(read)
    assert "batch 2 in" in str(batches.find_damaged(hot))


def test_backlog_counts_rows_and_has_the_age_of_the_oldest_batch(hot: HotConnection) -> None:
    assert (batches.backlog(hot).rows, batches.backlog(hot).age_s(50)) == (0, 0)
    append(hot, "/a", "/b", now_s=10)
    append(hot, "/c", now_s=20)
    backlog = batches.backlog(hot)
    assert (backlog.rows, backlog.age_s(50)) == (3, 40)
    assert backlog.age_s(9) == backlog.age_s(-50) == 0, "the clock of another node is ahead"
    assert backlog.age_s(-51) == float("inf"), "the clock was set back"


@pytest.mark.long
def test_deletion_of_20_mb_of_batches_grows_the_wal_to_less_than_8_mb(tmp_path: Path) -> None:
    hot = batches.connect_file(tmp_path / "hot.sqlite")
    for rows in (1, 5_000):
        hot.execute(f"{INSERT} (?, 0, zeroblob(3000000), 3000000)", (rows,))
    hot.executemany(f"{INSERT} (1, 0, zeroblob(?1), ?1)", 7_000 * [(2_000,)])
    wal.empty(hot)
    last = batches.last_id(hot)
    batches.delete_through(hot, last - 1)
    assert [id for (id,) in hot.execute("SELECT id FROM batches")] == [last]
    assert (tmp_path / "hot.sqlite-wal").stat().st_size < 8_000_000
