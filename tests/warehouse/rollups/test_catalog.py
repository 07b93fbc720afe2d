"""A reader uses a day of a rollup only if its snapshot has all files that the rollup counts for the day."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from warehouse.columns.dimensions import CUBES
from warehouse.errors import RollupDamaged
from warehouse.lake.delta_table import File
from warehouse.lake.roots import LocalPath
from warehouse.rollups import catalog


def hits_file(day: str, name: str, rows: int = 10) -> File:
    return File(f"/lake/hits/date={day}/{name}", day, 1_000, rows)


A, B, C = hits_file("2026-09-01", "a"), hits_file("2026-09-02", "b"), hits_file("2026-09-02", "c", 30)
OCTOBER = hits_file("2026-10-01", "a")


def write(root: Path, name: str, files: Sequence[File]) -> Path:
    """Write a rollup whose Parquet files have some bytes, and return its folder."""
    month = files[0].partition[:7]
    folder = catalog.month_folder(LocalPath(root), month) / name
    folder.mkdir(parents=True)
    for parquet in catalog.PARQUET:
        (folder / parquet).write_bytes(b"some bytes")
    (folder / catalog.COVERAGE).write_bytes(msgspec.json.encode(catalog.record_of(month, files, [], folder)))
    return folder


def used(root: Path, files: Sequence[File]) -> tuple[list[tuple[str, list[str], bool]], list[File]]:
    """Return the folder, days and `is_whole` of each part that `choose` returns, and the uncovered files."""
    chosen = catalog.choose(LocalPath(root), files)
    return [(p.rollup.folder.name, sorted(p.days), p.is_whole) for p in chosen.parts], list(chosen.uncovered)


def test_lake_without_rollups_has_only_uncovered_files(tmp_path: Path) -> None:
    assert used(tmp_path, [B, A]) == ([], [A, B])


def test_rollup_of_all_files_covers_them(tmp_path: Path) -> None:
    folder = write(tmp_path, "one", [A, B, C])
    assert used(tmp_path, [C, B, A]) == ([("one", ["2026-09-01", "2026-09-02"], True)], [])
    (part,) = catalog.choose(LocalPath(tmp_path), [A, B, C]).parts
    assert (part.rollup.month, part.rollup.folder, part.rollup.rows) == ("2026-09", LocalPath(folder), 50)
    assert part.rollup.files == {"2026-09-01": {"a"}, "2026-09-02": {"b", "c"}}
    assert {part.rollup.file(cube).name for cube in CUBES} <= {path.name for path in folder.iterdir()}


def test_new_file_of_a_valid_day_is_uncovered(tmp_path: Path) -> None:
    write(tmp_path, "one", [A, B])
    assert used(tmp_path, [A, B, C]) == ([("one", ["2026-09-01", "2026-09-02"], True)], [C])


def test_day_with_a_replaced_file_is_uncovered_entirely(tmp_path: Path) -> None:
    write(tmp_path, "one", [A, B, C])
    new = hits_file("2026-09-02", "new", 10)
    assert used(tmp_path, [A, C, new]) == ([("one", ["2026-09-01"], False)], [C, new])


def test_day_that_was_deleted_is_not_valid(tmp_path: Path) -> None:
    write(tmp_path, "one", [A, B, C])
    assert used(tmp_path, [A]) == ([("one", ["2026-09-01"], False)], [])


def test_rollup_without_a_valid_day_is_not_used(tmp_path: Path) -> None:
    write(tmp_path, "one", [A])
    assert used(tmp_path, [B]) == ([], [B])


def test_file_of_another_day_with_the_same_name_is_uncovered(tmp_path: Path) -> None:
    write(tmp_path, "one", [A])
    other = hits_file("2026-09-02", "a")
    assert used(tmp_path, [A, other]) == ([("one", ["2026-09-01"], True)], [other])


def test_rollup_that_counts_most_rows_of_a_day_is_used(tmp_path: Path) -> None:
    write(tmp_path, "of two files", [A, B])
    write(tmp_path, "of more rows", [C])
    expected = [("of more rows", ["2026-09-02"], True), ("of two files", ["2026-09-01"], False)]
    assert used(tmp_path, [A, B, C]) == (expected, [B])
    assert used(tmp_path, [A, B]) == ([("of two files", ["2026-09-01", "2026-09-02"], True)], [])


def test_whole_rollup_is_preferred_to_a_partly_valid_one_of_as_many_rows(tmp_path: Path) -> None:
    write(tmp_path, "z", [A, B])
    write(tmp_path, "a", [A])
    assert used(tmp_path, [A]) == ([("a", ["2026-09-01"], True)], [])


def test_each_month_has_its_own_rollup(tmp_path: Path) -> None:
    write(tmp_path, "september", [A])
    write(tmp_path, "october", [OCTOBER])
    parts, uncovered = used(tmp_path, [OCTOBER, A])
    assert [name for name, _, _ in parts] == ["september", "october"]
    assert uncovered == []


def test_rollup_without_coverage_is_not_used(tmp_path: Path) -> None:
    (write(tmp_path, "one", [A]) / catalog.COVERAGE).unlink()
    assert used(tmp_path, [A]) == ([], [A])


@pytest.mark.parametrize("name", catalog.PARQUET)
def test_rollup_with_a_missing_file_is_damaged_and_not_used(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, "one", [A])
    (folder / name).unlink()
    with pytest.raises(RollupDamaged, match=f"{name} is missing"):
        catalog.read_rollup(LocalPath(folder))
    assert used(tmp_path, [A]) == ([], [A])


@pytest.mark.parametrize("name", catalog.PARQUET)
def test_rollup_with_a_truncated_file_is_damaged_and_not_used(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, "one", [A])
    os.truncate(folder / name, 4)
    with pytest.raises(RollupDamaged, match=f"{name} has 4 bytes, not 10"):
        catalog.read_rollup(LocalPath(folder))
    assert used(tmp_path, [A]) == ([], [A])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b'{"version": 5, "month": "2026-09", "rows": 1, "files": {}, "sizes": {}}', "cannot be read"),
        (b'{"layout": "5", "month": "2026-09", "rows": 1, "files": {}, "sizes": {}}', "has the layout 5, not "),
    ],
)
def test_rollup_with_another_coverage_is_damaged_and_not_used(tmp_path: Path, content: bytes, message: str) -> None:
    folder = write(tmp_path, "one", [A])
    (folder / catalog.COVERAGE).write_bytes(content)
    with pytest.raises(RollupDamaged, match=message):
        catalog.read_rollup(LocalPath(folder))
    assert used(tmp_path, [A]) == ([], [A])


def test_damaged_rollup_does_not_hide_an_older_one(tmp_path: Path) -> None:
    write(tmp_path, "one", [A])
    (write(tmp_path, "two", [A, B]) / "paths.parquet").unlink()
    assert used(tmp_path, [A, B]) == ([("one", ["2026-09-01"], True)], [B])
