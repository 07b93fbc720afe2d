"""Causes of database errors, each raised by a real SQLite file or PostgreSQL server."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.stores.outage import way_to
from tests.stores.postgresql import new_database
from tests.stores.sql import opened
from warehouse.control import database, projects
from warehouse.database.pool import Pool, PoolError
from warehouse.database_errors import Cause, cause_of, is_temporary, status_of
from warehouse.folder import sqlite_url

COUNT = "SELECT count(*) FROM projects"
WRITE = "INSERT INTO projects (id, origins, created_s, is_ending) VALUES ('b', '[]', 0, false)"
NO_COLUMN = "SELECT no_such_column FROM projects"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a SQLite control database with a project."""
    path = tmp_path / "control.sqlite"
    engine = database.connect(sqlite_url(path))
    projects.create(engine, "a", (), 0)
    engine.close()
    return path


@pytest.fixture
def server(postgresql: str) -> str:
    """Return the URL of a PostgreSQL control database with a project."""
    url = new_database(postgresql)
    engine = database.connect(url)
    projects.create(engine, "a", (), 0)
    engine.close()
    return url


def error_of(engine: Pool, *statements: str) -> Exception:
    """Return the error that the statements raise in one transaction."""
    try:
        with engine.transaction() as connection:
            for statement in statements:
                connection.execute(statement)
    except PoolError as error:
        return error
    finally:
        engine.close()
    pytest.fail("no error was raised")


def read_only(file: Path) -> Pool:
    return opened(f"sqlite:///file:{file}?mode=ro")


def without_space(file: Path) -> Pool:
    def open_full() -> sqlite3.Connection:
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute("PRAGMA max_page_count=1")
        return connection

    return Pool(sqlite_url(file), open_full)


def damaged(file: Path) -> Pool:
    """Return a database whose pages after the first are not SQLite's."""
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"x" * (len(content) - 4096))
    return opened(sqlite_url(file))


def no_database(file: Path) -> Pool:
    file.write_bytes(b"x" * 8192)
    return opened(sqlite_url(file))


def no_folder(file: Path) -> Pool:
    return opened(sqlite_url(file.parent / "none" / "control.sqlite"))


def dead_disk(file: Path) -> Pool:
    """Return a database in a file of which the first byte cannot be read."""
    return opened("sqlite:///file:/proc/self/mem?mode=ro&immutable=1")


LONG = f"INSERT INTO projects (id, origins, created_s, is_ending) VALUES ('b', '{'x' * 100_000}', 0, false)"


@pytest.mark.parametrize(
    ("opened", "statement", "cause"),
    [
        (read_only, WRITE, Cause.UNUSABLE),
        (damaged, COUNT, Cause.UNUSABLE),
        (no_database, COUNT, Cause.UNUSABLE),
        (no_folder, COUNT, Cause.UNUSABLE),
        (dead_disk, COUNT, Cause.DISK_FAILED),
        (without_space, LONG, Cause.DISK_FULL),
        (lambda file: opened(sqlite_url(file)), NO_COLUMN, Cause.PROGRAM),
    ],
    ids=["read-only", "damaged", "not a database", "no folder", "dead disk", "disk full", "no such column"],
)
def test_cause_of_a_sqlite_error(file: Path, opened: Callable[[Path], Pool], statement: str, cause: Cause) -> None:
    error = error_of(opened(file), statement)
    assert cause_of(error) is cause
    assert isinstance(error, PoolError)
    assert cause_of(error.orig) is cause, "the same as its own error"
    assert is_temporary(error) == (cause is Cause.DISK_FULL)


def test_lock_timeout_of_sqlite_is_temporary(file: Path) -> None:
    engine = opened(sqlite_url(file), busy_timeout_s=0)
    with closing(database.connect(sqlite_url(file))) as other, other.transaction():
        error = error_of(engine, WRITE)
    assert cause_of(error) is Cause.UNAVAILABLE


SLEEP = "SELECT pg_sleep(60)"


