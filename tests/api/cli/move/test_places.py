"""The new places of the stores are those of --to, or those of the environment."""

from pathlib import Path

import pytest

from api import settings
from api.cli.move import places
from api.cli.move.places import Places
from api.errors import InvalidSetting
from warehouse.errors import MoveRefused
from warehouse.folder import Moved, sqlite_url
from warehouse.lake import delta_table
from warehouse.lake.roots import LocalPath

DATABASE, LAKE = "postgresql://user:secret@db.internal/readership", "s3://bucket/lake"
NAME = "the database readership on db.internal"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a lake."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "lake").mkdir()
    delta_table.create(LocalPath(folder / "lake"))
    return folder


def choose(data: Path, *to: str, **environ: str) -> Places:
    variables = {f"READERSHIP_{name}": value for name, value in environ.items()}
    return places.choose(variables, settings.read(variables, data, is_moving=True), to)


def refused(data: Path, *to: str, **environ: str) -> str:
    with pytest.raises((InvalidSetting, MoveRefused)) as raised:
        choose(data, *to, **environ)
    assert "secret" not in str(raised.value)
    return str(raised.value)


def test_both_places(data: Path) -> None:
    for both in (
        choose(data, DATABASE, LAKE),
        choose(data, LAKE, DATABASE, LAKE="s3://bucket/other"),
        choose(data, DATABASE_URL=DATABASE, LAKE=LAKE),
    ):
        assert (both.before.database_url, both.before.lake) == (sqlite_url(data / "control.sqlite"), data / "lake")
        assert both.record("n", is_complete=True) == Moved("n", NAME, LAKE, is_complete=True)
        assert (str(both.after.lake), str(both.lake)) == (LAKE, LAKE)
        assert both.is_recorded(Moved("n", NAME, LAKE))
        assert not both.is_recorded(Moved("n", NAME, None))


def test_database_alone(data: Path) -> None:
    for alone in (choose(data, DATABASE), choose(data, DATABASE_URL=DATABASE)):
        assert alone.server is not None
        assert (alone.server.database, alone.lake, alone.after.lake) == (NAME, None, data / "lake")
    used = choose(data, DATABASE, LAKE=LAKE)  # a service that uses the object store, with an old lake in its folder
    assert (used.lake, str(used.before.lake), str(used.after.lake)) == (None, LAKE, LAKE)


def test_lake_alone(data: Path) -> None:
    alone = choose(data, LAKE)
    assert (alone.server, alone.before.lake, str(alone.after.lake)) == (None, data / "lake", LAKE)
    assert alone.record("n", is_complete=True) == Moved("n", None, LAKE, is_complete=True)


def test_lake_that_is_in_an_object_store_already_stays(tmp_path: Path) -> None:
    stays = choose(tmp_path, DATABASE_URL=DATABASE, LAKE=LAKE)
    assert (stays.lake, str(stays.before.lake), str(stays.after.lake)) == (None, LAKE, LAKE)
    assert f"there is no lake in {tmp_path / 'lake'}" in refused(tmp_path, LAKE)


def test_wrong_places_are_refused_without_a_password(data: Path) -> None:
    assert "name the new places with --to" in refused(data)
    assert "names two databases" in refused(data, DATABASE, DATABASE)
    assert "names two databases, or two object stores" in refused(data, LAKE, LAKE)
    assert "must be a URL of postgresql://" in refused(data, "mysql://user:secret@db/readership")
    assert "must be a URI such as s3://" in refused(data, "s3://key:secret@bucket")
    assert "are different databases" in refused(data, f"{DATABASE}2", DATABASE_URL=DATABASE)
