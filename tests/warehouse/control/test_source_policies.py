"""The source policies of a project are stored by day, and deleted with the project."""

from datetime import date
from functools import partial
from pathlib import Path

import pytest

from tests.stores.between import at_once
from tests.stores.postgresql import new_database
from warehouse.control import database, projects, source_policies
from warehouse.control.policy import Period, Policy
from warehouse.errors import ProjectNotFound


def test_policy_from_a_day_on_replaces_later_ones(tmp_path: Path) -> None:
    engine = database.connect(f"sqlite:///{tmp_path / 'control.sqlite'}")
    for id in ("site", "other"):
        projects.create(engine, id, (), 0)
    assert source_policies.periods(engine, "site") == ()
    source_policies.put(engine, "site", "all", date(2026, 9, 10))
    assert source_policies.periods(engine, "site") == ()  # every source counts, as without a policy
    source_policies.put(engine, "site", "log_only", date(2026, 9, 20))
    source_policies.put(engine, "other", "beacon_only", date.min)
    first, last = Period(date(2026, 9, 10), "all"), Period(date(2026, 9, 20), "log_only")
    assert source_policies.periods(engine, "site") == (first, last)
    assert source_policies.put(engine, "site", "beacon_only", date(2026, 9, 15)) == (
        first,
        Period(date(2026, 9, 15), "beacon_only"),
    )
    projects.delete(engine, "site")
    projects.create(engine, "site", (), 0)
    assert source_policies.periods(engine, "site") == ()
    assert source_policies.periods(engine, "other") == (Period(date.min, "beacon_only"),)
    with pytest.raises(ProjectNotFound):
        source_policies.put(engine, "none", "all", date.min)
    engine.close()


def test_policies_that_are_set_at_once_are_both_accepted(postgresql: str) -> None:
    engine = database.connect(new_database(postgresql))
    projects.create(engine, "site", (), 0)
    policies: list[Policy] = ["beacon_only", "log_only"]
    first, second = (partial(source_policies.put, engine, "site", each, date(2026, 9, 10)) for each in policies)
    at_once(engine, "DELETE FROM source_policies", first, second)
    assert source_policies.periods(engine, "site") == (Period(date(2026, 9, 10), "log_only"),)
    engine.close()
