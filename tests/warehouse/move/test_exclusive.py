"""A file is opened by one process alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from warehouse.errors import MoveRefused
from warehouse.hotlog import batches
from warehouse.move import databases


def test_file_that_another_connection_has_open_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "hot.sqlite"
    with closing(batches.connect_file(file)) as hot:
        batches.last_id(hot)  # between two statements, the connection has no lock but that of being open
        with pytest.raises(MoveRefused, match=f"another process has {file} open"), databases.opened(file, wait_s=0):
            pass
    with (
        databases.opened(file),
        closing(sqlite3.connect(file, timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("SELECT * FROM node")
    batches.connect_file(file).close()
