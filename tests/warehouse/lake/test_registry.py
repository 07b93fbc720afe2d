"""The registry lists every hot log and the control database of a lake, and survives a power loss."""

from pathlib import Path

import pytest

from warehouse.errors import DataIncomplete
from warehouse.lake import registry
from warehouse.lake.registry import ControlRecord, HotLogRecord


def test_new_lake_has_no_records_and_no_folder_for_them(tmp_path: Path) -> None:
    assert (registry.hot_logs(tmp_path), registry.control(tmp_path)) == ({}, None)
    assert list(tmp_path.iterdir()) == []


def test_hot_logs_are_listed_by_node(tmp_path: Path) -> None:
    first, second = HotLogRecord("first"), HotLogRecord("second", ledger_from_s=1.5)
    registry.record_hot_log(tmp_path, first)
    registry.record_hot_log(tmp_path, second)
    assert registry.hot_logs(tmp_path) == {"first": first, "second": second}


def test_later_record_of_a_store_replaces_the_earlier_one(tmp_path: Path) -> None:
    registry.record_hot_log(tmp_path, HotLogRecord("node"))
    registry.record_hot_log(tmp_path, HotLogRecord("node", is_given_up=True))
    assert registry.hot_logs(tmp_path) == {"node": HotLogRecord("node", is_given_up=True)}
    registry.record_control(tmp_path, ControlRecord("first"))
    registry.record_control(tmp_path, ControlRecord("second"))
    assert registry.control(tmp_path) == ControlRecord("second")


def test_record_is_synced_with_its_folders(tmp_path: Path, synced: set[Path]) -> None:
    registry.record_hot_log(tmp_path, HotLogRecord("node"))
    folder = tmp_path / registry.FOLDER
    assert {tmp_path, folder} <= synced
    assert [path.name for path in synced if path.match("hot-node.json.*.new")]
    assert [file.name for file in folder.iterdir()] == ["hot-node.json"]


@pytest.mark.parametrize("content", [b"", b"\0" * 60, b'{"database_id":', b'{"node":1}'])
def test_damaged_record_is_an_error_with_the_name_of_its_file(tmp_path: Path, content: bytes) -> None:
    registry.record_hot_log(tmp_path, HotLogRecord("node"))
    registry.record_control(tmp_path, ControlRecord("id"))
    for name, read in (("hot-node.json", registry.hot_logs), ("control.json", registry.control)):
        file = tmp_path / registry.FOLDER / name
        file.write_bytes(content)
        with pytest.raises(DataIncomplete, match=f"{file} is damaged"):
            read(tmp_path)
