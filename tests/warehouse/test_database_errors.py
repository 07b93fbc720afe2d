"""Causes of database errors, each raised by a real SQLite file or PostgreSQL server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.stores.outage import way_to
from tests.stores.postgresql import new_database
from warehouse.control import database, projects
from warehouse.database_errors import Cause, cause_of, is_temporary, status_of
from warehouse.folder import sqlite_url

COUNT = sa.text("SELECT count(*) FROM projects")
WRITE = sa.text("INSERT INTO projects (id, origins, created_s, is_ending) VALUES ('b', '[]', 0, false)")
NO_COLUMN = sa.text("SELECT no_such_column FROM projects")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a SQLite control database with a project."""
    path = tmp_path / "control.sqlite"
    engine = database.connect(sqlite_url(path))
    projects.create(engine, "a", (), 0)
    engine.dispose()
    return path


@pytest.fixture
def server(postgresql: str) -> str:
    """Return the URL of a PostgreSQL control database with a project."""
    url = new_database(postgresql)
    engine = database.connect(url)
    projects.create(engine, "a", (), 0)
    engine.dispose()
    return url


def error_of(engine: sa.Engine, *statements: sa.TextClause) -> Exception:
    """Return the error that the statements raise in one transaction."""
    try:
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(statement)
    except sa.exc.SQLAlchemyError as error:
        return error
    finally:
        engine.dispose()
    pytest.fail("no error was raised")


def read_only(file: Path) -> sa.Engine:
    return sa.create_engine(f"sqlite:///file:{file}?mode=ro&uri=true")


def without_space(file: Path) -> sa.Engine:
    engine = sa.create_engine(sqlite_url(file))
    sa.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count=1"))
    return engine


def damaged(file: Path) -> sa.Engine:
    """Return a database whose pages after the first are not SQLite's."""
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"x" * (len(content) - 4096))
    return sa.create_engine(sqlite_url(file))


def no_database(file: Path) -> sa.Engine:
    file.write_bytes(b"x" * 8192)
    return sa.create_engine(sqlite_url(file))


def no_folder(file: Path) -> sa.Engine:
    return sa.create_engine(sqlite_url(file.parent / "none" / "control.sqlite"))


def dead_disk(file: Path) -> sa.Engine:
    """Return a database in a file of which the first byte cannot be read."""
    return sa.create_engine("sqlite:///file:/proc/self/mem?mode=ro&immutable=1&uri=true")


LONG = sa.text(f"INSERT INTO projects (id, origins, created_s, is_ending) VALUES ('b', '{'x' * 100_000}', 0, false)")


@pytest.mark.parametrize(
    ("opened", "statement", "cause"),
    [
        (read_only, WRITE, Cause.UNUSABLE),
        (damaged, COUNT, Cause.UNUSABLE),
        (no_database, COUNT, Cause.UNUSABLE),
        (no_folder, COUNT, Cause.UNUSABLE),
        (dead_disk, COUNT, Cause.DISK_FAILED),
        (without_space, LONG, Cause.DISK_FULL),
        (lambda file: sa.create_engine(sqlite_url(file)), NO_COLUMN, Cause.PROGRAM),
    ],
    ids=["read-only", "damaged", "not a database", "no folder", "dead disk", "disk full", "no such column"],
)
def test_cause_of_a_sqlite_error(
    file: Path, opened: Callable[[Path], sa.Engine], statement: sa.TextClause, cause: Cause
) -> None:
    error = error_of(opened(file), statement)
    assert cause_of(error) is cause
    assert isinstance(error, sa.exc.DBAPIError)
    assert error.orig is not None
    assert cause_of(error.orig) is cause, "the same without SQLAlchemy"
    assert is_temporary(error) == (cause is Cause.DISK_FULL)


def test_lock_timeout_of_sqlite_is_temporary(file: Path) -> None:
    engine = sa.create_engine(sqlite_url(file), connect_args={"timeout": 0})
    with database.transaction(database.connect(sqlite_url(file))):
        error = error_of(engine, WRITE)
    assert cause_of(error) is Cause.UNAVAILABLE


SLEEP = sa.text("SELECT pg_sleep(60)")


