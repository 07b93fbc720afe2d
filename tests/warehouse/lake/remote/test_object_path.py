import pickle
from pathlib import Path

import pytest

from tests.stores import object_store
from warehouse.errors import LakeUnreachable
from warehouse.lake.remote import object_path
from warehouse.lake.remote.object_path import ObjectPath


@pytest.fixture
def lake(bucket: str, tmp_path: Path) -> ObjectPath:
    return object_path.open_lake(f"{bucket}/some/prefix", tmp_path, 1 << 20)


def test_object_is_read_as_it_was_written(lake: ObjectPath, tmp_path: Path) -> None:
    file = lake / "hits" / "date=2026-09-15" / "a.parquet"
    file.write_bytes(b"old")
    file.write_bytes(b"new!")
    file.download(tmp_path / "copy")
    assert (file.read_bytes(), file.exists(), file.stat().st_size) == (b"new!", True, 4)
    assert (tmp_path / "copy").read_bytes() == b"new!"
    assert str(file) == f"{lake}/hits/date=2026-09-15/a.parquet"
    assert (file.name, file.parent.name, file.with_name("b").key) == (
        "a.parquet",
        "date=2026-09-15",
        "hits/date=2026-09-15/b",
    )


def test_large_file_is_uploaded_in_parts(lake: ObjectPath, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (6 << 20))
    (lake / "large").upload(tmp_path / "large")
    assert (lake / "large").stat().st_size == 6 << 20


def test_second_new_object_of_a_key_is_refused(lake: ObjectPath) -> None:
    file = lake / "key"
    assert (file.write_new(b"first"), file.write_new(b"second")) == (True, False)
    assert file.read_bytes() == b"first"


def test_missing_object_is_file_not_found_and_in_no_list(lake: ObjectPath) -> None:
    missing = lake / "missing"
    with pytest.raises(FileNotFoundError, match="missing"):
        missing.read_bytes()
    with pytest.raises(FileNotFoundError):
        missing.stat()
    missing.unlink(missing_ok=True)
    assert (missing.exists(), missing.is_dir(), missing.list_folders(), missing.list_files()) == (False, False, [], {})


def test_objects_of_a_folder_are_listed_without_those_of_its_neighbours(lake: ObjectPath) -> None:
    for key in ("hits/date=1/a.parquet", "hits/date=2/b.parquet", "hits/c.parquet", "hits2/d.parquet"):
        (lake / key).write_bytes(b"1")
    hits = lake / "hits"
    assert sorted(hits.list_files()) == ["c.parquet", "date=1/a.parquet", "date=2/b.parquet"]
    assert sorted(hits.list_folders()) == ["date=1", "date=2"]
    assert sorted(each.key for each in hits.glob("*/*.parquet")) == ["hits/date=1/a.parquet", "hits/date=2/b.parquet"]
    assert sorted(lake.list_folders()) == ["hits", "hits2"]
    assert (hits.is_dir(), hits.exists(), (lake / "hit").is_dir()) == (True, False, False)


def test_copy_remains_after_its_original_is_deleted(lake: ObjectPath) -> None:
    (lake / "a").write_bytes(b"1")
    (lake / "a").copy_to(lake / "b")
    (lake / "a").unlink()
    assert sorted(lake.list_files()) == ["b"]


def test_path_is_found_by_its_uri_in_another_process(lake: ObjectPath) -> None:
    sent = pickle.loads(pickle.dumps(lake / "hits" / "a"))
    assert sent == object_path.find(f"{lake}/hits/a") == lake / "hits" / "a"
    assert object_path.find(f"{lake}2/hits/a") is None
    assert object_path.find("/data/lake/hits/a") is None


def test_unreachable_store_is_an_error_without_credentials(
    closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in object_store.environ(f"http://127.0.0.1:{closed_port}").items():
        monkeypatch.setenv(name, value)
    lake = object_path.open_lake("s3://unreachable/lake", tmp_path, 0)
    with pytest.raises(LakeUnreachable, match="s3://unreachable/lake/a") as raised:
        (lake / "a").read_bytes()
    assert object_store.SECRET not in f"{raised.value!r} {lake!r} {lake.lake.store!r}"
    with pytest.raises(LakeUnreachable, match="list") as raised:
        lake.list_files()
    assert "prefix=" not in str(raised.value), "the query of a URL may have a signature"
