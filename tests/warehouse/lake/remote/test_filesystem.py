from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.stores.object_store import environ
from warehouse.errors import is_unreachable
from warehouse.lake.delta_table import File
from warehouse.lake.remote.filesystem import LakeFilesystem
from warehouse.lake.remote.object_path import ObjectLake, ObjectPath
from warehouse.query import engine

ROWS = pa.table({"path": ["/a", "/b"], "views": [1, 2]})


@pytest.fixture
def lake(bucket: str, tmp_path: Path) -> ObjectPath:
    lake = ObjectPath(ObjectLake(f"{bucket}/lake", tmp_path / "local", 1 << 20))
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    for day in ("2026-09-15", "2026-09-16"):
        (lake / f"date={day}" / "rows.parquet").write(tmp_path / "rows.parquet")
    return lake


def files(lake: ObjectPath) -> list[File]:
    return [File(str(lake / path), "", 0, 2) for path, _ in lake.files()]


def test_duckdb_reads_objects_with_their_partition(lake: ObjectPath, tmp_path: Path) -> None:
    with closing(engine.connect(tmp_path / "spill")) as database:
        sql = f"SELECT date::VARCHAR, sum(views) FROM {engine.parquet(files(lake))} GROUP BY ALL ORDER BY ALL"
        assert database.sql(sql).fetchall() == [("2026-09-15", 3), ("2026-09-16", 3)]
        names = f"SELECT DISTINCT filename FROM {engine.parquet(files(lake))} ORDER BY ALL"
        assert database.sql(names).fetchall() == [(file.path,) for file in files(lake)]


def test_locked_database_reads_only_its_objects(lake: ObjectPath, tmp_path: Path) -> None:
    first, second = files(lake)
    with closing(engine.connect(tmp_path / "spill")) as database:
        engine.lock(database, [first])
        assert database.sql(f"SELECT count(*) FROM {engine.parquet([first])}").fetchall() == [(2,)]
        with pytest.raises(duckdb.PermissionException):
            database.sql(f"SELECT count(*) FROM {engine.parquet([second])}").fetchall()


def test_missing_object_is_an_error_of_the_file(lake: ObjectPath, tmp_path: Path) -> None:
    missing = File(f"{lake}/date=2026-09-15/missing.parquet", "", 0, 0)
    with (
        closing(engine.connect(tmp_path / "spill")) as database,
        pytest.raises(duckdb.Error, match=r"missing\.parquet"),
    ):
        database.sql(f"SELECT count(*) FROM {engine.parquet([missing])}").fetchall()


def test_error_of_duckdb_names_an_unreachable_store(
    closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ(f"http://127.0.0.1:{closed_port}").items():
        monkeypatch.setenv(name, value)
    lake = ObjectPath(ObjectLake("s3://away", tmp_path, 0))
    with closing(engine.connect(tmp_path / "spill")) as database:
        with pytest.raises(duckdb.Error) as raised:
            database.sql(f"SELECT count(*) FROM {engine.parquet([File(f'{lake}/a.parquet', '', 0, 0)])}").fetchall()
        assert is_unreachable(raised.value)
        with pytest.raises(duckdb.Error) as raised:
            database.sql("SELECT missing").fetchall()
        assert not is_unreachable(raised.value)


def test_thread_reads_where_it_has_sought_after_another_thread_read_the_same_file(lake: ObjectPath) -> None:
    file = LakeFilesystem("s3").open(files(lake)[0].path)

    def read(position: int, size: int) -> bytes:
        assert file.seek(position) == position
        return file.read(size)

    with closing(file), ThreadPoolExecutor(1) as pool:
        content = read(0, 1_000_000)
        file.seek(10)
        assert pool.submit(read, 50, 20).result() == content[50:70]
        assert (file.tell(), file.read(5), file.read(5)) == (10, content[10:15], content[15:20])


def test_file_system_has_no_sizes_of_an_earlier_lake(lake: ObjectPath) -> None:
    path = files(lake)[0].path
    LakeFilesystem("s3").open(path).close()
    [object, _] = sorted(name for name, _ in lake.files())
    (lake / object).write(b"another lake")
    assert LakeFilesystem("s3").size(path) == len(b"another lake")
