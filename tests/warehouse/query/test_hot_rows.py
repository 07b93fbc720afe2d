"""Hot rows in memory are those of the hot log, whatever is read, dropped and asked for."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.site import view
from warehouse.hotlog import batches, retention
from warehouse.lake.roots import LocalPath
from warehouse.query import hot_rows
from warehouse.query.hot_rows import HotRows
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE


@pytest.fixture
def hot(tmp_path: Path) -> Iterable[sqlite3.Connection]:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as connection:
        yield connection


def post(hot: sqlite3.Connection, rows: int) -> None:
    batches.append(hot, pa.RecordBatch.from_pylist([view()] * rows, HOT), 0)


SIZES = st.lists(st.integers(0, 9), max_size=6)


@pytest.mark.long
@settings(max_examples=rounds(200))
@given(st.lists(st.tuples(SIZES, st.integers(0, 40), st.integers(0, 40)), max_size=6))
def test_rows_are_those_of_the_batches_between_two_ids(rounds: list[tuple[list[int], int, int]]) -> None:
    """Post batches, read them, and drop some, in each round; the model is a list of batch ids."""
    with temporary.folder() as folder, closing(batches.connect(Path(folder) / "hot.sqlite")) as hot:
        rows, model, dropped = HotRows(["path"]), list[int](), 0
        for sizes, drop, last_id in rounds:
            first = batches.last_id(hot) + 1
            for number, size in enumerate(sizes, first):
                post(hot, size)
                model += [number] * size
            rows.read_through(hot, 10_000)
            assert (rows.complete_above, rows.last_id) == (dropped, first + len(sizes) - 1)
            dropped = max(dropped, min(drop, rows.last_id))
            rows.drop_through(dropped)
            expected = [id for id in model if dropped < id <= last_id]
            assert rows.rows(HITS_TABLE, dropped, last_id)["batch_id"].to_pylist() == expected


def test_read_ends_at_the_last_id(hot: sqlite3.Connection) -> None:
    for _ in range(5):
        post(hot, 2)
    rows = HotRows(["path"], offset=1)
    rows.read_through(hot, 3)
    assert (rows.last_id, rows.rows(HITS_TABLE, 0)["batch_id"].to_pylist()) == (3, [2, 2, 3, 3])
    assert rows.staged_files(HITS_TABLE, LocalPath("hits"), 0) == ((), 0), "no batch is staged"


def test_gap_in_the_batches_is_recorded(hot: sqlite3.Connection) -> None:
    for _ in range(5):
        post(hot, 1)
    rows = HotRows(["path"])
    rows.read_through(hot, 2)
    hot.execute("DELETE FROM batches WHERE id = 3")
    rows.read_waiting(hot)
    assert (rows.complete_above, rows.last_id, rows.rows(HITS_TABLE, 0)["batch_id"].to_pylist()) == (3, 5, [1, 2, 4, 5])


def test_loaded_batches_are_not_read_as_waiting_ones(hot: sqlite3.Connection) -> None:
    for _ in range(3):
        post(hot, 1)
    retention.mark_loaded(hot, 2, {}, 0)
    rows = HotRows(["path"])
    rows.read_waiting(hot)
    assert (rows.complete_above, rows.last_id, rows.rows(HITS_TABLE, 0)["batch_id"].to_pylist()) == (2, 3, [3])


def test_rows_are_copied_out_of_their_messages(hot: sqlite3.Connection) -> None:
    post(hot, 1000)
    rows = HotRows(["path"])
    before = pa.total_allocated_bytes()
    rows.read_waiting(hot)
    assert 0 < pa.total_allocated_bytes() - before < 20_000  # a message of 1,000 rows has 130 kB


@pytest.mark.parametrize("limit", ["PIECES_MAX", "PIECES_ROWS_MAX"])
@pytest.mark.parametrize("pieces_max", [1, 2, 1000])
def test_rows_of_many_small_batches_are_in_few_chunks(
    hot: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, limit: str, pieces_max: int
) -> None:
    monkeypatch.setattr(hot_rows, limit, pieces_max)
    rows = HotRows(["path"])
    for number in range(100):
        post(hot, 1)
        if number % 3:
            rows.read_waiting(hot)
    rows.read_waiting(hot)
    assert rows.rows(HITS_TABLE, 0)["batch_id"].to_pylist() == list(range(1, 101))
    assert rows.rows(HITS_TABLE, 0)["batch_id"].num_chunks <= 7
