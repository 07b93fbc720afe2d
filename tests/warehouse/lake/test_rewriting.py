"""New files of a partition have the rows in their order, and a limited size; no two commits replace one file."""

import os
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.errors import LakeBusy
from warehouse.lake import delta_log, delta_table, rewriting, roots
from warehouse.lake.roots import LocalPath, Root
from warehouse.lake.row_groups import ROWS_MAX
from warehouse.schema import TIMESTAMP
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE

SCHEMA = REQUESTS_TABLE.schema
ROWS = 2 * ROWS_MAX + 10


def reader(batch_rows: int) -> pa.RecordBatchReader:
    columns = {
        "project_id": pa.repeat("site", ROWS),
        "month": pa.repeat("2026-09", ROWS),
        "date": pa.repeat((NOON + DAY).date(), ROWS),
        "path": pa.array([f"/{number}" for number in range(ROWS)]),
        "traffic": pa.repeat("bot", ROWS),
        "agent": pa.nulls(ROWS, pa.string()),
        "status": pa.repeat(pa.scalar(404, pa.int16()), ROWS),
        **{name: pa.array(range(ROWS), pa.int64()) for name in ("requests", "sized", "bytes", "errors", "ms_below")},
        **{name: pa.repeat("x", ROWS) for name in ("operator", "kind", "cache", "source")},
        "first_seen": pa.repeat(pa.scalar(NOON, TIMESTAMP), ROWS),
        "last_seen": pa.repeat(pa.scalar(NOON, TIMESTAMP), ROWS),
    }
    table = pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)
    return table.to_reader(batch_rows)


@pytest.mark.parametrize(("target_bytes", "rows"), [(1, [ROWS_MAX, ROWS_MAX, 10]), (1 << 30, [ROWS])])
def test_rows_are_in_order_in_files_of_limited_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target_bytes: int, rows: list[int]
) -> None:
    monkeypatch.setattr(rewriting, "TARGET_FILE_BYTES", target_bytes)
    (tmp_path / "requests").mkdir()
    files = rewriting.write_partition(LocalPath(tmp_path), REQUESTS_TABLE, "2026-09", reader(batch_rows=50_000))
    assert [file.rows for file in files] == rows
    assert [Path(file.path).stat().st_size for file in files] == [file.size for file in files]
    stored = [pq.ParquetFile(file.path) for file in files]
    assert [requests for each in stored for requests in each.read()["requests"].to_pylist()] == list(range(ROWS))
    assert {each.metadata.row_group(0).num_rows for each in stored} <= {ROWS_MAX, 10}


@pytest.mark.parametrize("place", ["local", "remote"])
def test_files_that_wait_for_their_commit_are_renewed_before_a_vacuum_deletes_them(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root: Root = LocalPath(tmp_path)
    if place == "remote":
        root = roots.open_remote(f"{request.getfixturevalue('bucket')}/lake", tmp_path)
    (root / "requests").make_folder()
    files = rewriting.write_partition(root, REQUESTS_TABLE, "2026-09", reader(batch_rows=50_000))
    assert rewriting.renewed(files) == files
    written_s = roots.modified_s(files[0].path)
    if root.uri is None:
        os.utime(files[0].path, (written_s - 3000, written_s - 3000))
    else:
        monkeypatch.setattr(time, "time", lambda: written_s + 3000)  # only the store sets the time of an object
    [new] = rewriting.renewed(files) or ()
    assert (new.partition, new.size, new.rows) == (files[0].partition, files[0].size, ROWS)
    assert roots.modified_s(new.path) >= written_s
    assert roots.at(new.path).stat().st_size == new.size
    assert (new.path == files[0].path) == (root.uri is None)
    assert new.path.startswith(f"{root}/requests/month=2026-09/part-")
    assert new.path.endswith(".parquet")


def test_files_that_a_vacuum_has_deleted_are_not_renewed(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    files = rewriting.write_partition(LocalPath(tmp_path), REQUESTS_TABLE, "2026-09", reader(batch_rows=50_000))
    Path(files[0].path).unlink()
    assert rewriting.renewed(files) is None


def test_no_rows_have_no_file(tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    empty = SCHEMA.empty_table().to_reader()
    assert rewriting.write_partition(LocalPath(tmp_path), REQUESTS_TABLE, "2026-09", empty) == ()


Commit = Callable[[DeltaTable, pa.Table], None]


def replace(table: DeltaTable, rows: pa.Table) -> None:
    old = delta_table.list_files(table, HITS_TABLE)
    root = delta_log.folder(table).parent
    new = rewriting.write_partition(root, HITS_TABLE, old[0].partition, rows.to_reader())
    rewriting.replace_files(table, HITS_TABLE, old, new)


def delete(table: DeltaTable, rows: pa.Table) -> None:
    assert delta_table.delete(table, "event_id = '0'") == 1


PAIRS = [pair for pair in product((replace, delete), repeat=2) if replace in pair]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_second_of_two_commits_that_remove_a_file_is_refused(site: Site, first: Commit, second: Commit) -> None:
    for number in range(3):
        site.post(view(event_id=str(number)))
        site.load()
    rows = pa.Table.from_pylist(site.stored(HITS_TABLE), HITS_TABLE.schema)
    handle, stale = site.table(HITS_TABLE), site.table(HITS_TABLE)
    first(handle, rows)
    stored = site.event_ids()
    with pytest.raises(CommitFailedError):
        second(stale, rows)
    assert site.event_ids() == stored
    assert len(set(stored)) == len(stored) >= 2


@pytest.mark.parametrize("appends", [1, rewriting.ATTEMPTS - 1, rewriting.ATTEMPTS])
def test_commit_that_conflicts_with_appends_of_another_node_is_repeated_at_most_so_often(
    site: Site, appends: int
) -> None:
    site.post(view(event_id="first"))
    site.load()
    stored = pa.Table.from_pylist(site.stored(HITS_TABLE), HITS_TABLE.schema)
    left = list(range(appends))

    def commit() -> None:
        table = site.table(HITS_TABLE)
        if left:
            delta_table.append(site.table(HITS_TABLE), stored, "another node", 1 + left.pop())
        delta_table.delete(table, "event_id = 'first'")

    if appends < rewriting.ATTEMPTS:
        rewriting.retry_commit(commit)
        assert site.event_ids() == []
    else:
        with pytest.raises(LakeBusy, match="other nodes wrote into the same days"):
            rewriting.retry_commit(commit)
        assert site.event_ids() == ["first"] * (1 + appends)
