"""The check fails as soon as the deletion of its project begins, and is not blamed for other errors."""

import sqlite3
from pathlib import Path

import pytest

from warehouse.control import database, projects
from warehouse.errors import ControlUnreadable, ProjectNotFound
from warehouse.folder import sqlite_url

NOW_S = 1_790_000_000


def test_check_passes_until_the_deletion_begins(tmp_path: Path) -> None:
    file = tmp_path / "a folder" / "control.sqlite"
    file.parent.mkdir()
    engine = database.connect(sqlite_url(file))
    projects.create(engine, "site", (), NOW_S)
    projects.create(engine, "other", (), NOW_S)
    with projects.repeated_check(sqlite_url(file), "site") as check:
        check()
        projects.begin_deletion(engine, "other")
        check()
        projects.begin_deletion(engine, "site")
        with pytest.raises(ProjectNotFound, match="there is no project 'site'"):
            check()
        projects.delete(engine, "site")
        with pytest.raises(ProjectNotFound):
            check()
    engine.close()


def test_check_fails_for_a_new_project_under_the_same_id(tmp_path: Path) -> None:
    file = tmp_path / "control.sqlite"
    engine = database.connect(sqlite_url(file))
    projects.create(engine, "site", (), NOW_S)
    with projects.repeated_check(sqlite_url(file), "site") as check:
        internal_id = check()
        projects.begin_deletion(engine, "site")
        projects.delete(engine, "site")
        new = projects.create(engine, "site", (), NOW_S)
        with pytest.raises(ProjectNotFound):
            check()
    with projects.repeated_check(sqlite_url(file), "site") as check:
        assert check() == new.internal_id != internal_id
    engine.close()


def test_unknown_project_fails_before_the_block_begins(tmp_path: Path) -> None:
    database.connect(sqlite_url(tmp_path / "control.sqlite")).close()
    with (
        pytest.raises(ProjectNotFound, match="there is no project 'site'"),
        projects.repeated_check(sqlite_url(tmp_path / "control.sqlite"), "site"),
    ):
        pytest.fail("the block began")


def test_file_that_is_no_database_is_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "control.sqlite"
    file.write_bytes(b"")  # as a process leaves it that was killed while creating it
    with pytest.raises(ProjectNotFound), projects.repeated_check(sqlite_url(file), "site"):
        pytest.fail("the block began")
    file.write_bytes(b"something else altogether" * 100)
    with pytest.raises(ControlUnreadable, match="control.sqlite cannot be read .file is not a database.: restore it"):
        projects.repeated_check(sqlite_url(file), "site").__enter__()


def test_database_error_of_the_block_is_not_blamed_on_the_control_database(tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    projects.create(engine, "site", (), NOW_S)
    engine.close()
    with (
        pytest.raises(sqlite3.OperationalError),
        projects.repeated_check(sqlite_url(tmp_path / "control.sqlite"), "site"),
    ):
        raise sqlite3.OperationalError("disk I/O error")


def test_missing_database_has_no_project_and_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(ProjectNotFound), projects.repeated_check(sqlite_url(tmp_path / "control.sqlite"), "site"):
        pytest.fail("the block began")
    assert list(tmp_path.iterdir()) == []
