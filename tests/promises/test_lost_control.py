"""A control database that is missing, empty or damaged beside hits is refused, and `recover` begins a new one."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.processes.running import PROJECT, new_key
from tests.promises.lost_stores import LINE, Folder


def lose_control(folder: Folder) -> None:
    folder.lose("control.sqlite")


def empty_control(folder: Folder) -> None:
    folder.lose("control.sqlite")
    (folder.data / "control.sqlite").touch()


def other_control(folder: Folder) -> None:
    folder.lose("control.sqlite")
    other = folder.copies / "other"
    new_key(other)
    with closing(sqlite3.connect(other / "control.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(other / "control.sqlite", folder.data / "control.sqlite")


@pytest.mark.long
@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lose_control, "is missing or empty, and there are hits of its projects"),
        (empty_control, "is missing or empty, and there are hits of its projects"),
        (other_control, "is not the one that this data folder was used with"),
    ],
    ids=["missing", "empty", "another"],
)
def test_control_database_that_is_not_the_lakes_is_refused_until_the_loss_is_accepted(
    folder: Folder, damage: Callable[[Folder], None], fault: str
) -> None:
    damage(folder)
    for command in (["serve", "--port", "0"], ["worker"], ["flush"], ["project", "create", "new"]):
        assert f"{folder.data / 'control.sqlite'} {fault}: restore the copy" in folder.refused(*command)
    folder.json("recover")
    assert fault in folder.refused("flush")
    folder.json("recover", "--accept-loss")
    new_key(folder.data)
    assert folder.counts() == (33, 33)
    assert "--despite-loss" in folder.refused("import", PROJECT, str(folder.log)), "its secret keyed the ledger"
    newer = folder.log.with_name("newer.log")
    later = datetime.now(UTC) + timedelta(minutes=1)
    newer.write_text(re.sub(r"\[.*?\]", f"[{later:%d/%b/%Y:%H:%M:%S} +0000]", LINE.format(0, "newer")))
    assert folder.json("import", PROJECT, str(newer))["page_views"] == 1


def test_older_copy_of_the_control_database_is_accepted(folder: Folder) -> None:
    folder.restore("control.sqlite")
    folder.json("flush")
    assert folder.counts() == (33, 33)
    assert folder.json("import", PROJECT, str(folder.log))["known"] == 30


@pytest.mark.parametrize("size", [100, 32_000])
def test_damaged_control_database_is_named_in_one_line(folder: Folder, size: int) -> None:
    file = folder.data / "control.sqlite"
    folder.lose("control.sqlite")
    file.write_bytes((b"garbage " * 4_000)[:size])
    for command in (["serve", "--port", "0"], ["key", "list"], ["import", PROJECT, str(folder.log)], ["recover"]):
        line = folder.refused(*command)
        assert line.startswith(f"Error: {file} cannot be read (file is not a database): restore it"), line
        assert line.endswith("without one, move it out of the folder and run readership recover\n"), line
    file.unlink()
    folder.json("recover", "--accept-loss")
    assert folder.json("recover") == []


def test_truncated_control_database_is_named_in_one_line(folder: Folder) -> None:
    file = folder.data / "control.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = file.read_bytes()
    folder.lose("control.sqlite")
    file.write_bytes(content[: len(content) // 2])
    for command in (["serve", "--port", "0"], ["key", "list"], ["import", PROJECT, str(folder.log)]):
        line = folder.refused(*command)
        assert line.startswith(f"Error: {file} cannot be read (database disk image is malformed): restore it"), line


def test_empty_postgresql_database_beside_hits_is_refused(
    folder: Folder, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READERSHIP_DATABASE_URL", database_url)
    line = folder.refused("flush")
    assert "is missing or empty, and there are hits of its projects" in line
    folder.json("recover", "--accept-loss")
    folder.json("flush")
    assert folder.json("project", "list") == []
