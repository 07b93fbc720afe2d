"""Only the rows with the wanted texts are read, in whichever row groups they are."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from warehouse.rollups import sorted_rows


@pytest.mark.parametrize("row_group_rows", [1, 2, 3, 100])
@pytest.mark.parametrize("project", ["a", "b", "c", "", "z"])
def test_rows_with_the_wanted_texts_are_returned_in_order(tmp_path: Path, row_group_rows: int, project: str) -> None:
    rows = [(each, dimension, views) for each in "abc" for dimension in "xy" for views in range(3)]
    names = ["project_id", "dimension", "views"]
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=row_group_rows)
    wanted = {"project_id": project, "dimension": "y"}
    read = sorted_rows.read(tmp_path / "rows.parquet", wanted, ["views"], [])
    assert read["views"].to_pylist() == [views for *texts, views in rows if texts == [project, "y"]]
    some = sorted_rows.read(tmp_path / "rows.parquet", wanted, ["views"], [], pc.field("views") != 1)
    assert some["views"].to_pylist() == [views for views in read["views"].to_pylist() if views != 1]


@pytest.mark.parametrize("dimensions", [[None, "y", "y"], ["y", "y", None]], ids=["nulls first", "nulls last"])
def test_null_is_not_wanted_in_a_row_group_with_one_text(tmp_path: Path, dimensions: list[str | None]) -> None:
    table = pa.table({"project_id": ["a"] * 3, "dimension": dimensions, "views": [0, 1, 2]})
    pq.write_table(table, tmp_path / "rows.parquet")
    read = sorted_rows.read(tmp_path / "rows.parquet", {"project_id": "a", "dimension": "y"}, ["views"], [])
    assert read["views"].to_pylist() == [views for views in range(3) if dimensions[views] == "y"]
