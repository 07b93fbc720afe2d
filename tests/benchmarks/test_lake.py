"""Generated lakes: `doctor` accepts them, and they have the shape that was asked for."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks import lake
from benchmarks.lake import Lake
from tests.benchmarks.conftest import SHAPE
from tests.processes import running
from warehouse.tables import HITS_TABLE

pytestmark = pytest.mark.night


def readership(target: Lake, *arguments: str) -> list[dict[str, Any]]:
    """Return the rows that a command of `readership` prints."""
    done = running.readership("--data", str(target.data), *arguments)
    assert done.returncode == 0, done.stderr
    output = done.stdout
    return json.loads(output) if output.startswith("[") else [json.loads(line) for line in output.splitlines()]


def test_doctor_finds_no_fault(generated: Lake) -> None:
    assert not [each for each in readership(generated, "doctor") if each["fault"] is not None]


def test_lake_has_the_hits_days_and_projects_of_its_shape(generated: Lake) -> None:
    sql = (
        "SELECT count(*) AS hits, count(DISTINCT date) AS days, CAST(max(date) AS VARCHAR) AS last_day,"
        " count(DISTINCT project_id) AS projects, count(DISTINCT path) FILTER (project_id = 'bench') AS paths FROM hits"
    )
    expected = {"hits": 30_000, "days": 40, "last_day": "2026-10-04", "projects": 3, "paths": 300}
    assert readership(generated, "sql", sql) == [expected]


def test_traffic_has_its_shares_and_names(generated: Lake) -> None:
    sql = (
        "SELECT traffic, count(*) / 30_000 AS share, count(DISTINCT agent) AS agents,"
        " count(DISTINCT operator) > 10 AS has_operators, count(DISTINCT purpose) > 2 AS has_purposes"
        " FROM (FROM hits SELECT * EXCLUDE ts) GROUP BY traffic ORDER BY traffic"
    )
    ai, bot, human = readership(generated, "sql", sql)
    assert [each["share"] for each in (human, ai, bot)] == pytest.approx([0.7, 0.15, 0.15], abs=0.01)
    assert (human["agents"], ai["agents"], ai["has_operators"], ai["has_purposes"]) == (0, 40, True, True)
    assert bot["agents"] > 80


def test_people_have_visits_and_some_load_assets(generated: Lake) -> None:
    sql = (
        "SELECT count(*) / count(DISTINCT (date, visitor)) AS views, count(DISTINCT country) AS countries,"
        " count(DISTINCT channel) > 5 AS has_channels, (FROM asset_loads SELECT count(*)) > 1_000 AS has_loads"
        " FROM hits WHERE traffic = 'human'"
    )
    [row] = readership(generated, "sql", sql)
    assert row.pop("views") == pytest.approx(2.2, abs=0.2)
    assert row == {"countries": 40, "has_channels": True, "has_loads": True}


def test_rows_of_a_file_are_sorted(generated: Lake) -> None:
    files = sorted((generated.data / "lake" / "hits").rglob("*.parquet"))
    assert len(files) == SHAPE.days
    keys = pq.read_table(files[0], columns=[*HITS_TABLE.order], partitioning=None).to_pylist()
    rows = [tuple(row[name] for name in HITS_TABLE.order) for row in keys]
    assert rows == sorted(rows)


def test_large_project_has_nine_tenths_of_the_hits(generated: Lake) -> None:
    [row] = readership(generated, "sql", "SELECT avg((project_id = 'bench')::INT) AS share FROM hits")
    assert row["share"] == pytest.approx(0.9, abs=0.01)


def test_lakes_of_one_shape_have_the_same_rows(generated: Lake, tmp_path: Path) -> None:
    other = lake.generate(tmp_path / "other", SHAPE)
    sql = "SELECT bit_xor(hash(project_id, ts, path, agent, referrer, source)) AS hash FROM hits"
    assert readership(other, "sql", sql) == readership(generated, "sql", sql)


def test_change_of_a_clone_does_not_change_the_original(generated: Lake, tmp_path: Path) -> None:
    def rollups(of: Lake) -> set[str]:
        folder = of.data / "lake" / "rollups"
        return {str(file.relative_to(folder)) for file in folder.rglob("coverage.json")}

    before = rollups(generated)
    copy = lake.clone(lake.opened(generated.folder), tmp_path / "copy")
    lake.derive(copy)
    assert before
    assert before.isdisjoint(rollups(copy))
    assert rollups(generated) == before
    assert not [each for each in readership(copy, "doctor") if each["fault"] is not None]
