"""A lake with closed months, files that no rollup covers, and hot rows."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from tests.warehouse.report.laws import generated
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import Row, Site
from warehouse.control.policy import Periods
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.rollups import catalog, ranked
from warehouse.tables import HITS_TABLE

STATES = pytest.mark.parametrize("state", ["hot", "loaded", pytest.param("rollups", marks=pytest.mark.long)])
"""Decorator of tests whose rows `settle` stores in each state."""


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
        return replace(query, filters=query.filters.but(policy=policy))


def settle(site: Site, state: str) -> None:
    """Load the rows, and count them in rollups, or leave them hot."""
    if state != "hot":
        site.load()
    if state == "rollups":
        write_rollups(site, {file.partition[:7] for file in site.state(HITS_TABLE).files})


def write_rollups(site: Site, months: Iterable[str]) -> None:
    """Write the rollups of months, and a ranking of paths of which pages read few ranks first."""
    files = site.state(HITS_TABLE).files
    for month in months:
        write_rollup(site.root, site.database, month, [file for file in files if file.partition[:7] == month])
    ranked.write(site.root, site.database, catalog.choose(site.root, files).parts, (2, 8))
