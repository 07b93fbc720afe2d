"""The registry lists every hot log and the control database of a lake, and survives a power loss."""

from pathlib import Path

import pytest

from warehouse.errors import DataIncomplete
from warehouse.lake import registry
from warehouse.lake.registry import ControlRecord, HotLogRecord
from warehouse.lake.roots import LocalPath


@pytest.fixture
def lake(tmp_path: Path) -> LocalPath:
    return LocalPath(tmp_path)


def test_new_lake_has_no_records_and_no_folder_for_them(lake: LocalPath) -> None:
    assert (registry.hot_logs(lake), registry.control(lake)) == ({}, None)
    assert list(lake.iterdir()) == []


def test_hot_logs_are_listed_by_node(lake: LocalPath) -> None:
    first, second = HotLogRecord("first"), HotLogRecord("second", ledger_from_s=1.5)
    registry.record_hot_log(lake, first)
    registry.record_hot_log(lake, second)
    assert registry.hot_logs(lake) == {"first": first, "second": second}


def test_later_record_of_a_store_replaces_the_earlier_one(lake: LocalPath) -> None:
    registry.record_hot_log(lake, HotLogRecord("node"))
    registry.record_hot_log(lake, HotLogRecord("node", is_given_up=True))
    assert registry.hot_logs(lake) == {"node": HotLogRecord("node", is_given_up=True)}
    registry.record_control(lake, ControlRecord("first"))
    registry.record_control(lake, ControlRecord("second"))
    assert registry.control(lake) == ControlRecord("second")


def test_record_is_synced_with_its_folders(lake: LocalPath, synced: set[Path]) -> None:
    registry.record_hot_log(lake, HotLogRecord("node"))
    folder = lake / registry.FOLDER
    assert {lake, folder} <= synced
    assert [path.name for path in synced if path.match("hot-node.json.*.new")]
    assert [file.name for file in folder.iterdir()] == ["hot-node.json"]


@pytest.mark.parametrize("content", [b"", b"\0" * 60, b'{"database_id":', b'{"node":1}'])
def test_damaged_record_is_an_error_with_the_name_of_its_file(lake: LocalPath, content: bytes) -> None:
    registry.record_hot_log(lake, HotLogRecord("node"))
    registry.record_control(lake, ControlRecord("id"))
    for name, read in (("hot-node.json", registry.hot_logs), ("control.json", registry.control)):
        file = lake / registry.FOLDER / name
        file.write_bytes(content)
        with pytest.raises(DataIncomplete, match=f"{file} is damaged"):
            read(lake)
