import os
from pathlib import Path

import pytest

from warehouse.errors import LakeUnreachable
from warehouse.lake.remote import file_cache
from warehouse.lake.remote.object_path import ObjectLake, ObjectPath

CACHE_BYTES = 1000


@pytest.fixture
def lake(bucket: str, tmp_path: Path) -> ObjectPath:
    return ObjectPath(ObjectLake(bucket, tmp_path, CACHE_BYTES))


def read(path: ObjectPath) -> bytes:
    with path.open_parquet() as file:
        content: bytes = file.read()
        return content


def cached(lake: ObjectPath) -> list[Path]:
    """Return the cached files, the least recently used first."""
    return sorted((lake.local / file_cache.FOLDER).iterdir(), key=lambda file: file.stat().st_mtime)


def test_second_read_needs_no_request(lake: ObjectPath) -> None:
    (lake / "a").write(b"content")
    assert read(lake / "a") == b"content"
    (lake / "a").unlink()
    assert read(lake / "a") == b"content"


def test_file_is_synced_before_it_is_cached(lake: ObjectPath, synced: set[Path]) -> None:
    (lake / "a").write(b"content")
    read(lake / "a")
    with (lake / "b").new_file() as file:
        file.write_bytes(b"content")
    assert len(synced) == len(cached(lake)) == 2


def test_file_whose_upload_fails_is_not_cached(bucket: str, tmp_path: Path) -> None:
    lake = ObjectPath(ObjectLake(f"{bucket}-without-a-bucket", tmp_path, CACHE_BYTES))
    with pytest.raises((LakeUnreachable, FileNotFoundError)), (lake / "a").new_file() as file:
        file.write_bytes(b"content")
    assert cached(lake) == []


def test_least_recently_used_files_are_evicted(lake: ObjectPath) -> None:
    for number, name in enumerate("abc"):
        (lake / name).write(name.encode() * 400)
        read(lake / name)
        newest = max(cached(lake), key=lambda file: file.stat().st_ctime_ns)
        os.utime(newest, (number, number))
        if name == "b":
            read(lake / "a")  # used again after b
    assert sum(file.stat().st_size for file in cached(lake)) == 800
    for name in "abc":
        (lake / name).unlink()
    assert (read(lake / "a")[:1], read(lake / "c")[:1]) == (b"a", b"c")
    with pytest.raises(FileNotFoundError):
        read(lake / "b")


def test_files_of_deleted_objects_are_evicted(lake: ObjectPath) -> None:
    for name in ("a", "folder/b", "folder/c"):
        (lake / name).write(name.encode())
        read(lake / name)
    downloading = lake.local / file_cache.FOLDER / f"1{file_cache.NEW}"
    downloading.touch()
    (lake / "folder/b").unlink()
    lake.evict_deleted()
    assert {file.read_bytes() for file in cached(lake)} == {b"a", b"folder/c", b""}
    with pytest.raises(FileNotFoundError):
        read(lake / "folder/b")


def test_one_large_file_evicts_several(lake: ObjectPath) -> None:
    for name, size in (("a", 400), ("b", 400), ("large", CACHE_BYTES)):
        (lake / name).write(b"x" * size)
        read(lake / name)
    assert [file.stat().st_size for file in cached(lake)] == [CACHE_BYTES]


def test_file_larger_than_the_cache_is_read_and_not_cached(lake: ObjectPath) -> None:
    (lake / "small").write(b"s")
    (lake / "large").write(b"l" * (CACHE_BYTES + 1))
    read(lake / "small")
    assert len(read(lake / "large")) == CACHE_BYTES + 1
    assert [file.stat().st_size for file in cached(lake)] == [1]


def test_open_file_can_be_read_after_its_eviction(lake: ObjectPath) -> None:
    (lake / "a").write(b"a" * 700)
    (lake / "b").write(b"b" * 400)
    with (lake / "a").open_parquet() as file:
        os.utime(cached(lake)[0], (0, 0))
        read(lake / "b")
        assert [each.stat().st_size for each in cached(lake)] == [400]
        assert file.read() == b"a" * 700
