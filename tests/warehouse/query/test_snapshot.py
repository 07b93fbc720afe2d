"""A snapshot has each hit once, whatever a loader in another process does meanwhile."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.warehouse.consistency.moments import Clock, hits, paths, post
from tests.warehouse.site import DAY, NOON, ROOT, Row, Site, rank, some_rows, view
from warehouse.errors import BatchDamaged, DataIncomplete
from warehouse.hotlog import batches
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import compact
from warehouse.query import hot_rows, sql_views
from warehouse.query.snapshot import HOT_COLUMNS, Snapshot, SnapshotReader
from warehouse.query.time_range import FIRST, LAST
from warehouse.report.reports import Reports
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE

BATCHES, BATCH_ROWS = 50, 7
ROWS = BATCHES * BATCH_ROWS
COUNTED = sum(row["traffic"] != "bot" for row in some_rows(0, ROWS))


@pytest.fixture
def reader(site: Site) -> Iterable[SnapshotReader]:
    reader = SnapshotReader(site.hot_log, site.root, columns=HOT.names)
    yield reader
    reader.close()


POST_AND_LOAD = f"""
import sys
from warehouse.lake.roots import LocalPath
import pyarrow as pa
from tests.warehouse.site import some_rows
from warehouse.hotlog import batches
from warehouse.maintenance import compact
from warehouse.query import engine
from warehouse.errors import DataIncomplete
from warehouse.maintenance.load import load
from warehouse.schema import HOT

folder = LocalPath(sys.argv[1])
hot, root, share = batches.connect(folder / "hot.sqlite"), folder / "lake", engine.Share(folder / "other")
for number in range({BATCHES}):
    rows = [{{**row, "path": "/" + row["event_id"]}} for row in some_rows(number * {BATCH_ROWS}, {BATCH_ROWS})]
    batches.append(hot, pa.RecordBatch.from_pylist(rows, HOT), 0)
    print((number + 1) * {BATCH_ROWS}, flush=True)
    if number % 2:
        load(hot, root, 10)
    if number % 9 == 0:
        compact.compact(hot, root, share, 10)
    if number % 20 == 0:
        compact.vacuum(hot, root, 10)
