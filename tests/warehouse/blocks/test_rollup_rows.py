"""Rows of a project in a Parquet file, compared with a filter of all rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from warehouse.blocks import rollup_rows

PROJECTS = ["b", *["d"] * 5, "e", *["g"] * 2]
ROWS = pa.table(
    {
        "project_id": PROJECTS,
        "agent": ["x", "x", None, "y", "x", "x", "x", "z", "x"],
        "path": [f"/{number}" for number in range(9)],
        "human": pa.array([0, 0, 7, 0, 0, 0, 0, 1, 2], pa.uint32()),
        "ai": pa.array([5, 0, 0, 0, 0, 0, 0, 3, 4], pa.uint32()),
        "day": pa.array([1, 1, 2, 3, 1, 2, 0, 0, 0], pa.uint8()),
    }
)


@pytest.fixture(scope="module", params=[1, 2, 3, 100], ids="row groups of {}".format)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file whose projects begin and end within row groups, and at their ends."""
    file = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(ROWS, file, row_group_size=request.param)
    return file


def expected(project: str) -> pa.Table:
    return ROWS.filter(pc.equal(ROWS["project_id"], project))


@pytest.mark.parametrize("project", ["a", "b", "c", "d", "e", "f", "g", "h"])
def test_rows_are_those_of_the_project_in_the_order_of_the_file(file: Path, project: str) -> None:
    rows, wanted = rollup_rows.read(file, project), expected(project)
    assert rows.num_rows == wanted.num_rows
    for name in ("human", "ai", "day"):
        assert rollup_rows.numbers(rows, name).tolist() == wanted[name].to_pylist()
    for name in ("agent", "path"):
        assert name not in rows.column_names or rows[name].to_pylist() == wanted[name].to_pylist()
    assert {"agent", "path"} <= set(rows.column_names)


@pytest.mark.parametrize("project", ["b", "d", "f"])
def test_only_the_chosen_columns_are_read(file: Path, project: str) -> None:
    rows = rollup_rows.find(file, project).read(["path", "human"])
    assert set(rows.column_names) <= {"path", "human"}
    assert rows["path"].to_pylist() == expected(project)["path"].to_pylist()
    assert rollup_rows.numbers(rows, "human").tolist() == expected(project)["human"].to_pylist()


def test_row_groups_of_other_projects_are_not_read(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=2)
    rows = rollup_rows.find(tmp_path / "rows.parquet", "d")
    assert (rows.groups, rows.first, rows.count) == ((0, 1, 2), 1, 5)
    assert "ai" in rows.read().column_names  # b, which has some, is in the first row group
    pq.write_table(ROWS.slice(1), tmp_path / "rows.parquet", row_group_size=5)
    assert "ai" not in rollup_rows.read(tmp_path / "rows.parquet", "d").column_names


@pytest.mark.parametrize("project", ["e", "g"])
def test_project_begins_after_the_first_of_its_possible_row_groups(tmp_path: Path, project: str) -> None:
    """Write a file without statistics, in which any row group may have rows of the project."""
    pq.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=5, write_statistics=False)
    rows = rollup_rows.find(tmp_path / "rows.parquet", project)
    assert rows.groups == (0, 1)
    assert rows.read().to_pydict() == expected(project).drop_columns(["project_id"]).to_pydict()


def test_column_that_was_left_out_is_zero() -> None:
    rows = pa.table({"path": ["/a", "/b"]})
    zeros = rollup_rows.numbers(rows, "human")
    assert (zeros.tolist(), zeros.dtype) == ([0, 0], np.uint32)


@pytest.mark.parametrize("project", ["b", "d", "f", "g"])
@pytest.mark.parametrize("agent", ["x", "y", "z", "xx"])
def test_rows_with_a_value_are_those_of_a_filter(file: Path, project: str, agent: str) -> None:
    rows = rollup_rows.read_where(file, project, {"agent": agent}, ["path", "day"])
    wanted = expected(project).filter(pc.equal(expected(project)["agent"], agent))
    assert rows.to_pydict() == wanted.select(["path", "day"]).to_pydict()


BY_DAY = pa.table(
    {
        "project_id": [*["c"] * 2, *["d"] * 9, *["e"] * 2],
        "day": pa.array([1, 31, 1, 1, 2, 4, 4, 4, 7, 31, 31, 1, 4], pa.uint8()),
        "human": pa.array(range(1, 14), pa.uint32()),
    }
)


@pytest.mark.parametrize(
    "days", [range(1, 2), range(2, 5), range(3, 4), range(5, 32), range(1, 31), range(8, 8)], ids=str
)
@pytest.mark.parametrize("rows_of_a_group", [1, 2, 3, 100])
def test_rows_of_days_are_all_of_these_days_and_few_others(tmp_path: Path, days: range, rows_of_a_group: int) -> None:
    pq.write_table(BY_DAY, tmp_path / "days.parquet", row_group_size=rows_of_a_group)
    rows = rollup_rows.read(tmp_path / "days.parquet", "d", days).to_pylist()
    of_project = [row for row in BY_DAY.to_pylist() if row["project_id"] == "d"]
    wanted = [row["human"] for row in of_project if row["day"] in days]
    assert [row["human"] for row in rows if row["day"] in days] == wanted
    assert {row["human"] for row in rows} <= {row["human"] for row in of_project}
    assert rows_of_a_group == 100 or len(rows) - len(wanted) <= 2 * (rows_of_a_group - 1)


@pytest.mark.parametrize("statistics", [False, ["day"], ["project_id"]], ids=str)
@pytest.mark.parametrize("rows_of_a_group", [1, 2, 5])
def test_rows_of_days_are_complete_without_statistics(
    tmp_path: Path, statistics: bool | list[str], rows_of_a_group: int
) -> None:
    rows = [(project, day) for project in ("c", "d", "e") for day in range(1, 32)]
    columns = {"project_id": [project for project, _ in rows], "day": pa.array([day for _, day in rows], pa.uint8())}
    file = tmp_path / "days.parquet"
    pq.write_table(pa.table(columns), file, row_group_size=rows_of_a_group, write_statistics=statistics)
    for days in (range(1, 2), range(2, 3), range(5, 6), range(1, 30), range(17, 32), range(31, 32)):
        read = rollup_rows.read(file, "d", days)["day"].to_pylist()
        assert [day for day in read if day in days] == [*days]
