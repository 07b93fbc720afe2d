"""Writes of files and folders are synced, and replace a file as a whole."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from warehouse import disk


def test_written_file_and_its_folder_are_synced(tmp_path: Path, synced: set[Path]) -> None:
    file = tmp_path / "record.json"
    disk.write(file, b"old")
    disk.write(file, b"new")
    assert file.read_bytes() == b"new"
    assert [path.suffix for path in synced - {tmp_path}] == [".new", ".new"]
    assert tmp_path in synced
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_all_files_are_synced(tmp_path: Path, synced: set[Path]) -> None:
    files = [tmp_path / str(number) for number in range(2 * disk.SYNC_THREADS)]
    for file in files:
        file.touch()
    disk.sync_all(files)
    assert synced == set(files)


def test_missing_file_among_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.sync_all([tmp_path, tmp_path / "missing"])


def test_write_replaces_the_file_for_readers_that_have_the_old_one_open(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    disk.write(file, b"old content")
    with file.open("rb") as reader:
        disk.write(file, b"new")
        assert reader.read() == b"old content"


def test_file_that_many_threads_write_at_once_has_the_content_of_one_of_them(tmp_path: Path) -> None:
    file, contents = tmp_path / "record.json", [bytes([number]) * 100_000 for number in range(250)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda content: disk.write(file, content), contents))
    assert file.read_bytes() in contents
    assert [*tmp_path.iterdir()] == [file]


def test_write_removes_what_a_killed_process_has_left_and_not_the_file_of_a_running_one(tmp_path: Path) -> None:
    file = tmp_path / "record[1].json"
    left, running, other = (tmp_path / f"record[{name}.new" for name in ("1].json.0a", "1].json.0b", "2].json.0a"))
    for path in (left, running, other):
        path.touch()
    for path in (left, other):
        os.utime(path, (0, 0))
    disk.write(file, b"new")
    assert {*tmp_path.iterdir()} == {file, running, other}


def test_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "record.json"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        disk.write(folder, b"new")
    assert [*tmp_path.iterdir()] == [folder]


def test_new_folders_are_synced_in_their_parents(tmp_path: Path, synced: set[Path]) -> None:
    disk.make_folder(tmp_path / "a" / "b", mode=0o700)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert synced == {tmp_path, tmp_path / "a"}


def test_existing_folder_is_not_synced(tmp_path: Path, synced: set[Path]) -> None:
    disk.make_folder(tmp_path)
    assert synced == set()
