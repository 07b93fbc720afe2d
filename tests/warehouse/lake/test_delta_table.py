"""Commits of the lake are synced when their call returns."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.warehouse.site import DAY, NOON, Site, hits_of, view
from warehouse.lake import delta_log, delta_table, rewriting, staging
from warehouse.lake.roots import LocalPath
from warehouse.tables import HITS_TABLE, TABLES

COMMITS: dict[str, Callable[[DeltaTable], object]] = {
    "append": lambda table: delta_table.append(table, hits_of(hot_rows(table)), "node", 9),
    "add_files": lambda table: delta_table.add_files(table, HITS_TABLE, staged(table), "node", 9),
    "replace_files": lambda table: rewriting.replace_files(
        table, HITS_TABLE, delta_table.list_files(table, HITS_TABLE), staged(table)
    ),
    "delete": lambda table: delta_table.delete(table, "path = '/a'"),
}


def prepare(site: Site) -> None:
    site.post(view("/a"), view("/b"))
    site.load()


@pytest.mark.parametrize("name", [spec.name for spec in TABLES])
def test_tables_that_another_node_creates_meanwhile_are_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, make_folder = LocalPath(tmp_path), LocalPath.make_folder

    def make_after_another_node(folder: LocalPath) -> None:
        if folder.name == name:
            monkeypatch.undo()
            delta_table.create(root)
        make_folder(folder)

    monkeypatch.setattr(LocalPath, "make_folder", make_after_another_node)
    delta_table.create(root)
    assert {delta_table.open_table(root, spec).version() for spec in TABLES} == {0}


def staged(table: DeltaTable) -> tuple[delta_table.File, ...]:
    """Return synced files in the table's folder that no commit names, with the rows of the table."""
    root = delta_log.folder(table).parent
    files = staging.stage(root, {HITS_TABLE: hot_rows(table)})
    staging.sync(root, files)
    return files.files(HITS_TABLE, root / HITS_TABLE.name)


def hot_rows(table: DeltaTable) -> pa.Table:
    return table.to_pyarrow_table().drop_columns(["date"])


def files_and_folders(table: DeltaTable, version: int) -> set[Path]:
    """Return the commit file of a version, the files that it adds, and their folders."""
    root = delta_log.folder(table)
    commit = root / "_delta_log" / f"{version:020}.json"
    added = [action["add"] for line in commit.read_text().splitlines() if "add" in (action := json.loads(line))]
    assert all(each["dataChange"] for each in added), "readers that follow the log would skip the rows"
    files = {root / unquote(each["path"]) for each in added}
    return {commit, commit.parent, root} | files | {file.parent for file in files}


@pytest.mark.parametrize("commit", COMMITS)
def test_commit_is_synced_when_its_call_returns(site: Site, synced: set[Path], commit: str) -> None:
    table = site.table(HITS_TABLE)
    COMMITS[commit](table)
    assert table.version() == 2
    assert len(files_and_folders(table, 2)) > 4
    assert files_and_folders(table, 2) <= synced


def test_new_tables_are_synced(tmp_path: Path, synced: set[Path]) -> None:
    delta_table.create(LocalPath(tmp_path))
    assert tmp_path in synced
    for spec in TABLES:
        assert files_and_folders(delta_table.open_table(LocalPath(tmp_path), spec), 0) <= synced


def test_deletion_without_matching_rows_makes_no_commit(site: Site) -> None:
    table = site.table(HITS_TABLE)
    assert (delta_table.delete(table, "path = '/c'"), table.version()) == (0, 1)
    assert (delta_table.delete(table, "path = '/a'"), table.version()) == (1, 2)


def test_files_are_listed_with_their_rows_of_all_partitions_or_of_one(site: Site) -> None:
    site.post(view("/c", NOON + DAY))
    site.load()
    table = site.table(HITS_TABLE)
    first, second = "2026-09-15", "2026-09-16"
    listed = delta_table.list_files(table, HITS_TABLE)
    assert {(file.partition, file.rows) for file in listed} == {(first, 2), (second, 1)}
    assert all(Path(file.path).stat().st_size == file.size for file in listed)
    assert [file.rows for file in delta_table.list_files(table, HITS_TABLE, second)] == [1]
    assert delta_table.list_files(table, HITS_TABLE, "2026-09-17") == ()


def test_offset_is_of_its_node_and_comes_with_the_rows(site: Site) -> None:
    table = site.table(HITS_TABLE)
    delta_table.append(table, HITS_TABLE.schema.empty_table(), "node", 9)
    delta_table.append(table, HITS_TABLE.schema.empty_table(), "other", 3)
    reopened = site.table(HITS_TABLE)
    assert [delta_table.offset(reopened, node) for node in ("node", "other", "unknown")] == [9, 3, 0]
