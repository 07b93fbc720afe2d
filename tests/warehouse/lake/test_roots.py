import os
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.errors import InvalidRoot
from warehouse.lake import roots
from warehouse.lake.roots import LocalPath, Root


@pytest.fixture(params=["local", "remote"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    if request.param == "local":
        return LocalPath(tmp_path)
    return roots.open_remote(f"{request.getfixturevalue('bucket')}/lake/", tmp_path / "local")


def names(folder: Root) -> list[str]:
    return sorted(name for name, _ in folder.files())


def test_file_is_replaced_and_found_by_its_name(root: Root) -> None:
    (root / "_stores").make_folder()
    file = root / "_stores" / "a.json"
    file.write(b"old")
    file.write(b"new!")
    assert roots.at(str(file)) == file
    assert (file.parent, file.name) == (root / "_stores", "a.json")
    assert roots.at(str(file)).read_bytes() == file.read_immutable() == b"new!"
    assert {name: stat.st_size for name, stat in root.files()} == {"_stores/a.json": 4}
    assert root.folders() == ["_stores"]
    assert (file.exists(), (root / "missing").exists()) == (True, False)
    assert roots.modified_s(file) == roots.modified_s(str(file)) == file.stat().st_mtime > 1e9
    assert roots.modified_s(root / "missing") == 0


def test_missing_file_is_an_error_and_in_no_list(root: Root) -> None:
    missing = root / "missing"
    for read in (missing.read_bytes, missing.stat, missing.read_immutable):
        with pytest.raises(FileNotFoundError, match="missing"):
            read()
    missing.unlink(missing_ok=True)
    assert (missing.exists(), missing.folders(), names(missing)) == (False, [], [])


def test_new_file_is_there_after_the_block(root: Root) -> None:
    (root / "hits").make_folder()
    file = root / "hits" / "date=2026-09-15" / "a.parquet"
    with file.new_file() as local:
        local.write_bytes(b"rows")
    assert file.read_bytes() == file.read_immutable() == b"rows"
    assert (local == file.local) == (root.uri is None)


def test_new_file_of_an_object_is_cached(bucket: str, tmp_path: Path) -> None:
    file = roots.open_remote(bucket, tmp_path) / "a"
    with file.new_file() as local:
        local.write_bytes(b"rows")
    file.unlink()
    assert file.read_immutable() == b"rows"


def test_file_of_a_failed_block_is_not_uploaded(bucket: str, tmp_path: Path) -> None:
    root = roots.open_remote(bucket, tmp_path)
    with pytest.raises(MemoryError), (root / "a").new_file():
        raise MemoryError
    assert names(root) == []


def test_file_of_a_new_folder_is_there_until_the_folder_is_removed(root: Root) -> None:
    month = root / "rollups" / "month=2026-09"
    with (month / "1").new_folder() as local:
        (local / "days.parquet").write_bytes(b"1")
    assert (month / "1" / "days.parquet").read_bytes() == b"1"
    assert (month.folders(), names(month)) == (["1"], ["1/days.parquet"])
    (month / "1").remove_folder()
    assert month.folders() == []


def test_renewed_file_is_younger(root: Root) -> None:
    file = root / "a.parquet"
    file.write(b"rows")
    if root.uri is None:
        os.utime(file.local, (1, 1))
    renewed = file.renew()
    assert renewed.read_bytes() == b"rows"
    assert roots.modified_s(renewed) > 1e9
    assert renewed.name.endswith(".parquet")


def test_files_and_their_folders_are_synced(tmp_path: Path, synced: set[Path]) -> None:
    root = LocalPath(tmp_path)
    file = root / "hits" / "date=2026-09-15" / "a.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"rows")
    root.sync([str(file)])
    assert synced == {file, file.parent, file.parent.parent, root}
    with pytest.raises(FileNotFoundError):
        root.sync([root / "missing"])
    with (root / "rollups").new_folder() as local:
        (local / "days.parquet").write_bytes(b"1")
    assert root / "rollups" / "days.parquet" in synced


@pytest.mark.parametrize(
    "uri", ["bucket/lake", "s3://", "s3://key:secret@bucket/lake", "s3://bucket/lake?sig=secret", "file:///lake", ""]
)
def test_malformed_uri_is_refused_without_a_quote(uri: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRoot, match="must be a URI such as s3://bucket/prefix") as raised:
        roots.open_remote(uri, tmp_path)
    assert "secret" not in str(raised.value)


@pytest.mark.long
def test_local_lake_imports_no_library_of_object_stores() -> None:
    program = "import sys, warehouse.maintenance.rollups; print({'obstore', 'fsspec'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout == "set()\n"
