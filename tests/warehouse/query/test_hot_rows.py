"""Hot rows in memory are those of the hot log, whatever is read, dropped and asked for."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse.site import view
from warehouse.hotlog import batches
from warehouse.query import hot_rows
from warehouse.query.hot_rows import HotRows
from warehouse.schema import HOT


@pytest.fixture
def hot(tmp_path: Path) -> Iterable[sqlite3.Connection]:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as connection:
        yield connection


def post(hot: sqlite3.Connection, rows: int) -> None:
    batches.append(hot, pa.RecordBatch.from_pylist([view()] * rows, HOT), 0)


SIZES = st.lists(st.integers(0, 9), max_size=6)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(SIZES, st.integers(0, 40), st.integers(0, 40)), max_size=6))
def test_rows_are_those_of_the_batches_between_two_ids(rounds: list[tuple[list[int], int, int]]) -> None:
    """Post batches, read them, and drop some, in each round; the model is a list of batch ids."""
    with TemporaryDirectory() as folder, closing(batches.connect(Path(folder) / "hot.sqlite")) as hot:
        rows, model, dropped = HotRows(hot, ["path"]), list[int](), 0
        for sizes, drop, last_id in rounds:
            first = batches.last_id(hot) + 1
            for number, size in enumerate(sizes, first):
                post(hot, size)
                model += [number] * size
            assert (rows.read(), rows.last_id) == (len(sizes), first + len(sizes) - 1)
            dropped = max(dropped, drop)
            rows.drop_through(drop)
            expected = [id for id in model if dropped < id <= last_id]
            assert rows.rows(dropped, last_id)["batch_id"].to_pylist() == expected


def test_read_ends_at_the_last_id(hot: sqlite3.Connection) -> None:
    for _ in range(5):
        post(hot, 2)
    rows = HotRows(hot, ["path"], first_id=1)
    assert (rows.read(3), rows.last_id, rows.rows(0)["batch_id"].to_pylist()) == (2, 3, [2, 2, 3, 3])


def test_rows_are_copied_out_of_their_messages(hot: sqlite3.Connection) -> None:
    post(hot, 1000)
    rows = HotRows(hot, ["path"])
    before = pa.total_allocated_bytes()
    rows.read()
    assert 0 < pa.total_allocated_bytes() - before < 20_000  # a message of 1,000 rows has 130 kB


@pytest.mark.parametrize("pieces_max", [1, 2, 1000])
def test_rows_of_many_small_batches_are_in_few_chunks(
    hot: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, pieces_max: int
) -> None:
    monkeypatch.setattr(hot_rows, "PIECES_MAX", pieces_max)
    rows = HotRows(hot, ["path"])
    for number in range(100):
        post(hot, 1)
        if number % 3:
            rows.read()
    rows.read()
    assert rows.rows(0)["batch_id"].to_pylist() == list(range(1, 101))
    assert rows.rows(0)["batch_id"].num_chunks <= 7
