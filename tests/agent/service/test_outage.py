"""Outage of the control database during a turn: no step is lost, and no two turns of a job run at once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent import retry
from agent.jobs import journal, store
from agent.worker.threads import WorkerConfig, WorkerThreads
from tests.agent.clock import SECOND_US
from tests.agent.service.site import SECRETS, Site, make_site, store_configuration
from tests.processes.running import PROJECT
from tests.processes.waiting import until
from tests.stores import sql
from tests.stores.outage import way_to
from warehouse.control import database as control
from warehouse.database.pool import Pool, PoolError
from warehouse.database.postgresql import ServerError
from warehouse.folder import sqlite_url

WAIT = "while [ ! -e {0}/go ]; do sleep 0.02; done"
BEGIN = "echo >> {0}/runs; touch {0}/begun"
LEASE_S, LONG_S = 4, 60


@dataclass
class Database:
    """Control database with an outage on demand.

    The worker uses `engine`, which `cut` or `silence` break and `repair` restores; `direct` always works.
    """

    engine: Pool
    direct: Pool
    cut: Callable[[], None]
    repair: Callable[[], None]
    silence: Callable[[], None]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    """Return a database in SQLite; `cut` locks it for longer than the worker waits."""
    url = sqlite_url(tmp_path / "control.sqlite")
    direct, other = (control.connect(url) for _ in range(2))
    engine = control.connect(url, busy_timeout_s=0)
    with other.connect() as locker:
        yield Database(
            engine,
            direct,
            lambda: locker.execute("BEGIN IMMEDIATE") and None,
            lambda: locker.execute("ROLLBACK") and None,
            lambda: pytest.fail("a file is never silent"),
        )
    for each in (engine, direct, other):
        each.close()


@pytest.fixture
def postgresql_way(postgresql: str) -> Iterator[Database]:
    with way_to(postgresql) as (way, url, direct_url):
        engine, direct = control.connect(url), control.connect(direct_url)
        yield Database(engine, direct, way.cut, way.restore, way.silence)
        way.cut()
        engine.close()
        direct.close()


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Database]:
    """Return a database whose `cut` takes all connections of the worker's pool."""
    url = sqlite_url(tmp_path / "control.sqlite")
    direct = control.connect(url)
    engine = Pool(url, sql.opened(url)._open, connections_max=1, wait_s=0.2)
    taken = ExitStack()

    def take_all() -> None:
        until(lambda: engine._free.acquire(timeout=1))
        taken.callback(engine._free.release)

    yield Database(engine, direct, take_all, taken.close, lambda: pytest.fail("a pool is never silent"))
    engine.close()
    direct.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with make_site(tmp_path) as site:
        yield site


@contextmanager
def working(engine: Pool, folder: Path, lease_s: float) -> Iterator[None]:
    threads = WorkerThreads(WorkerConfig(engine, folder / "jobs", SECRETS, 1, lease_s))
    threads.start()
    try:
        yield
    finally:
        threads.close()


def create(engine: Pool) -> str:
    return store.create(engine, PROJECT, "Write a page", None, SECOND_US).job.id


def status(engine: Pool, id: str) -> str:
    return store.find(engine, PROJECT, id).status


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "ends", "becomes"),
    [
        ("sqlite", "cat > page.md", "completed"),
        ("postgresql_way", "echo no such model >&2; exit 3", "failed"),
        ("pool", "cat > page.md", "completed"),
    ],
    ids=["sqlite, a step", "postgresql, the end", "no connection left, a step"],
)
def test_result_of_the_coding_agent_is_stored_after_the_outage(
    request: pytest.FixtureRequest,
    site: Site,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    ends: str,
    becomes: str,
) -> None:
    database: Database = request.getfixturevalue(name)
    store_configuration(database.direct, site, "sh", "-c", f"{BEGIN}; {WAIT}; {ends}".format(tmp_path))
    id = create(database.direct)
    with working(database.engine, tmp_path, LONG_S):
        until((tmp_path / "begun").exists)
        database.cut()
        (tmp_path / "go").touch()
        until(lambda: "progress of a turn cannot be written" in caplog.text)
        database.repair()
        until(lambda: status(database.direct, id) != "active")
    assert status(database.direct, id) == becomes, journal.read(database.direct, id)[0]
    assert (tmp_path / "runs").read_text() == "\n", "the coding agent ran once"
    assert len(site.pulls(id)) == (becomes == "completed")


def test_permanent_database_error_is_not_retried(sqlite: Database) -> None:
    def write() -> None:
        with sqlite.engine.transaction() as connection:
            connection.execute("UPDATE turns SET no_such_column = 1")

    with pytest.raises(PoolError, match="no such column"):
        retry.database_write(write, lambda: False)


@pytest.mark.long
def test_worker_that_closes_during_an_outage_logs_no_error(
    sqlite: Database, site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store_configuration(sqlite.direct, site, "sh", "-c", f"{BEGIN}; {WAIT}; exit 3".format(tmp_path))
    id = create(sqlite.direct)
    with working(sqlite.engine, tmp_path, LONG_S):
        until((tmp_path / "begun").exists)
        sqlite.cut()
        (tmp_path / "go").touch()
        until(lambda: "progress of a turn cannot be written" in caplog.text)
    assert "cannot work on the queue of agent jobs" not in caplog.text
    sqlite.repair()
    assert status(sqlite.direct, id) == "active"


@pytest.mark.long
def test_turn_that_meets_an_outage_at_its_start_begins_again(sqlite: Database, site: Site, tmp_path: Path) -> None:
    errors = [ServerError("the server is down", None, is_lost=True)]

    def fail_once(statement: str) -> None:
        if errors and "FROM agent_configurations" in statement:
            raise errors.pop()

    store_configuration(sqlite.direct, site, "sh", "-c", "cat > page.md")
    id = create(sqlite.direct)
    sql.watch(sqlite.engine, fail_once)
    with working(sqlite.engine, tmp_path, lease_s=2):
        until(lambda: status(sqlite.direct, id) != "active")
    assert (status(sqlite.direct, id), errors) == ("completed", [])
    assert "begins again, attempt 2: its lease had expired" in [
        entry.text for entry in journal.read(sqlite.direct, id)[0]
    ]


@pytest.mark.long
def test_turn_is_stopped_before_another_worker_claims_it(postgresql_way: Database, site: Site, tmp_path: Path) -> None:
    """Let two workers run the turn, the first without an end; the script detects if both agents run at once."""
    inner = f"if [ -e {{0}}/begun ]; then {BEGIN}; cat > page.md; else {BEGIN}; sleep 1000; fi".format(tmp_path)
    script = f"flock -n {tmp_path}/lock sh -c '{inner}' || touch {tmp_path}/twice"
    database = postgresql_way
    store_configuration(database.direct, site, "sh", "-c", script)
    id = create(database.direct)
    with ExitStack() as stack:
        stack.enter_context(working(database.engine, tmp_path / "first", LEASE_S))
        stack.callback(database.repair)  # before the worker closes, so that its queries end
        until((tmp_path / "begun").exists)
        database.silence()
        stack.enter_context(working(database.direct, tmp_path / "second", LEASE_S))
        until(lambda: status(database.direct, id) != "active")
    assert not (tmp_path / "twice").exists(), "two agents at once"
    assert (status(database.direct, id), (tmp_path / "runs").read_text()) == ("completed", "\n\n")
    assert site.pushed(id) == ["First", "Write a page"]
    assert len(site.pulls(id)) == 1