"""


class Writer:
    """Another process that posts, loads and compacts. `acknowledged` is the number of rows committed so far."""

    def __init__(self, site: Site) -> None:
        self.acknowledged = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", POST_AND_LOAD, site.root.parent], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        self.listener = threading.Thread(target=self._listen)
        self.listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.acknowledged = int(line)

    def is_writing(self) -> bool:
        return self.process.poll() is None

    def wait(self) -> int:
        self.listener.join()
        return self.process.wait()


def count_hits_and_errors(site: Site, snapshots: sql_views.Snapshots) -> tuple[int, int]:
    with site.database.cursor() as cursor:
        sql_views.create_temporary(cursor, snapshots)
        counted = cursor.execute("SELECT (SELECT count(*) FROM hits), (SELECT coalesce(sum(requests), 0) FROM errors)")
        totals: tuple[int, int] | None = counted.fetchone()
    assert totals is not None
    return totals


def rows_of(snapshot: Snapshot) -> int:
    """Return the number of hits without a query, so that many snapshots are taken in a short time."""
    return sum(file.rows for file in snapshot.files) + int(snapshot.hot.num_rows)


@pytest.mark.long
def test_snapshots_and_reports_never_shrink_while_another_process_loads_and_are_exact_at_the_end(
    site: Site, reader: SnapshotReader
) -> None:
    reports, writer = site.reports(), Writer(site)
    queries: list[Callable[[], int]] = [
        lambda: total(reports, FIRST, LAST),
        lambda: total(reports, NOON - DAY / 4, NOON + 3 * DAY),  # both partial and whole days
        lambda: total(reports, FIRST, None),
    ]
    before, rows_before = [0] * len(queries), 0
    with ThreadPoolExecutor(len(queries)) as threads:
        while writer.is_writing():
            for _ in range(20):
                acknowledged = writer.acknowledged
                rows = rows_of(reader.take())
                assert rows >= max(acknowledged, rows_before)
                rows_before = rows
            totals = list(threads.map(lambda query: query(), queries))
            least = sum(row["traffic"] != "bot" for row in some_rows(0, acknowledged))
            assert all(now >= max(then, least) for now, then in zip(totals, before, strict=True))
            before = totals
        assert writer.wait() == 0
        assert [query() for query in queries] == [COUNTED] * len(queries)
    assert count_hits_and_errors(site, reader.take_all()) == (ROWS, 0)
    reports.close()


def total(reports: Reports, start: object, end: object) -> int:
    ranking = rank(reports, "site", start, end, NOON + 9 * DAY)  # type: ignore[arg-type]
    return ranking.human + ranking.ai


@pytest.mark.long
def test_hit_that_is_loaded_and_deleted_during_the_read_of_hot_rows_is_not_missed(
    site: Site, reader: SnapshotReader
) -> None:
    # SQLite calls the trace callback when a statement begins, before it reads a row.
    reader._hot.set_trace_callback(lambda statement: site.load())
    for count in range(1, 5):
        site.post(*some_rows(count - 1, 1))
        snapshots = reader.take_all()
        assert site.waiting() == 0
        assert count_hits_and_errors(site, snapshots) == (count, 0)
    reader._hot.set_trace_callback(None)


@pytest.mark.long
def test_snapshot_does_not_change_after_it_was_taken(site: Site, reader: SnapshotReader) -> None:
    site.post(*some_rows(0, 3))
    site.load()
    site.post(*some_rows(3, 2))
    before_changes = reader.take_all()
    site.post(*some_rows(5, 4))
    site.load()
    site.compact()
    compact.vacuum(site.hot, site.root, 0)
    assert count_hits_and_errors(site, before_changes) == (5, 0)
    assert count_hits_and_errors(site, reader.take_all()) == (9, 0)


def load_hits_alone(site: Site) -> None:
    """Load as a loader that is killed between its commits to the two tables."""

    def die(step: str) -> None:
        if step == "before commit of asset_loads":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        site.load(die)


def some_errors(count: int) -> list[Row]:
    return [view(traffic="bot", status=404) for _ in range(count)]


def test_table_that_is_ahead_of_the_other_gets_fewer_hot_rows(site: Site, reader: SnapshotReader) -> None:
    site.post(*some_rows(0, 3), *some_errors(4))
    load_hits_alone(site)
    site.post(*some_rows(3, 2), *some_errors(1))
    snapshots = reader.take_all()
    assert [(sum(file.rows for file in each.files), each.hot.num_rows) for each in snapshots.values()] == [
        (3, 2),
        (0, 0),
        (0, 2),  # one row a batch
        (0, 0),
    ]
    assert count_hits_and_errors(site, snapshots) == (5, 5)


def test_staged_rows_are_in_each_table_once_while_the_loader_has_committed_to_one_table_only(
    site: Site, reader: SnapshotReader
) -> None:
    site.stage([*some_rows(0, 3), *some_errors(1)])
    site.stage(some_rows(3, 2))
    load_hits_alone(site)
    site.stage([*some_rows(5, 1), *some_errors(2)])
    snapshots = reader.take_all()
    assert {each.hot.num_rows for each in snapshots.values()} == {0}
    assert count_hits_and_errors(site, snapshots) == (6, 3)
    site.load()
    assert count_hits_and_errors(site, reader.take_all()) == (6, 3)


@pytest.mark.timeout(120)
def test_snapshot_beside_a_hot_log_restored_from_an_older_copy_is_refused(site: Site, tmp_path: Path) -> None:
    site.post(*some_rows(0, 1))
    site.hot.close()
    shutil.copy(site.hot_log, tmp_path / "copy")
    site.hot = batches.connect(site.hot_log)
    site.post(*some_rows(1, 2))
    load_hits_alone(site)
    site.hot.close()
    shutil.copy(tmp_path / "copy", site.hot_log)
    site.hot = batches.connect(site.hot_log)
    with pytest.raises(DataIncomplete, match="is older than the lake, which has its batches up to 2"):
        SnapshotReader(site.hot_log, site.root, columns=HOT.names)


def test_snapshot_of_a_lake_with_the_hot_log_of_another_one_is_refused(site: Site, tmp_path: Path) -> None:
    for each in (site, Site(tmp_path / "other")):
        each.post(*some_rows(0, 1))
        each.load()
        each.hot.close()
    with pytest.raises(DataIncomplete):
        SnapshotReader(site.hot_log, LocalPath(tmp_path / "other" / "lake"))


@pytest.mark.long
def test_reader_that_is_opened_later_takes_the_same_snapshot(site: Site, reader: SnapshotReader) -> None:
    for first in range(0, 40, 4):
        site.post(*some_rows(first, 4))
        if first % 12 == 0:
            site.load()
        reader.take()
    late = SnapshotReader(site.hot_log, site.root, columns=HOT.names)
    assert count_hits_and_errors(site, late.take_all()) == count_hits_and_errors(site, reader.take_all()) == (40, 0)
    late.close()


@pytest.mark.long
def test_hot_rows_of_many_batches_are_joined(site: Site, reader: SnapshotReader) -> None:
    for number in range(100):
        site.post(*some_rows(number, 1))
        reader.take()
    before_changes = reader.take().hot
    assert before_changes["event_id"].to_pylist() == [row["event_id"] for row in some_rows(0, 100)]
    assert before_changes["path"].num_chunks <= 7


def test_rows_of_another_node_are_counted_once(site: Site, reader: SnapshotReader, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    site.post(*some_rows(0, 3))
    other.root = site.root
    other.post(*some_rows(3, 4))
    other.load()
    assert count_hits_and_errors(site, reader.take_all()) == (7, 0)
    assert sum(file.rows for file in reader.take().files) == 4
    assert site.state(HITS_TABLE).offset == 0
    other.close()


def test_read_that_failed_is_repeated_without_a_lost_or_repeated_batch(tmp_path: Path) -> None:
    site = Site(tmp_path / "data")
    site.post(view(path="/a"))
    site.post(view(path="/b"))
    whole = site.hot.execute("SELECT message FROM batches WHERE id = 2").fetchone()[0]
    site.hot.execute("UPDATE batches SET message = x'00' WHERE id = 2")
    reader = SnapshotReader(site.hot_log, site.root, columns=HOT.names)
    with pytest.raises(BatchDamaged):
        reader.take()
    site.hot.execute("UPDATE batches SET message = ? WHERE id = 2", (whole,))
    assert reader.take().hot["path"].to_pylist() == ["/a", "/b"]
    reader.close()
    site.close()


@pytest.mark.parametrize("count", [2, 3, 4, 6, 10])
def test_no_batch_is_lost_when_batches_are_joined_during_the_read(
    site: Site, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(hot_rows, "PIECES_MAX", 3)
    reader = SnapshotReader(site.hot_log, site.root, columns=HOT.names)
    for first in (0, count):
        for row in some_rows(first, count):
            site.post(row)
        taken = reader.take()
        expected = [row["event_id"] for row in some_rows(0, first + count)]
        assert taken.hot["event_id"].to_pylist() == expected
        assert taken.hot["batch_id"].to_pylist() == list(range(1, first + count + 1))
    reader.close()


def test_hot_rows_have_the_report_columns_and_their_batch_in_order(site: Site) -> None:
    reader = SnapshotReader(site.hot_log, site.root)
    post(site, 1, 2)
    post(site, 3)
    hot = reader.take().hot
    assert hot.column_names == [*HOT_COLUMNS, "batch_id"]
    assert (hot["path"].to_pylist(), hot["batch_id"].to_pylist()) == (["/1", "/2", "/3"], [1, 1, 2])
    reader.close()


def test_snapshot_has_loaded_staged_and_hot_rows_once(site: Site, reader: SnapshotReader) -> None:
    post(site, 1)
    site.load()
    site.stage([view("/2")])
    post(site, 3)
    snapshot = reader.take()
    assert (hits(site, snapshot), len(snapshot.files), snapshot.hot.num_rows) == (paths(1, 2, 3), 2, 1)
    site.load()
    assert (hits(site, reader.take()), reader.take().hot.num_rows) == (paths(1, 2, 3), 0)


def test_moment_names_the_version_the_newest_batch_and_the_time(site: Site) -> None:
    reader = SnapshotReader(site.hot_log, site.root, Clock())
    post(site, 1)
    site.load()
    site.stage([view("/2")])
    post(site, 3)
    moment = reader.take().moment
    assert (moment.version, moment.last_id, moment.staged) == (1, 3, 2)
    assert str(moment) == "2026-09-01T12:00:00.000000Z_1_3"
    reader.close()


def test_files_key_changes_with_the_files_and_not_with_hot_rows(site: Site, reader: SnapshotReader) -> None:
    keys = [reader.take().files_key]
    post(site, 1)
    assert reader.take().files_key == keys[0]
    for change in (site.load, lambda: site.stage([view()]), lambda: site.stage([view()]), site.load):
        change()
        keys.append(reader.take().files_key)
        assert reader.take().files_key == keys[-1]
    assert len(set(keys)) == len(keys)


def test_commit_that_was_empty_when_it_was_read_first_is_read_again(site: Site, reader: SnapshotReader) -> None:
    post(site, 1)
    reader.take()
    site.load()
    commit = site.root / "hits" / "_delta_log" / f"{1:020}.json"
    content = commit.read_bytes()
    commit.write_bytes(b"")
    with pytest.raises(DataIncomplete):
        reader.take()
    commit.write_bytes(content)
    assert hits(site, reader.take()) == paths(1)
