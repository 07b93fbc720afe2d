"""Databases for the queries of reports, and a lake that many tests read."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import duckdb
import pytest

from tests.warehouse.report.lake import Lake, write_rollups
from tests.warehouse.report.laws import generated, model
from tests.warehouse.report.laws.generated import MONTHS, NOW
from tests.warehouse.report.laws.reference import LakeIn, SmallLake
from tests.warehouse.site import CACHE_BYTES, Site
from warehouse.control.policy import Periods
from warehouse.lake.roots import LocalPath
from warehouse.query import engine
from warehouse.query.result_cache import ResultCache
from warehouse.query.snapshot import SnapshotReader
from warehouse.report.reports import Reports
from warehouse.report.statements import Statements
from warehouse.rollups.catalog import ChosenRollups


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterable[duckdb.DuckDBPyConnection]:
    database = engine.connect(tmp_path_factory.mktemp("spill"))
    yield database
    database.close()


@pytest.fixture(scope="session")
def statements(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Statements]:
    """Yield statements without a cache, which read the lake that `SmallLake.use` chooses."""
    spill = tmp_path_factory.mktemp("statements")
    with closing(Statements(spill, ResultCache(0), lambda snapshot: ChosenRollups((), ()), lambda: None)) as statements:
        yield statements


@pytest.fixture(scope="session")
def lake_in(database: duckdb.DuckDBPyConnection, statements: Statements) -> LakeIn:
    """Return a function that creates a small lake in a folder."""
    return lambda folder: SmallLake(LocalPath(folder), database, statements)


@pytest.fixture
def small_lake(tmp_path: Path, lake_in: LakeIn) -> SmallLake:
    return lake_in(tmp_path)


@pytest.fixture(scope="module")
def lake(shared_lake: Lake) -> Lake:
    """Return the lake without source policies."""
    shared_lake.policies.update(dict.fromkeys(generated.PROJECTS, ()))
    return shared_lake


@pytest.fixture(scope="session")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Yield a lake in which every second month has a rollup, and some of its days a later file."""
    site, chance = Site(tmp_path_factory.mktemp("audience") / "data"), Random(14)
    in_rollups, in_files, hot = ([generated.row(chance) for _ in range(count)] for count in (900, 100, 100))
    site.stage(in_rollups)
    site.load()
    write_rollups(site, MONTHS[:-1:2])
    site.stage(in_files)
    site.load()
    site.post(*hot)
    reader = SnapshotReader(site.hot_log, site.root, NOW.timestamp)
    policies: dict[str, Periods] = dict.fromkeys(generated.PROJECTS, ())
    reports = Reports(reader, site.root, site.spill, CACHE_BYTES, policies.__getitem__)
    yield Lake(reports, model.with_evidence(in_rollups + in_files + hot, []), policies)
    reports.close()
    site.close()
