"""The record of loads in new hot logs, in those of older releases, and after a loss."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from tests.warehouse.site import view
from warehouse.errors import StoreTooNew
from warehouse.hotlog import batches, loads, retention
from warehouse.hotlog.schema_migrations import MIGRATIONS
from warehouse.schema import HOT


def schema(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}


def older_hot_log(file: Path) -> None:
    """Create a hot log of the release before loads were recorded, with one batch."""
    with closing(batches.connect(file)) as hot:
        batches.append(hot, pa.RecordBatch.from_pylist([view()], HOT), 0)
        hot.execute("DROP TABLE loads")
        hot.execute("DROP INDEX batches_id_rows_bytes")
        hot.execute("CREATE INDEX batches_rows ON batches (rows)")
        for column in ("generation", "first_version"):
            hot.execute(f"ALTER TABLE node DROP COLUMN {column}")
        for column in ("columns", "bytes", "kind"):
            hot.execute(f"ALTER TABLE batches DROP COLUMN {column}")
        hot.execute("PRAGMA user_version=4")


def test_batches_of_an_older_hot_log_wait(tmp_path: Path) -> None:
    older_hot_log(tmp_path / "hot.sqlite")
    with closing(batches.connect(tmp_path / "hot.sqlite")) as hot:
        assert (loads.loaded_through(hot), loads.generation(hot), batches.backlog(hot).rows) == (0, 0, 1)
        assert batches.backlog(hot).bytes == hot.execute("SELECT length(message) FROM batches").fetchone()[0] > 0
    batches.connect(tmp_path / "new.sqlite").close()
    assert len(schema(tmp_path / "hot.sqlite")) == len(schema(tmp_path / "new.sqlite"))
    assert not any("batches_rows" in sql for sql in schema(tmp_path / "hot.sqlite"))


def test_release_without_loads_refuses_the_hot_log(tmp_path: Path) -> None:
    batches.connect(tmp_path / "hot.sqlite").close()
    with pytest.raises(StoreTooNew):
        batches.connect_file(tmp_path / "hot.sqlite", known=MIGRATIONS[:3])


@pytest.mark.parametrize(("through", "waiting"), [(3, 1), (2, 2), (0, 4)])
def test_batches_above_the_last_loaded_one_wait_again_after_a_loss(tmp_path: Path, through: int, waiting: int) -> None:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as hot:
        for _ in range(4):
            batches.append(hot, pa.RecordBatch.from_pylist([view()], HOT), 0)
        retention.mark_loaded(hot, 3, {}, 1_000)
        loads.replace_all(hot, through)
        assert (loads.loaded_through(hot), batches.backlog(hot).rows) == (through, waiting)
        retention.delete_due(hot, 1_000, retention.RETAINED_BYTES_MAX)
        assert [batch.id for batch in batches.above(hot, 0)] == list(range(through + 1, 5))
