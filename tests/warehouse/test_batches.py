"""The hot log is opened so that a commit is on the disk, and writers wait for each other."""

from contextlib import closing
from pathlib import Path

import pytest

from warehouse import batches


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
