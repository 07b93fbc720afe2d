"""What a commit of the lake says is done is on the disk."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.warehouse.site import NOON, Site, view
from warehouse.lake import delta_log, delta_table
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.maintenance import catch_up

COMMITS: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: delta_table.append(table, catch_up.hits_of(hot_rows(table)), "node", 9),
    "replace_partition": lambda table: delta_table.replace_partition(
        table, HITS_TABLE, NOON.date().isoformat(), table.to_pyarrow_table().to_reader()
    ),
    "delete": lambda table: delta_table.delete(table, "path = '/a'"),
}


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    made = Site(tmp_path / "data")
    made.post(view("/a"), view("/b"))
    made.load()
    yield made
    made.close()


def hot_rows(table: DeltaTable) -> pa.Table:
    return table.to_pyarrow_table().drop_columns(["date"])


def written(table: DeltaTable, version: int) -> set[Path]:
    """A version's commit, the files that it names, and the folders that name them."""
    root = delta_log.folder(table)
    commit = root / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    files = {root / unquote(action["add"]["path"]) for action in actions if "add" in action}
    return {commit, commit.parent, root} | files | {file.parent for file in files}


@pytest.mark.parametrize("commit", COMMITS)
def test_commit_is_on_the_disk_when_its_call_returns(site: Site, synced: set[Path], commit: str) -> None:
    table = site.table(HITS_TABLE)
    COMMITS[commit](table)
    assert table.version() == 2
    assert len(written(table, 2)) > 4
    assert written(table, 2) <= synced


def test_new_tables_are_on_the_disk(tmp_path: Path, synced: set[Path]) -> None:
    delta_table.create(tmp_path)
    assert tmp_path in synced
    for spec in delta_table.TABLES:
        assert written(delta_table.open_table(tmp_path, spec), 0) <= synced


def test_delete_of_nothing_is_no_commit(site: Site) -> None:
    table = site.table(HITS_TABLE)
    assert (delta_table.delete(table, "path = '/c'"), table.version()) == (0, 1)
    assert (delta_table.delete(table, "path = '/a'"), table.version()) == (1, 2)
