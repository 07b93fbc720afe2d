import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.errors import InvalidRoot
from warehouse.lake import roots
from warehouse.lake.roots import Root


@pytest.fixture(params=["local", "remote"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    if request.param == "local":
        return tmp_path
    return roots.open_remote(f"{request.getfixturevalue('bucket')}/lake/", tmp_path / "local")


def test_file_is_replaced_and_found_by_its_name(root: Root) -> None:
    roots.make_folder(root / "_stores")
    file = root / "_stores" / "a.json"
    roots.write(file, b"old")
    roots.write(file, b"new!")
    assert roots.at(str(file)) == file
    assert roots.at(str(file)).read_bytes() == roots.read_immutable(file) == b"new!"
    assert dict(roots.list_sizes(root / "_stores")) == {"a.json": 4}
    assert roots.list_folders(root) == ["_stores"]
    assert (roots.exists(str(file)), roots.exists(f"{file}2")) == (True, False)
    assert roots.modified_s(file) == roots.modified_s(str(file)) > 1e9
    assert roots.modified_s(root / "missing") == 0


def test_new_file_is_there_after_the_block(root: Root) -> None:
    roots.make_folder(root / "hits")
    file = root / "hits" / "date=2026-09-15" / "a.parquet"
    with roots.new_file(file) as local:
        local.write_bytes(b"rows")
    assert file.read_bytes() == b"rows"
    assert not isinstance(root, Path) or local == file
    if not isinstance(root, Path):
        file.unlink()
        assert roots.read_immutable(file) == b"rows"  # from the cache


def test_file_of_a_failed_block_is_not_uploaded(bucket: str, tmp_path: Path) -> None:
    root = roots.open_remote(bucket, tmp_path)
    with pytest.raises(MemoryError), roots.new_file(root / "a"):
        raise MemoryError
    assert dict(roots.list_sizes(root)) == {}


def test_published_file_is_in_its_folder_until_the_folder_is_removed(root: Root) -> None:
    folder = root / "rollups" / "month=2026-09" / "1"
    work = roots.new_folder(folder)
    (work / "days.parquet").write_bytes(b"1")
    roots.publish(work / "days.parquet", folder / "days.parquet")
    roots.remove_local(folder)
    assert (folder / "days.parquet").read_bytes() == b"1"
    assert roots.list_folders(root / "rollups" / "month=2026-09") == ["1"]
    assert roots.folder_modified_s(folder) > 1e9
    roots.remove_folder(folder)
    assert roots.list_folders(root / "rollups" / "month=2026-09") == []


def test_linked_and_renamed_files_are_found_by_their_new_names(root: Root) -> None:
    roots.write(root / "a", b"1")
    roots.link(root / "a", root / "b")
    roots.rename(root / "a", root / "c")
    assert sorted(name for name, _ in roots.list_sizes(root)) == ["b", "c"]


@pytest.mark.parametrize(
    "uri", ["bucket/lake", "s3://", "s3://key:secret@bucket/lake", "s3://bucket/lake?sig=secret", "file:///lake", ""]
)
def test_malformed_uri_is_refused_without_a_quote(uri: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRoot, match="must be a URI such as s3://bucket/prefix") as raised:
        roots.open_remote(uri, tmp_path)
    assert "secret" not in str(raised.value)


def test_local_lake_imports_no_library_of_object_stores() -> None:
    program = "import sys, warehouse.maintenance.rollups; print({'obstore', 'fsspec'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout == "set()\n"