def test_cause_of_a_postgresql_error(server: str) -> None:
    for statements, cause in (
        (("SET statement_timeout = 10", SLEEP), Cause.UNAVAILABLE),
        (("SELECT pg_terminate_backend(pg_backend_pid())",), Cause.UNAVAILABLE),
        (("DO $$BEGIN RAISE 'deadlock' USING ERRCODE = '40P01'; END$$",), Cause.UNAVAILABLE),
        (("DO $$BEGIN RAISE 'could not serialize' USING ERRCODE = '40001'; END$$",), Cause.UNAVAILABLE),
        (("DO $$BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END$$",), Cause.DISK_FULL),
        (("SET TRANSACTION READ ONLY", WRITE), Cause.UNUSABLE),
        (("DO $$BEGIN RAISE 'invalid page' USING ERRCODE = 'XX001'; END$$",), Cause.UNUSABLE),
        ((NO_COLUMN,), Cause.PROGRAM),
        ((WRITE, WRITE), Cause.PROGRAM),  # the second one is a duplicate
    ):
        assert cause_of(error_of(opened(server), *statements)) is cause, statements


def test_lock_timeout_of_postgresql_is_temporary(server: str) -> None:
    holder = opened(server)
    with holder.transaction() as connection:
        connection.execute("LOCK TABLE projects")
        error = error_of(opened(server), "SET lock_timeout = 10", COUNT)
    holder.close()
    assert cause_of(error) is Cause.UNAVAILABLE


def test_lost_and_refused_connections_are_temporary(postgresql: str) -> None:
    with way_to(postgresql) as (way, url, _):
        engine = opened(url)

        def use_lost() -> None:
            with engine.connect() as connection:
                way.cut()
                connection.execute("SELECT 1")

        with pytest.raises(PoolError) as lost:
            use_lost()
        with pytest.raises(PoolError) as refused:
            use_lost()
        engine.close()
    assert [cause_of(each.value) for each in (lost, refused)] == [Cause.UNAVAILABLE] * 2


def test_pool_without_a_free_connection_is_temporary() -> None:
    control = Pool("sqlite://", partial(sqlite3.connect, ":memory:"), connections_max=1, wait_s=0)
    with control.connect(), pytest.raises(PoolError) as raised, control.connect():
        pass
    control.close()
    assert is_temporary(raised.value)


def test_other_exceptions_are_errors_of_the_program() -> None:
    assert cause_of(ValueError("x")) is Cause.PROGRAM
    assert not is_temporary(ValueError("x"))


@pytest.fixture
def engine(database_url: str) -> Iterator[Pool]:
    opened = database.connect(database_url)
    yield opened
    opened.close()


def test_probe_accepts_an_intact_database_while_another_connection_writes(engine: Pool) -> None:
    with engine.transaction() as connection:
        connection.execute(WRITE)
        database.probe(engine)
    database.probe(engine)


def test_probe_finds_a_missing_column(engine: Pool) -> None:
    with engine.transaction() as connection:
        connection.execute("ALTER TABLE projects RENAME COLUMN origins TO other")
    with pytest.raises(PoolError) as raised:
        database.probe(engine)
    assert cause_of(raised.value) is Cause.PROGRAM
    assert status_of(raised.value).startswith("does not fit this version of the program")


def test_probe_finds_a_read_only_sqlite_file(file: Path) -> None:
    engine = read_only(file)
    with pytest.raises(PoolError) as raised:
        database.probe(engine)
    engine.close()
    assert status_of(raised.value) == "damaged, read-only or not accessible: see the log (SQLITE_READONLY)"


def test_probe_finds_a_read_only_postgresql_server(server: str) -> None:
    engine = opened(f"{server}&options=-c%20default_transaction_read_only%3Don")
    with pytest.raises(PoolError) as raised:
        database.probe(engine)
    engine.close()
    assert status_of(raised.value) == "damaged, read-only or not accessible: see the log (25006)"
