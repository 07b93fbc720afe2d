"""Who stores much for a project is told once it is gone, whatever the control database is."""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from warehouse.control import database, project_check, projects
from warehouse.errors import ControlUnreadable, ProjectNotFound
from warehouse.folder import sqlite_url

NOW_S = 1_790_000_000
Checked = Callable[[Path, str], AbstractContextManager[project_check.Check]]


def anywhere(file: Path, project: str) -> AbstractContextManager[project_check.Check]:
    return project_check.engine_check(sqlite_url(file), project)


@pytest.fixture(params=[project_check.sqlite_check, anywhere], ids=["in_file", "anywhere"])
def checked(request: pytest.FixtureRequest) -> Checked:
    found: Checked = request.param
    return found


def test_a_project_stands_until_its_deletion_begins(tmp_path: Path, checked: Checked) -> None:
    file = tmp_path / "a folder" / "control.sqlite"
    file.parent.mkdir()
    engine = database.connect(sqlite_url(file))
    projects.create(engine, "site", (), NOW_S)
    projects.create(engine, "other", (), NOW_S)
    with checked(file, "site") as check:
        check()
        projects.begin_deletion(engine, "other")
        check()
        projects.begin_deletion(engine, "site")
        with pytest.raises(ProjectNotFound, match="there is no project 'site'"):
            check()
        projects.delete(engine, "site")
        with pytest.raises(ProjectNotFound):
            check()
    engine.dispose()


def test_new_project_under_the_same_id_is_another_project(tmp_path: Path, checked: Checked) -> None:
    file = tmp_path / "control.sqlite"
    engine = database.connect(sqlite_url(file))
    projects.create(engine, "site", (), NOW_S)
    with checked(file, "site") as check:
        internal_id = check()
        projects.begin_deletion(engine, "site")
        projects.delete(engine, "site")
        new = projects.create(engine, "site", (), NOW_S)
        with pytest.raises(ProjectNotFound):
            check()
    with checked(file, "site") as check:
        assert check() == new.internal_id != internal_id
    engine.dispose()


def test_a_project_that_is_not_there_is_told_before_anything_is_done(tmp_path: Path, checked: Checked) -> None:
    database.connect(sqlite_url(tmp_path / "control.sqlite")).dispose()
    with (
        pytest.raises(ProjectNotFound, match="there is no project 'site'"),
        checked(tmp_path / "control.sqlite", "site"),
    ):
        pytest.fail("it was taken for one that stands")


def test_what_is_no_control_database_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "control.sqlite"
    file.write_bytes(b"")  # as one has it who was killed while making it
    with pytest.raises(ProjectNotFound), project_check.sqlite_check(file, "site"):
        pytest.fail("it was taken for one that stands")
    file.write_bytes(b"something else altogether" * 100)
    with pytest.raises(ControlUnreadable, match="control.sqlite cannot be read .file is not a database.: restore it"):
        project_check.sqlite_check(file, "site").__enter__()
    file.unlink()
    file.mkdir()
    with pytest.raises(ControlUnreadable, match="control.sqlite cannot be read .unable to open"):
        project_check.sqlite_check(file, "site").__enter__()


def test_a_fault_of_another_database_is_not_taken_for_one_of_this(tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    projects.create(engine, "site", (), NOW_S)
    engine.dispose()
    with pytest.raises(sqlite3.OperationalError), project_check.sqlite_check(tmp_path / "control.sqlite", "site"):
        raise sqlite3.OperationalError("disk I/O error")


def test_where_there_is_no_database_there_is_no_project_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(ProjectNotFound), project_check.sqlite_check(tmp_path / "control.sqlite", "site"):
        pytest.fail("it was taken for one that stands")
    assert list(tmp_path.iterdir()) == []
