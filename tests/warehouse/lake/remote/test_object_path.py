import pickle
from contextlib import closing
from pathlib import Path

import pytest

from api import data_folder, settings
from tests.stores.object_store import SECRET, environ, unsafe_server
from tests.warehouse.site import Site
from warehouse.errors import LakeUnreachable, UnsafeStore
from warehouse.lake.remote import object_path
from warehouse.lake.remote.object_path import ObjectLake, ObjectPath


@pytest.fixture
def lake(bucket: str, tmp_path: Path) -> ObjectPath:
    return ObjectPath(ObjectLake(f"{bucket}/some/prefix", tmp_path, 1 << 20))


def test_object_is_read_as_it_was_written(lake: ObjectPath, tmp_path: Path) -> None:
    file = lake / "hits" / "date=2026-09-15" / "a.parquet"
    file.write(b"old")
    file.write(b"new!")
    assert (file.read_bytes(), file.exists(), file.stat().st_size) == (b"new!", True, 4)
    assert str(file) == f"{lake}/hits/date=2026-09-15/a.parquet"
    assert (file.name, file.parent.name, file.uri) == ("a.parquet", "date=2026-09-15", str(file))


def test_large_file_is_uploaded_in_parts(lake: ObjectPath, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (6 << 20))
    (lake / "large").write(tmp_path / "large")
    assert (lake / "large").stat().st_size == 6 << 20


def test_second_new_object_of_a_key_is_refused(lake: ObjectPath) -> None:
    file = lake / "key"
    assert (file.write_new(b"first"), file.write_new(b"second")) == (True, False)
    assert file.read_bytes() == b"first"


def test_objects_of_a_folder_are_listed_without_those_of_its_neighbours(lake: ObjectPath) -> None:
    for key in ("hits/date=1/a.parquet", "hits/date=2/b.parquet", "hits/c.parquet", "hits2/d.parquet"):
        (lake / key).write(b"1")
    hits = lake / "hits"
    assert sorted(path for path, _ in hits.files()) == ["c.parquet", "date=1/a.parquet", "date=2/b.parquet"]
    assert sorted(hits.folders()) == ["date=1", "date=2"]
    assert sorted(lake.folders()) == ["hits", "hits2"]
    assert (hits.exists(), list((lake / "hit").files())) == (False, [])


def test_path_is_found_by_its_uri_in_another_process(lake: ObjectPath) -> None:
    sent = pickle.loads(pickle.dumps(lake / "hits" / "a"))
    assert sent == object_path.find(f"{lake}/hits/a") == lake / "hits" / "a"
    assert object_path.find(f"{lake}2/hits/a") is None
    assert object_path.find("/data/lake/hits/a") is None


def test_unreachable_store_is_an_error_without_credentials(
    closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ(f"http://127.0.0.1:{closed_port}").items():
        monkeypatch.setenv(name, value)
    lake = ObjectPath(ObjectLake("s3://unreachable/lake", tmp_path, 0))
    with pytest.raises(LakeUnreachable, match="s3://unreachable/lake/a") as raised:
        (lake / "a").read_bytes()
    assert SECRET not in f"{raised.value!r} {lake!r} {lake.lake.store!r}"
    with pytest.raises(LakeUnreachable, match="list") as raised:
        list(lake.files())
    assert "prefix=" not in str(raised.value), "the query of a URL may have a signature"


def test_store_that_refuses_the_second_writer_is_accepted(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")  # has no effect
    lake = ObjectPath(ObjectLake(bucket, tmp_path, 0))
    lake.require_safe()
    assert list(lake.files()) == []


@pytest.mark.long
def test_store_that_lets_every_writer_win_is_refused_at_the_start_and_by_the_doctor(
    object_store: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unsafe_server(object_store) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        config = settings.read({"READERSHIP_LAKE": f"{bucket}/unsafe"}, tmp_path / "data")
        refused = f"{bucket}/unsafe lets two writers create an object"
        with pytest.raises(UnsafeStore, match=refused):
            data_folder.prepare_lake(config)
        assert (config.data.exists(), list(config.lake.files())) == (False, [])
        with closing(Site(config.data, root=config.lake)) as site:
            assert [fault for fault in site.faults() if refused in fault] == site.faults() != []
