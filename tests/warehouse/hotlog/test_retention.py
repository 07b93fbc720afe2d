"""Loaded batches stay in the hot log for ten minutes, and do not wait."""

from collections.abc import Iterable
from contextlib import closing

import pyarrow as pa
import pytest

from tests.warehouse.site import view
from warehouse.hotlog import batches, disk_space, loads, retention
from warehouse.hotlog.connection import HotConnection, HotLogPlace
from warehouse.hotlog.loads import Synced, synced
from warehouse.hotlog.retention import AS_OF_S, RETAINED_BYTES_MAX
from warehouse.schema import HOT


@pytest.fixture
def hot(hot_log: HotLogPlace) -> Iterable[HotConnection]:
    """Yield a hot log of six batches. Batches 1 to 3 are loaded at 1,000 s, batch 4 at 1,100 s."""
    with closing(batches.connect(hot_log)) as connection:
        for number in range(6):
            batches.append(connection, pa.RecordBatch.from_pylist([view()] * 2, HOT), number)
        retention.mark_loaded(connection, 3, {"hits": Synced(1, 3)}, 1_000)
        retention.mark_loaded(connection, 4, {"hits": Synced(2, 4)}, 1_100)
        yield connection


def ids(hot: HotConnection) -> list[int]:
    return [batch.id for batch in batches.above(hot, 0)]


def size(hot: HotConnection, id: int) -> int:
    return int(hot.execute(f"SELECT length(message) FROM batches WHERE id = {id}").fetchone()[0])


def test_loaded_batches_are_in_the_hot_log_and_do_not_wait(hot: HotConnection) -> None:
    assert ids(hot) == [1, 2, 3, 4, 5, 6]
    assert [batch.id for batch in batches.waiting(hot)] == [5, 6]
    assert [batch.id for batch in batches.waiting(hot, 5)] == [6]
    assert (batches.backlog(hot).rows, batches.backlog(hot).oldest_s) == (4, 4.0)
    assert batches.backlog(hot).bytes == size(hot, 5) + size(hot, 6)
    assert (loads.loaded_through(hot), batches.deleted_through(hot), batches.last_id(hot)) == (4, 0, 6)


def test_disk_space_is_reserved_for_waiting_batches_alone(hot: HotConnection) -> None:
    needed = disk_space.MARGIN_BYTES + batches.backlog(hot).bytes
    assert disk_space.shortage(hot, needed) is None
    assert disk_space.shortage(hot, needed - 1) is not None


def test_mark_records_how_far_the_tables_are_synced(hot: HotConnection) -> None:
    assert synced(hot) == {"hits": Synced(2, 4)}
    retention.mark_loaded(hot, 4, {"hits": Synced(3, 4)}, 1_200)
    assert synced(hot) == {"hits": Synced(3, 4)}
    assert loads.loaded_through(hot) == 4


@pytest.mark.parametrize(
    ("now_s", "remaining"),
    [
        (1_000 + AS_OF_S - 1, [1, 2, 3, 4, 5, 6]),
        (1_000 + AS_OF_S, [4, 5, 6]),
        (1_100 + AS_OF_S, [5, 6]),
        (1_000_000, [5, 6]),
        (1_100 - AS_OF_S + 1, [1, 2, 3, 4, 5, 6]),  # the clock was set back
        (1_100 - AS_OF_S, [5, 6]),
    ],
)
def test_batches_are_deleted_ten_minutes_after_their_load(
    hot: HotConnection, now_s: float, remaining: list[int]
) -> None:
    for _ in range(2):
        retention.delete_due(hot, now_s, RETAINED_BYTES_MAX)
        assert ids(hot) == remaining
        assert loads.loaded_through(hot) == 4
    assert hot.execute("SELECT count(*) FROM loads").fetchone()[0] == (2 if len(remaining) == 6 else 1)


def test_oldest_loads_beyond_the_limit_are_deleted(hot: HotConnection) -> None:
    total = sum(size(hot, id) for id in (1, 2, 3, 4))
    retention.delete_due(hot, 1_100, total)
    assert ids(hot) == [1, 2, 3, 4, 5, 6]
    retention.delete_due(hot, 1_100, total - 1)
    assert ids(hot) == [4, 5, 6]
    retention.delete_due(hot, 1_100, size(hot, 4) - 1)
    assert ids(hot) == [5, 6]


def test_limit_is_a_gibibyte_or_a_tenth_of_the_free_space() -> None:
    assert retention.bytes_max(100 * RETAINED_BYTES_MAX) == RETAINED_BYTES_MAX
    assert retention.bytes_max(5_000_000) == 500_000


def test_deletion_of_all_loaded_batches_revokes_all_moments(hot: HotConnection) -> None:
    retention.delete_loaded(hot, 7)
    assert (ids(hot), batches.backlog(hot).rows, loads.generation(hot), loads.first_version(hot)) == ([5, 6], 4, 1, 7)
    retention.delete_loaded(hot, 8)
    assert (ids(hot), loads.generation(hot), loads.first_version(hot)) == ([5, 6], 2, 8)


def test_damaged_batch_that_is_loaded_is_not_a_fault(hot: HotConnection) -> None:
    hot.execute("UPDATE batches SET message = checksum WHERE id = 2")
    assert batches.find_damaged(hot) is None
    hot.execute("UPDATE batches SET message = checksum WHERE id = 5")
    assert "batch 5 in" in str(batches.find_damaged(hot))


@pytest.mark.parametrize("hot_log", ["sqlite"], indirect=True)
def test_backlog_is_counted_from_an_index_without_messages(hot: HotConnection) -> None:
    plan = hot.execute("EXPLAIN QUERY PLAN SELECT sum(rows) FROM batches WHERE id > 4").fetchall()
    assert "COVERING INDEX batches_id_rows_bytes" in str(plan)
