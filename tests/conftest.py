"""Shared fixtures, with real files, SQLite, Delta, DuckDB, processes and sockets."""

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import core, settings

from tests import programs, rounds, shared_tls
from tests.processes import ending
from tests.processes.ports import held_port
from tests.processes.running import Running, services
from tests.programs import require, skip
from tests.stores import object_store as object_store_server
from tests.stores import postgresql as postgresql_server
from tests.stores import shared
from tests.stores.small_disk import SmallDisk, may_mount, mounted
from warehouse.folder import sqlite_url
from warehouse.hotlog.connection import HotLogPlace, server_of

LONG = (
    "test_schemathesis.py", "test_rollups.py", "test_reclassify.py", "test_every_page.py", "test_visitors.py",
    "test_reading_laws.py", "test_lake.py", "test_ledger.py", "test_rounds_over_nodes.py", "test_remote_lake.py",
    "test_recovery.py", "test_end_to_end.py", "test_power_loss.py", "test_scheduler.py", "test_service.py",
    "test_spine.py", "test_exactly_once.py", "test_combined.py", "test_overview.py", "test_path_list.py",
    "test_writer.py", "test_cells.py", "test_sql.py", "test_turn.py", "test_tail.py", "test_full_disk.py",
    "test_compact.py", "test_rollup_counts.py", "test_logs.py", "test_verdicts.py", "test_nodes_and_object_store.py",
    "test_doctor.py", "test_pages.py", "test_sandbox_attacks.py", "test_deletion.py", "test_as_of.py",
    "test_supervisor.py", "test_service_lock.py", "test_command.py", "test_simulation.py", "test_upgrade.py",
    "test_importer.py", "test_analysis.py", "test_readers.py", "test_commands_on_nodes.py", "test_small_requests.py",
    "test_erase.py", "test_load.py", "test_shared_overview.py", "test_statements.py", "test_unmeasured.py",
    "test_check.py", "test_attempts.py", "test_errors.py", "test_links.py", "test_workspace_attacks.py",
    "test_two_nodes.py", "test_ranked_pages.py", "test_one_moment.py", "test_pull_request.py", "test_files.py",
    "test_lost_control.py", "test_main.py", "test_kills.py",
)  # fmt: skip
"""Names of the files that take longer than 10 s. They start first: a long file that starts last leaves a core idle."""
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 6 << 30
"""Free space in MEMORY, in bytes, with which the tests' folders are in it. A run uses up to 3 GiB.

On a disk an fsync takes 2 ms, and a test of the lake calls it a hundred times.
"""


def pytest_configure(config: pytest.Config) -> None:
    ending.watch()
    if shared.create():
        config.add_cleanup(shared.end)
    config.pluginmanager.register(programs)
    config.pluginmanager.register(rounds)
    # By default, 0.2 s of an example fail its test, and each run has other random numbers.
    settings.register_profile("any machine", deadline=None, derandomize=not rounds.SEED)
    settings.load_profile("any machine")
    core.global_force_seed = rounds.SEED or None
    shared_tls.enable()
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


def pytest_collection_finish() -> None:
    """Exempt the 400,000 objects of collected tests from garbage collection, to save 2 % of the processor time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Kill the services that the body of a test has started and did not stop, because it failed."""
    before = len(services)
    try:
        yield
    finally:
        while len(services) > before:
            services.pop().kill_if_running()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seed = terminalreporter.config.getoption("randomly_seed", None)
    if seed is not None:
        terminalreporter.write_line(f"Random order of the tests; repeated by --randomly-seed={seed}")


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else, at the end, the bindings of DuckDB print the frozen objects as leaks
    gc.callbacks.clear()  # the one of Hypothesis outlives its module, and with it all that its caches refer to


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield one running service for tests that can share it: each uses paths, days or projects of its own."""
    environ = {"READERSHIP_BEACONS_PER_MINUTE": "1000000", "READERSHIP_JOBS_AT_ONCE": "0"}
    running = Running(tmp_path_factory.mktemp("shared") / "data", environ=environ)
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="session")
def postgresql() -> str:
    """Return the folder of the socket of the PostgreSQL server."""
    require("initdb", "setpriv")
    return shared.postgresql_folder()


@pytest.fixture(scope="session")
def object_store() -> str:
    """Return the URL of the S3 server."""
    return shared.object_store_url()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Yield a port of 127.0.0.1 at which connections are refused."""
    with held_port() as port:
        yield port


@pytest.fixture
def bucket(object_store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URI of an empty bucket, which this process can read and write."""
    for name, value in object_store_server.environ(object_store).items():
        monkeypatch.setenv(name, value)
    return object_store_server.new_bucket(object_store)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of an empty control database, on SQLite and on PostgreSQL in turn."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path_factory.mktemp("control") / "control.sqlite")
    return postgresql_server.new_database(request.getfixturevalue("postgresql"))


@pytest.fixture(params=["sqlite", "postgresql"])
def hot_log(request: pytest.FixtureRequest, tmp_path: Path) -> HotLogPlace:
    """Return the place of a hot log that does not exist, in a file and in PostgreSQL in turn."""
    if request.param == "sqlite":
        return tmp_path / "hot.sqlite"
    server = server_of(postgresql_server.new_database(request.getfixturevalue("postgresql")))
    assert server is not None
    return server


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Yield a function that starts a service for one test: `start(processes=4, READERSHIP_LOAD_EVERY_S="1")`."""
    started: list[Running] = []

    def make(processes: int = 1, **environ: str) -> Running:
        started.append(Running(tmp_path / f"data{len(started)}", processes, environ))
        return started[-1].start()

    yield make
    for running in started:
        running.kill_if_running()


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SmallDisk]:
    """Yield a file system of 48 MiB, or of the number of MiB in the test's indirect parameter."""
    if not may_mount():
        skip("the right to mount", "run the tests as root")
    with mounted(tmp_path / "disk", getattr(request, "param", 48)) as disk:
        yield disk


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Return a list to which each fsync of the test's process appends its file or folder."""
    seen: set[Path] = set()
    fsync = os.fsync

    def spy(handle: int) -> None:
        seen.add(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    return seen
