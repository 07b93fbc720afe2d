"""Limits of the files that one commit changes."""

import os
from pathlib import Path

import pytest

from agent.errors import TurnFailed
from agent.git.changed_files import CHANGED_MAX, CHANGED_NAMES_BYTES_MAX, FILE_BYTES_MAX, ChangedFiles


@pytest.fixture
def changed(tmp_path: Path) -> ChangedFiles:
    return ChangedFiles(os.fsencode(tmp_path))


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def test_largest_file_is_accepted_and_a_larger_one_is_named(changed: ChangedFiles, tmp_path: Path) -> None:
    sparse(tmp_path / "video", FILE_BYTES_MAX)
    changed.add(b"video\0")
    sparse(tmp_path / "video", FILE_BYTES_MAX + 1)
    with pytest.raises(TurnFailed, match="'video' in the work tree has 100 MiB"):
        changed.add(b"video\0")


def test_name_that_is_split_between_two_chunks_is_checked(changed: ChangedFiles, tmp_path: Path) -> None:
    sparse(tmp_path / "caf\udce9", FILE_BYTES_MAX + 1)
    changed.add(b"readme\0caf")
    with pytest.raises(TurnFailed, match="in the work tree has"):
        changed.add(b"\xe9\0")


def test_deleted_files_are_accepted(changed: ChangedFiles) -> None:
    changed.add(b"deleted\0also/deleted\0")


def test_number_of_files_is_limited(changed: ChangedFiles) -> None:
    changed.add(b"a\0" * CHANGED_MAX)
    with pytest.raises(TurnFailed, match="more than 100000 files"):
        changed.add(b"a\0")


def test_total_size_of_names_is_limited_also_without_an_end_of_a_name(changed: ChangedFiles) -> None:
    changed.add(b"a" * CHANGED_NAMES_BYTES_MAX)
    with pytest.raises(TurnFailed, match="names have more than 32 MiB"):
        changed.add(b"a")
