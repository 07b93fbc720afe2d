"""The control database is durable and consistent, and can be created by several processes at once."""

import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from api import keys
from tests.stores.postgresql import new_database
from tests.warehouse.site import ROOT
from warehouse.control import database, projects
from warehouse.folder import sqlite_url

NOW_S = 1_790_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "control.sqlite"


@pytest.fixture
def engine(file: Path) -> Iterator[sa.Engine]:
    opened = database.connect(sqlite_url(file))
    yield opened
    opened.dispose()


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("busy_timeout", 1_000 * database.BUSY_TIMEOUT_S),
    ],
)
def test_each_connection_syncs_waits_for_locks_and_checks_references(
    engine: sa.Engine, pragma: str, value: str | int
) -> None:
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() == value


def test_connection_waits_for_locks_as_long_as_its_engine_was_opened_for(file: Path, engine: sa.Engine) -> None:
    other = database.connect(sqlite_url(file), busy_timeout_s=0)
    with database.transaction(engine), pytest.raises(sa.exc.OperationalError, match="locked"):
        projects.create(other, "site", ("*",), NOW_S)
    database.probe(other)
    with other.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 0
    other.dispose()


def test_reopened_database_has_its_rows(engine: sa.Engine, file: Path) -> None:
    created = projects.create(engine, "site", ("*",), NOW_S)
    again = database.connect(sqlite_url(file))
    assert projects.list_all(again) == [created]
    again.dispose()


def test_path_may_have_special_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c?d#e'f"
    folder.mkdir()
    engine = database.connect(sqlite_url(folder / "control.sqlite"))
    projects.create(engine, "site", (), NOW_S)
    engine.dispose()
    assert (folder / "control.sqlite").stat().st_size > 0


def test_deletion_of_a_project_deletes_its_keys_and_no_others(engine: sa.Engine) -> None:
    for project in ("site", "other"):
        projects.create(engine, project, (), NOW_S)
        keys.create(engine, project, "", "read", None, NOW_S)
    projects.delete(engine, "site")
    assert [key.project for key in keys.list_all(engine)] == ["other"]


def test_row_of_an_unknown_project_is_refused(engine: sa.Engine) -> None:
    values = {"id": "1", "project_id": "none", "name": "", "scope": "read", "sha256": "", "created_s": 0}
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(keys.KEYS.insert().values(values))


def test_eight_threads_create_the_tables_at_once_without_an_error(file: Path) -> None:
    sqlite3.connect(file).execute("PRAGMA journal_mode=WAL").connection.close()
    start = threading.Barrier(8)
    errors: list[BaseException] = []

    def connect() -> None:
        start.wait()
        try:
            database.connect(sqlite_url(file)).dispose()
        except sa.exc.SQLAlchemyError as error:
            errors.append(error)

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_failed_commit_raises_its_cause_and_leaves_a_working_engine(engine: sa.Engine, file: Path) -> None:
    """Limit the size of files, which stops the WAL from growing as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    values = [{"id": f"p-{number}", "origins": ["x" * 10_000], "created_s": 0} for number in range(99)]
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, hard))
    try:
        with pytest.raises(sa.exc.OperationalError, match="disk I/O error"), database.transaction(engine) as writer:
            writer.execute(database.PROJECTS.insert(), values)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert projects.create(engine, "after", (), NOW_S).id == "after"
    assert [project.id for project in projects.list_all(engine)] == ["after"]


CREATE_MANY = """
import sys
from pathlib import Path
from warehouse.control import database, projects
from warehouse.folder import sqlite_url

engine = database.connect(sqlite_url(Path(sys.argv[1])))
for number in range(25):
    projects.create(engine, f"{sys.argv[2]}-{number}", (), 0)
"""


@pytest.mark.long
def test_two_processes_write_at_once_without_losing_a_row(engine: sa.Engine, file: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", CREATE_MANY, file, name], cwd=ROOT) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(projects.list_all(engine)) == 50


@pytest.mark.parametrize(
    ("query", "connect_timeout_s"),
    [("", database.SERVER_TIMEOUT_S), ("&connect_timeout=3", 3)],
    ids=["default", "from the URL"],
)
def test_connection_to_a_silent_server_has_timeouts(postgresql: str, query: str, connect_timeout_s: int) -> None:
    engine = database.connect(new_database(postgresql) + query)
    with engine.connect() as connection:
        parameters = connection.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]  # psycopg's
    engine.dispose()
    assert parameters["connect_timeout"] == str(connect_timeout_s)
    assert parameters["tcp_user_timeout"] == str(1000 * database.SERVER_TIMEOUT_S)
    assert parameters["keepalives_idle"] == str(database.SERVER_TIMEOUT_S // 2)


def test_commit_is_synchronous_on_a_server_that_has_turned_it_off(postgresql: str) -> None:
    url = new_database(postgresql)
    server = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {server.url.database} SET synchronous_commit = off")
    server.dispose()
    engine = database.connect(url)
    with engine.connect() as connection:
        connection.rollback()
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"
    engine.dispose()
