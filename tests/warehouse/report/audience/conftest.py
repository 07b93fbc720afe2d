"""A lake with closed months, files that no rollup covers, and hot rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from tests.warehouse.report.laws import generated
from tests.warehouse.report.laws.generated import MONTHS, NOW
from tests.warehouse.site import CACHE_BYTES, Row, Site
from warehouse.control.policy import Periods
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.query.hits_snapshot import HitsReader
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.rollups import writer


@dataclass(frozen=True)
class Lake:
    """Reports of a lake, all of its rows, and the source policies of its projects."""

    reports: Reports
    rows: list[Row] = field(repr=False)
    policies: dict[str, Periods]

    def query(self, chance: Random) -> Query:
        """Return a random query, and set the source policy of its project to that of its filters."""
        query, policy = generated.query(chance), generated.policy(chance)
        self.policies[query.project] = policy
        return replace(query, filters=replace(query.filters, policy=policy))


@pytest.fixture(scope="module")
def lake(shared_lake: Lake) -> Lake:
    """Return the lake without source policies."""
    shared_lake.policies.update(dict.fromkeys(generated.PROJECTS, ()))
    return shared_lake


@pytest.fixture(scope="session")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Yield a lake in which all months but the last have a rollup, and some of their days a later file."""
    site, chance = Site(tmp_path_factory.mktemp("audience") / "data"), Random(14)
    in_rollups, in_files, hot = ([generated.row(chance) for _ in range(count)] for count in (900, 100, 100))
    site.stage(in_rollups)
    site.load()
    write_rollups(site, MONTHS[:-1])
    site.stage(in_files)
    site.load()
    site.post(*hot)
    reader = HitsReader(site.hot_log, site.root, NOW.timestamp)
    policies: dict[str, Periods] = dict.fromkeys(generated.PROJECTS, ())
    reports = Reports(reader, site.root, site.spill, CACHE_BYTES, policies.__getitem__)
    yield Lake(reports, in_rollups + in_files + hot, policies)
    reports.close()
    site.close()


def settle(site: Site, state: str) -> None:
    """Load the rows, and count them in rollups, or leave them hot."""
    if state != "hot":
        site.load()
    if state == "rollups":
        write_rollups(site, {file.partition[:7] for file in site.state(HITS_TABLE).files})


def write_rollups(site: Site, months: Iterable[str]) -> None:
    files = site.state(HITS_TABLE).files
    for month in months:
        writer.write(site.root, site.database, month, [file for file in files if file.partition[:7] == month])
