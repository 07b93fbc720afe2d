"""A data folder whose stores were moved is used only with their new places."""

from contextlib import closing
from pathlib import Path

import pytest

import warehouse
from warehouse import folder
from warehouse.control import database
from warehouse.errors import DataIncomplete, DataMoved
from warehouse.folder import Moved, sqlite_url
from warehouse.hotlog import batches

DATABASE, LAKE = "the database a on b", "s3://bucket/lake"


def refused(data: Path, *, has_database: bool, has_lake: bool) -> str:
    with pytest.raises(DataMoved) as raised:
        folder.refuse_moved(data, has_database=has_database, has_lake=has_lake)
    return str(raised.value)


def test_moved_stores_are_refused_until_the_settings_name_their_new_places(tmp_path: Path) -> None:
    folder.refuse_moved(tmp_path, has_database=False, has_lake=False)
    folder.record_moved(tmp_path, Moved("n", DATABASE, LAKE, is_complete=True))
    text = refused(tmp_path, has_database=False, has_lake=False)
    assert f"moved to {DATABASE} and {LAKE}: set READERSHIP_DATABASE_URL to {DATABASE} and READERSHIP_LAKE to" in text
    assert "READERSHIP_DATABASE_URL" not in refused(tmp_path, has_database=True, has_lake=False)
    assert "READERSHIP_LAKE" not in refused(tmp_path, has_database=False, has_lake=True)
    folder.refuse_moved(tmp_path, has_database=True, has_lake=True)
    folder.record_moved(tmp_path, Moved("n", None, LAKE, is_complete=True))
    folder.refuse_moved(tmp_path, has_database=False, has_lake=True)


def test_interrupted_move_is_refused_with_any_settings(tmp_path: Path) -> None:
    folder.record_moved(tmp_path, Moved("n", DATABASE, None))
    assert f"the move of {tmp_path} to {DATABASE} is not complete" in refused(
        tmp_path, has_database=True, has_lake=True
    )


def test_damaged_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / folder.MOVED).write_text("{")
    with pytest.raises(DataIncomplete, match=r"moved\.json is damaged"):
        folder.read_moved(tmp_path)


def test_files_of_moved_databases_are_not_opened(tmp_path: Path) -> None:
    hot, url = tmp_path / "hot.sqlite", sqlite_url(tmp_path / "control.sqlite")
    batches.connect(hot).close()
    database.connect(url).close()
    folder.record_moved(tmp_path, Moved("n", None, LAKE, is_complete=True))
    with closing(batches.connect(hot)):
        database.connect(url).close()
    folder.record_moved(tmp_path, Moved("n", DATABASE, None, is_complete=True))
    for opening in (lambda: batches.connect(hot), lambda: database.connect(url), lambda: warehouse.connect(tmp_path)):
        with pytest.raises(DataMoved, match=f"moved to {DATABASE}"):
            opening()