@pytest.mark.parametrize(
    ("statements", "cause"),
    [
        ((sa.text("SET statement_timeout = 10"), SLEEP), Cause.UNAVAILABLE),
        ((sa.text("SELECT pg_terminate_backend(pg_backend_pid())"),), Cause.UNAVAILABLE),
        ((sa.text("DO $$BEGIN RAISE 'deadlock' USING ERRCODE = '40P01'; END$$"),), Cause.UNAVAILABLE),
        ((sa.text("DO $$BEGIN RAISE 'could not serialize' USING ERRCODE = '40001'; END$$"),), Cause.UNAVAILABLE),
        ((sa.text("DO $$BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END$$"),), Cause.DISK_FULL),
        ((sa.text("SET TRANSACTION READ ONLY"), WRITE), Cause.UNUSABLE),
        ((sa.text("DO $$BEGIN RAISE 'invalid page' USING ERRCODE = 'XX001'; END$$"),), Cause.UNUSABLE),
        ((NO_COLUMN,), Cause.PROGRAM),
        ((WRITE, WRITE), Cause.PROGRAM),
    ],
    ids=[
        "statement timeout",
        "connection terminated",
        "deadlock",
        "serialization failure",
        "disk full",
        "read-only",
        "damaged",
        "no such column",
        "duplicate",
    ],
)
def test_cause_of_a_postgresql_error(server: str, statements: tuple[sa.TextClause, ...], cause: Cause) -> None:
    assert cause_of(error_of(sa.create_engine(server), *statements)) is cause


def test_lock_timeout_of_postgresql_is_temporary(server: str) -> None:
    holder = sa.create_engine(server)
    with holder.begin() as connection:
        connection.execute(sa.text("LOCK TABLE projects"))
        error = error_of(sa.create_engine(server), sa.text("SET lock_timeout = 10"), COUNT)
    holder.dispose()
    assert cause_of(error) is Cause.UNAVAILABLE


def test_lost_and_refused_connections_are_temporary(postgresql: str) -> None:
    with way_to(postgresql) as (way, url, _):
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            way.cut()
            with pytest.raises(sa.exc.DBAPIError) as lost:
                connection.execute(sa.text("SELECT 1"))
        with pytest.raises(sa.exc.DBAPIError) as refused:
            engine.connect()
        engine.dispose()
    assert [cause_of(each.value) for each in (lost, refused)] == [Cause.UNAVAILABLE] * 2


def test_pool_without_a_free_connection_is_temporary() -> None:
    engine = sa.create_engine("sqlite://", poolclass=sa.QueuePool, pool_size=1, max_overflow=0, pool_timeout=0)
    with engine.connect(), pytest.raises(sa.exc.TimeoutError) as raised:
        engine.connect()
    engine.dispose()
    assert is_temporary(raised.value)


def test_other_exceptions_are_errors_of_the_program() -> None:
    assert cause_of(ValueError("x")) is Cause.PROGRAM
    assert not is_temporary(ValueError("x"))


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    opened = database.connect(database_url)
    yield opened
    opened.dispose()


def test_probe_accepts_an_intact_database_while_another_connection_writes(engine: sa.Engine) -> None:
    with database.transaction(engine) as connection:
        connection.execute(WRITE)
        database.probe(engine)
    database.probe(engine)


def test_probe_finds_a_missing_column(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE projects RENAME COLUMN origins TO other"))
    with pytest.raises(sa.exc.DBAPIError) as raised:
        database.probe(engine)
    assert cause_of(raised.value) is Cause.PROGRAM
    assert status_of(raised.value).startswith("does not fit this version of the program")


def test_probe_finds_a_read_only_sqlite_file(file: Path) -> None:
    engine = read_only(file)
    with pytest.raises(sa.exc.DBAPIError) as raised:
        database.probe(engine)
    engine.dispose()
    assert status_of(raised.value) == "damaged, read-only or not accessible: see the log (SQLITE_READONLY)"


def test_probe_finds_a_read_only_postgresql_server(server: str) -> None:
    engine = sa.create_engine(server, connect_args={"options": "-c default_transaction_read_only=on"})
    with pytest.raises(sa.exc.DBAPIError) as raised:
        database.probe(engine)
    engine.dispose()
    assert status_of(raised.value) == "damaged, read-only or not accessible: see the log (25006)"
