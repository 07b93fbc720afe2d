"""`project policy` begins with the source that a policy prefers, and prints what each choice leaves out."""

import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from api import data_folder, settings
from tests.api.cli.console import call, result
from tests.processes.running import PROJECT
from tests.warehouse.site import view
from warehouse.database.transaction import transaction
from warehouse.hotlog import batches
from warehouse.schema import HOT


def test_policy_begins_with_the_first_day_of_the_source_that_it_prefers(data: Path) -> None:
    """The log has views from day 1 on, and pages from day 3 on: only from then on a person is in both."""
    at = [datetime(2026, 9, day, 12, tzinfo=UTC) for day in (1, 2, 3, 4)]
    rows = [view(project_id=PROJECT, source="log", ts=ts) for ts in at]
    rows += [view(project_id=PROJECT, source="beacon", ts=ts) for ts in at[2:]]
    rows += [view(project_id=PROJECT, source="log", ts=ts, traffic="ai", rule="ai:GPTBot") for ts in at]
    chosen = settings.read({}, data)
    data_folder.prepare(chosen)
    with closing(batches.connect(chosen.hot_log)) as hot, transaction(hot):
        batches.append(hot, pa.Table.from_pylist(rows, HOT).to_batches()[0], int(time.time()))
    shown = call(data, "project", "policy", PROJECT, "beacon_people_log_machines", "--format", "json")
    assert result(shown) == [{"from": "2026-09-03", "policy": "beacon_people_log_machines"}]
    lines = [line.strip("│ ").split() for line in shown.err.splitlines() if line.startswith("│")]
    assert [[cell for cell in line if cell != "│"] for line in lines] == [
        ["now", "0", "0"],
        ["beacon_people_log_machines", "2026-09-03", "0", "2"],
        ["beacon_people_log_machines", "all", "days", "2", "2"],
    ]
    assert result(call(data, "project", "policy", PROJECT, "all")) == [{"from": None, "policy": "all"}]
    assert result(call(data, "project", "policy", PROJECT, "log_only")) == [
        {"from": "2026-09-01", "policy": "log_only"}
    ]
