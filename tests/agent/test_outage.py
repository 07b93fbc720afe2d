"""The control database goes away during a turn: what was done is not lost, and nothing is done twice at once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent import retry
from agent.jobs import journal, store
from agent.jobs.queue import Lease
from agent.worker import turn
from agent.worker.worker import Worker, WorkerConfig
from tests.agent.clock import SECOND_US
from tests.agent.site import SECRETS, Site, configured, site
from tests.outage import way_to
from tests.running import PROJECT
from tests.waiting import until
from warehouse.control import database as control
from warehouse.folder import sqlite_url

WAIT = "while [ ! -e {0}/go ]; do sleep 0.02; done"
BEGIN = "echo >> {0}/runs; touch {0}/begun"
LEASE_S, LONG_S = 4, 60


@dataclass
class Database:
    """`engine` is what the worker has, `past` reaches the database whatever happens to the worker's way there."""

    engine: sa.Engine
    past: sa.Engine
    cut: Callable[[], None]
    mend: Callable[[], None]
    silence: Callable[[], None]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    """Cut means locked by another, for longer than the worker waits."""
    url = sqlite_url(tmp_path / "control.sqlite")
    engine, past, other = (control.connect(url) for _ in range(3))
    engine.dispose()
    sa.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout=0"))
    with other.connect() as holder:
        yield Database(
            engine,
            past,
            lambda: holder.exec_driver_sql("BEGIN IMMEDIATE") and None,
            holder.rollback,
            lambda: pytest.fail("a file is never silent"),
        )
    for each in (engine, past, other):
        each.dispose()


@pytest.fixture
def postgresql_way(postgresql: str) -> Iterator[Database]:
    with way_to(postgresql) as (way, url, past_url):
        engine, past = control.connect(url), control.connect(past_url)
        yield Database(engine, past, way.cut, way.mend, way.silence)
        way.cut()
        engine.dispose()
        past.dispose()


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Database]:
    """Cut means that all of the worker's connections are in use."""
    url = sqlite_url(tmp_path / "control.sqlite")
    past = control.connect(url)
    engine = sa.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.2)
    held: list[sa.Connection] = []

    def take_all() -> None:
        while not held:
            with suppress(sa.exc.TimeoutError):
                held.append(engine.connect())

    yield Database(engine, past, take_all, lambda: held.pop().close(), lambda: pytest.fail("a pool is never silent"))
    engine.dispose()
    past.dispose()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as found:
        yield found


@contextmanager
def working(engine: sa.Engine, folder: Path, lease_s: float) -> Iterator[None]:
    worker = Worker(WorkerConfig(engine, folder / "jobs", SECRETS, 1, lease_s))
    worker.start()
    try:
        yield
    finally:
        worker.close()


def create(engine: sa.Engine) -> str:
    return store.create(engine, PROJECT, "Write a page", None, SECOND_US).job.id


def status(engine: sa.Engine, id: str) -> str:
    return store.find(engine, PROJECT, id).status


@pytest.mark.parametrize(
    ("name", "ends", "becomes"),
    [
        ("sqlite", "cat > page.md", "completed"),
        ("postgresql_way", "echo no such model >&2; exit 3", "failed"),
        ("pool", "cat > page.md", "completed"),
    ],
    ids=["sqlite, a step", "postgresql, the end", "no connection left, a step"],
)
def test_what_became_of_an_agent_is_noted_once_the_database_is_back(
    request: pytest.FixtureRequest,
    made: Site,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    ends: str,
    becomes: str,
) -> None:
    database: Database = request.getfixturevalue(name)
    configured(database.past, made, "sh", "-c", f"{BEGIN}; {WAIT}; {ends}".format(tmp_path))
    id = create(database.past)
    with working(database.engine, tmp_path, LONG_S):
        until((tmp_path / "begun").exists)
        database.cut()
        (tmp_path / "go").touch()
        until(lambda: "progress of a turn cannot be written" in caplog.text)
        database.mend()
        until(lambda: status(database.past, id) != "active")
    assert status(database.past, id) == becomes, journal.read(database.past, id).entries
    assert (tmp_path / "runs").read_text() == "\n", "the agent ran once"
    assert len(made.pulls(id)) == (becomes == "completed")


def test_permanent_database_error_is_not_retried(sqlite: Database) -> None:
    def write() -> None:
        with sqlite.engine.begin() as connection:
            connection.execute(sa.text("UPDATE turns SET no_such_column = 1"))

    with pytest.raises(sa.exc.OperationalError, match="no such column"):
        retry.database_write(write, lambda: False)


def test_a_worker_that_ends_while_it_cannot_note_an_end_has_no_fault(
    sqlite: Database, made: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configured(sqlite.past, made, "sh", "-c", f"{BEGIN}; {WAIT}; exit 3".format(tmp_path))
    id = create(sqlite.past)
    with working(sqlite.engine, tmp_path, LONG_S):
        until((tmp_path / "begun").exists)
        sqlite.cut()
        (tmp_path / "go").touch()
        until(lambda: "progress of a turn cannot be written" in caplog.text)
    assert "cannot work on the queue of agent jobs" not in caplog.text
    sqlite.mend()
    assert status(sqlite.past, id) == "active"


def test_a_turn_that_finds_the_database_away_is_begun_again_and_has_no_fault(
    sqlite: Database, made: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform, away = turn.perform, [sa.exc.OperationalError("SELECT 1", {}, Exception("the server is away"))]

    def perform_later(lease: Lease, context: turn.TurnContext) -> str | None:
        if away:
            raise away.pop()
        return perform(lease, context)

    monkeypatch.setattr(turn, "perform", perform_later)
    configured(sqlite.past, made, "sh", "-c", "cat > page.md")
    id = create(sqlite.past)
    with working(sqlite.engine, tmp_path, lease_s=2):
        until(lambda: status(sqlite.past, id) != "active")
    assert (status(sqlite.past, id), away) == ("completed", [])


def test_a_turn_is_given_up_before_another_worker_may_take_it(
    postgresql_way: Database, made: Site, tmp_path: Path
) -> None:
    """The agent of the first worker would never end; the second one's tells whether the first is still there."""
    inner = f"if [ -e {{0}}/begun ]; then {BEGIN}; cat > page.md; else {BEGIN}; sleep 1000; fi".format(tmp_path)
    script = f"flock -n {tmp_path}/lock sh -c '{inner}' || touch {tmp_path}/twice"
    database = postgresql_way
    configured(database.past, made, "sh", "-c", script)
    id = create(database.past)
    with ExitStack() as stack:
        stack.enter_context(working(database.engine, tmp_path / "first", LEASE_S))
        stack.callback(database.mend)  # what waits for an answer has it before the worker is closed
        until((tmp_path / "begun").exists)
        database.silence()
        stack.enter_context(working(database.past, tmp_path / "second", LEASE_S))
        until(lambda: status(database.past, id) != "active")
    assert not (tmp_path / "twice").exists(), "two agents at once"
    assert (status(database.past, id), (tmp_path / "runs").read_text()) == ("completed", "\n\n")
    assert made.pushed(id) == ["First", "Write a page"]
    assert len(made.pulls(id)) == 1
