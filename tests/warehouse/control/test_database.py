"""The control database is durable and consistent, and can be created by several processes at once."""

import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.accounts import keys
from tests.stores import sql
from tests.stores.postgresql import new_database
from tests.warehouse.site import ROOT
from warehouse.control import database, projects
from warehouse.database.pool import Pool, PoolError
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.psycopg_connection import CONNECT_TIMEOUT_S, LOST_AFTER_S
from warehouse.folder import sqlite_url

NOW_S = 1_790_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "control.sqlite"


@pytest.fixture
def engine(file: Path) -> Iterator[Pool]:
    opened = database.connect(sqlite_url(file))
    yield opened
    opened.close()


def test_identity_is_read_without_an_open_file_left(file: Path) -> None:
    database.connect(sqlite_url(file)).close()
    assert database.read_identity(sqlite_url(file)).database_id is not None
    assert [each for each in Path("/proc/self/fd").iterdir() if str(file) in str(each.resolve())] == []


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
    engine: Pool, pragma: str, value: str | int
) -> None:
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)


def test_connection_waits_for_locks_as_long_as_its_engine_was_opened_for(file: Path, engine: Pool) -> None:
    other = database.connect(sqlite_url(file), busy_timeout_s=0)
    with engine.transaction(), pytest.raises(PoolError, match="locked"):
        projects.create(other, "site", ("*",), NOW_S)
    database.probe(other)
    with other.connect() as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
    other.close()


def test_reopened_database_has_its_rows(engine: Pool, file: Path) -> None:
    created = projects.create(engine, "site", ("*",), NOW_S)
    again = database.connect(sqlite_url(file))
    assert projects.list_all(again) == [created]
    again.close()


def test_path_may_have_special_characters(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c?d#e'f"
    folder.mkdir()
    engine = database.connect(sqlite_url(folder / "control.sqlite"))
    projects.create(engine, "site", (), NOW_S)
    engine.close()
    assert (folder / "control.sqlite").stat().st_size > 0


def test_deletion_of_a_project_deletes_its_keys_and_no_others(engine: Pool) -> None:
    for project in ("site", "other"):
        projects.create(engine, project, (), NOW_S)
        keys.create(engine, project, "", "read", None, NOW_S)
    projects.delete(engine, "site")
    assert [key.project for key in keys.list_all(engine)] == ["other"]


def test_row_of_an_unknown_project_is_refused(engine: Pool) -> None:
    values = "(id, project_id, name, scope, sha256, created_s) VALUES ('1', 'none', '', 'read', '', 0)"
    with pytest.raises(PoolError, match="FOREIGN KEY constraint failed"):
        sql.run(engine, f"INSERT INTO keys {values}")


def test_eight_threads_create_the_tables_at_once_without_an_error(file: Path) -> None:
    sqlite3.connect(file).execute("PRAGMA journal_mode=WAL").connection.close()
    start = threading.Barrier(8)
    errors: list[BaseException] = []

    def connect() -> None:
        start.wait()
        try:
            database.connect(sqlite_url(file)).close()
        except PoolError as error:
            errors.append(error)

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_failed_commit_raises_its_cause_and_leaves_a_working_engine(engine: Pool, file: Path) -> None:
    """Limit the size of files, which stops the WAL from growing as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    values = [{"id": f"p-{number}", "origins": "x" * 10_000, "created_s": 0, "internal_id": ""} for number in range(99)]
    with engine.connect() as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, hard))
    try:
        with pytest.raises(PoolError, match="disk I/O error"), engine.transaction() as writer:
            database.STATEMENTS.run_many(writer, "ADD_PROJECT", values)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert projects.create(engine, "after", (), NOW_S).id == "after"
    assert [project.id for project in projects.list_all(engine)] == ["after"]


CREATE_MANY = """
import sys
from contextlib import closing
from pathlib import Path
from warehouse.control import database, projects
from warehouse.folder import sqlite_url

engine = database.connect(sqlite_url(Path(sys.argv[1])))
for number in range(25):
    projects.create(engine, f"{sys.argv[2]}-{number}", (), 0)
"""


@pytest.mark.long
def test_two_processes_write_at_once_without_losing_a_row(engine: Pool, file: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", CREATE_MANY, file, name], cwd=ROOT) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(projects.list_all(engine)) == 50


@pytest.mark.parametrize(
    ("query", "connect_timeout_s"),
    [("", CONNECT_TIMEOUT_S), ("&connect_timeout=7", 7)],
    ids=["default", "from the URL"],
)
def test_connection_to_a_silent_server_has_timeouts(postgresql: str, query: str, connect_timeout_s: int) -> None:
    engine = database.connect(new_database(postgresql) + query)
    with engine.connect() as connection:
        assert isinstance(connection, PostgresqlConnection)
        parameters = connection._connection.info.get_parameters()
    engine.close()
    assert parameters["connect_timeout"] == str(connect_timeout_s)
    assert parameters["tcp_user_timeout"] == str(1000 * LOST_AFTER_S)
    unanswered_s = int(parameters["keepalives_count"]) * int(parameters["keepalives_interval"])
    assert int(parameters["keepalives_idle"]) + unanswered_s == LOST_AFTER_S
