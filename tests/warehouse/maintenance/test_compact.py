"""Compaction and vacuum reduce the number of files and change no answer."""

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, nullcontext
from datetime import date, timedelta
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import CommitFailedError

from tests.warehouse.batch.tasks import DyingProcess
from tests.warehouse.site import DAY, NOON, Site, key, some_rows, view
from warehouse.batch.items import Item, OpenWorkers, Result
from warehouse.batch.processes import ChildProcess, ThisProcess, this_process
from warehouse.errors import LakeBusy, WorkerDied
from warehouse.hotlog import batches
from warehouse.lake import delta_table, rewriting
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import compact, load
from warehouse.maintenance.compact import Compacted
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot, SnapshotReader


def load_each(site: Site, count: int, *, first: int = 0) -> None:
    """Load `count` times, one row each."""
    for row in some_rows(first, count):
        site.post(row)
        site.load()


def files(site: Site, spec: delta_table.Spec) -> Counter[str]:
    """Return the number of live files by partition."""
    return Counter(file.partition for file in site.state(spec).files)


def test_compacted_partition_has_one_file(site: Site) -> None:
    load_each(site, 9)
    assert files(site, delta_table.HITS_TABLE) == {"2026-09-15": 3, "2026-09-16": 3, "2026-09-17": 3}
    assert site.compact() == Compacted(partitions=3, files_before=9, files_after=3)
    assert files(site, delta_table.HITS_TABLE) == {"2026-09-15": 1, "2026-09-16": 1, "2026-09-17": 1}


@pytest.mark.parametrize("workers", [None, this_process])
def test_files_of_a_lake_behind_a_symbolic_link_are_named_from_the_folder_of_their_table(
    site: Site, tmp_path: Path, workers: OpenWorkers | None
) -> None:
    link = tmp_path / "link"
    link.symlink_to(site.root)
    for row in some_rows(0, 6):
        site.post(row)
        load.load(site.hot, LocalPath(link), 0)
    if workers is None:
        compact.compact(site.hot, LocalPath(link), site.database, 1, 0)
    else:
        compact.compact_in_workers(site.hot, LocalPath(link), site.database, workers, 0)
    paths = pa.table(site.table(delta_table.HITS_TABLE).get_add_actions())["path"].to_pylist()
    assert {path.count("/") for path in paths} == {1}
    assert len(site.stored(delta_table.HITS_TABLE)) == 6
    assert site.faults() == []


def test_compaction_loses_and_repeats_no_row(site: Site) -> None:
    load_each(site, 9)
    before = sorted(map(repr, site.stored(delta_table.HITS_TABLE)))
    site.compact()
    assert sorted(map(repr, site.stored(delta_table.HITS_TABLE))) == before
    assert site.daily_views() == Counter(map(key, some_rows(0, 9)))


def test_partial_counts_of_errors_become_one_row_a_key(site: Site) -> None:
    rows = [
        view(traffic="ai", agent=agent, status=404, ts=NOON + days * DAY)
        for agent, days in (("GPTBot", 0), ("GPTBot", 1), (None, 0))
    ]
    for _ in range(3):
        site.post(*rows)
        site.load()
    assert len(site.stored(delta_table.DAILY_ERRORS_TABLE)) == 9
    site.compact()
    stored = site.stored(delta_table.DAILY_ERRORS_TABLE)
    assert {(row["agent"], row["date"]): row["requests"] for row in stored} == {
        (row["agent"], row["ts"].date()): 3 for row in rows
    }
    assert len(stored) == 3


def test_partition_with_few_small_files_is_not_rewritten(site: Site) -> None:
    load_each(site, 10)
    assert site.compact(small_files_max=3) == Compacted(partitions=1, files_before=4, files_after=1)
    assert files(site, delta_table.HITS_TABLE) == {"2026-09-15": 1, "2026-09-16": 3, "2026-09-17": 3}
    assert site.compact(small_files_max=3) == Compacted(partitions=0, files_before=0, files_after=0)


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_of_each_file_are_in_the_order_of_the_table(site: Site, compacted: bool) -> None:
    mixed = [
        view(path=path, project_id=project, ts=NOON + DAY * (number % 3) - timedelta(seconds=number))
        for number in range(90)
        for project in ("site", "other", "third")
        for path in ("/b", "/a", "/%C3%A9", "/Z")
    ]
    for _ in range(2):
        site.post(*mixed)
        site.load()
    if compacted:
        site.compact()
    for spec in delta_table.TABLES:
        for file in site.state(spec).files:
            rows = pq.ParquetFile(file.path).read().to_pylist()
            places = [tuple(row[name] for name in spec.order if name in row) for row in rows]
            assert places == sorted(places)


def test_closed_before_excludes_the_open_day_and_month(site: Site) -> None:
    for _ in range(2):
        days = [NOON + day * DAY for day in (-20, -16, -15, -1, 0)]
        site.post(*(view(ts=day) for day in days), *(view(ts=day, traffic="bot", status=404) for day in days))
        site.load()
    today = (NOON - DAY).date()
    assert site.compact(closed_before=today) == Compacted(partitions=4, files_before=8, files_after=4)
    assert files(site, delta_table.HITS_TABLE) == {
        "2026-08-26": 1,
        "2026-08-30": 1,
        "2026-08-31": 1,
        "2026-09-14": 2,
        "2026-09-15": 2,
    }
    assert files(site, delta_table.DAILY_ERRORS_TABLE) == {"2026-08": 1, "2026-09": 2}
    site.compact(closed_before=date(2026, 10, 1))
    assert (
        set(files(site, delta_table.HITS_TABLE).values())
        == set(files(site, delta_table.DAILY_ERRORS_TABLE).values())
        == {1}
    )


def test_lake_is_unlocked_after_each_partition(site: Site) -> None:
    load_each(site, 9)
    waiting = some_rows(9, 3)

    def post_and_load() -> None:
        site.post(waiting.pop())
        assert site.load().rows == 1

    compact.compact(site.hot, site.root, site.database, 1, 0, between=post_and_load)
    assert waiting == []
    assert site.daily_views() == Counter(map(key, some_rows(0, 12)))


def test_offsets_survive_compaction_checkpoint_and_vacuum(site: Site) -> None:
    load_each(site, 5)
    site.compact()
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    for spec in delta_table.TABLES:
        log = sorted(path.name for path in (site.root / spec.name / "_delta_log").iterdir())
        assert not any(name.endswith("00.json") for name in log), log
        assert site.state(spec).offset == batches.last_id(site.hot) == 5
    load_each(site, 3, first=5)
    assert site.event_ids() == [row["event_id"] for row in some_rows(0, 8)]
    assert site.daily_views() == Counter(map(key, some_rows(0, 8)))


def read_count(site: Site, snapshot: Snapshot) -> int:
    """Return the number of hits of a snapshot, as DuckDB reads them from its file list."""
    ((count,),) = site.database.execute(f"SELECT count(*) FROM {engine.parquet(snapshot.files)}").fetchall()
    return int(count)


def test_snapshot_can_be_read_after_compaction_and_vacuum(site: Site) -> None:
    load_each(site, 6)
    reader = SnapshotReader(site.hot_log, site.root)
    before_compaction = reader.take()
    site.compact()
    load_each(site, 4, first=6)
    compact.vacuum(site.hot, site.root, 0)
    assert read_count(site, before_compaction) == 6
    assert read_count(site, reader.take()) == 10
    reader.close()


@pytest.mark.long
def test_idle_reader_sees_the_newest_rows_after_a_vacuum_truncated_the_log(site: Site) -> None:
    load_each(site, 2)
    reader = SnapshotReader(site.hot_log, site.root)
    reader.take()
    load_each(site, 60, first=2)
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    assert read_count(site, reader.take()) == 62
    load_each(site, 1, first=62)
    assert read_count(site, reader.take()) == 63
    reader.close()


def on_disk(site: Site) -> set[str]:
    return {str(path) for path in site.root.glob("*/*=*/*.parquet")}


def live(site: Site) -> set[str]:
    return {file.path for spec in delta_table.TABLES for file in site.state(spec).files}


def test_removed_files_stay_on_disk_for_the_grace_period(site: Site) -> None:
    load_each(site, 4)
    site.age()
    before = on_disk(site)
    site.compact()
    compact.vacuum(site.hot, site.root, 0)
    assert on_disk(site) == before | live(site)


@pytest.mark.parametrize("is_checkpointed", [False, True], ids=["named in the log", "not named in the checkpoint"])
def test_removed_files_are_deleted_after_the_grace_period(site: Site, is_checkpointed: bool) -> None:
    load_each(site, 4)
    site.compact()
    site.age()
    if is_checkpointed:  # as after each 50th commit
        for spec in delta_table.TABLES:
            site.table(spec).create_checkpoint()
    compact.vacuum(site.hot, site.root, 0)
    assert on_disk(site) == live(site)
    assert site.daily_views() == Counter(map(key, some_rows(0, 4)))


def test_file_that_a_killed_loader_left_is_deleted_after_the_grace_period(site: Site) -> None:
    load_each(site, 1)
    written = Path(site.state(delta_table.HITS_TABLE).files[0].path)
    left = written.with_name("part-00000-left.parquet")
    left.write_bytes(written.read_bytes())
    compact.vacuum(site.hot, site.root, 0)
    assert left.exists()
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    assert on_disk(site) == live(site)


def test_partition_with_a_damaged_file_does_not_prevent_the_compaction_of_the_others(site: Site) -> None:
    load_each(site, 9)
    damaged = next(file for file in site.state(delta_table.HITS_TABLE).files if file.partition == "2026-09-15")
    Path(damaged.path).write_bytes(b"PAR1 and no more")
    between = Counter[str]()
    with pytest.raises(duckdb.Error) as caught:
        compact.compact(site.hot, site.root, site.database, 1, 0, between=lambda: between.update(["call"]))
    assert files(site, delta_table.HITS_TABLE) == {"2026-09-15": 3, "2026-09-16": 1, "2026-09-17": 1}
    assert between == {"call": 3}
    assert caught.value.__notes__ == ["in hits of 2026-09-15"]


@pytest.mark.long
def test_each_partition_with_a_damaged_file_is_named_by_an_error(site: Site) -> None:
    compactions: tuple[Callable[[], Compacted], ...] = (site.compact, lambda: compact_in_workers(site))
    for compact_all in compactions:
        load_each(site, 9)
        for file in site.state(delta_table.HITS_TABLE).files:
            if file.partition != "2026-09-16":
                Path(file.path).write_bytes(b"PAR1 and no more")
        with pytest.raises(ExceptionGroup) as caught:
            compact_all()
        assert [error.__notes__ for error in caught.value.exceptions] == [
            ["in hits of 2026-09-15"],
            ["in hits of 2026-09-17"],
        ]
        assert files(site, delta_table.HITS_TABLE)["2026-09-16"] == 1


def test_compaction_and_vacuum_time_out_on_the_lock(site: Site) -> None:
    load_each(site, 4)
    with write_lock(site.root, 0):
        with pytest.raises(LakeBusy):
            site.compact()
        with pytest.raises(LakeBusy):
            compact.vacuum(site.hot, site.root, 0)
    assert site.compact().partitions == 1


def compact_in_workers(
    site: Site, open_workers: OpenWorkers = this_process, between: Callable[[], object] = lambda: None
) -> Compacted:
    return compact.compact_in_workers(site.hot, site.root, site.database, open_workers, 0, between)


@pytest.mark.long
def test_compaction_in_workers_writes_what_one_in_this_process_writes(site: Site, tmp_path: Path) -> None:
    rows = [*reversed(some_rows(0, 9)), view(status=404, traffic="ai", agent="GPTBot")]
    with closing(Site(tmp_path / "reference")) as reference:
        for row in rows:
            for each in (site, reference):
                each.post(row)
                each.load()
        assert compact_in_workers(site) == reference.compact()
        assert files(site, delta_table.HITS_TABLE) == files(reference, delta_table.HITS_TABLE)
        for spec in delta_table.TABLES:
            assert sorted(map(repr, site.stored(spec))) == sorted(map(repr, reference.stored(spec)))
            schemas = [pq.read_schema(each.state(spec).files[0].path) for each in (site, reference)]
            assert schemas[0].remove_metadata() == schemas[1].remove_metadata()
        for file in site.state(delta_table.HITS_TABLE).files:
            times = pq.ParquetFile(file.path).read()["ts"].to_pylist()
            assert times == sorted(times)
    assert site.faults() == []
    assert compact_in_workers(site) == Compacted(partitions=0, files_before=0, files_after=0)


@pytest.mark.long
def test_compaction_is_exact_if_a_worker_is_killed_after_it_wrote_its_files(site: Site, tmp_path: Path) -> None:
    load_each(site, 9)
    workers = [DyingProcess(tmp_path / "died"), ChildProcess()]
    try:
        assert compact_in_workers(site, lambda count: nullcontext(workers)).files_after == 3
    finally:
        for worker in workers:
            worker.close()
    assert (tmp_path / "died").exists()
    assert site.event_ids() == [f"event-{number:06d}" for number in range(9)]
    assert site.daily_views() == Counter(map(key, some_rows(0, 9)))
    assert site.faults() == []
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    assert len(list((site.root / "hits").glob("date=*/*.parquet"))) == 3


class DiesWithADay(ThisProcess):
    """A worker whose process dies with each task of one day."""

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        if not (isinstance(item, compact.Partition) and item.partition == "2026-09-15"):
            return super().submit(function, item)
        future = Future[Result]()
        future.set_exception(ConnectionResetError())
        return future

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, ConnectionResetError)

    def restart(self) -> None:
        pass


def test_partition_with_which_workers_die_does_not_prevent_the_compaction_of_the_others(site: Site) -> None:
    load_each(site, 9)
    with pytest.raises(WorkerDied) as caught:
        compact_in_workers(site, lambda count: nullcontext([DiesWithADay()]))
    assert caught.value.__notes__ == ["in hits of 2026-09-15"]
    assert files(site, delta_table.HITS_TABLE) == {"2026-09-15": 3, "2026-09-16": 1, "2026-09-17": 1}
    assert site.event_ids() == [f"event-{number:06d}" for number in range(9)]


class Waiting(ThisProcess):
    """A worker whose new files wait 50 minutes for their commit."""

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        assert isinstance(item, compact.Partition)
        assert item.workers == 2
        done = super().submit(function, item)
        for file in cast("tuple[delta_table.File, ...]", done.result()):
            then_s = Path(file.path).stat().st_mtime - 3000
            os.utime(file.path, (then_s, then_s))
        return done


def test_sorted_files_that_waited_for_their_commit_are_used(site: Site) -> None:
    load_each(site, 9)
    old = set(site.root.glob("*/*/*.parquet"))
    assert compact_in_workers(site, lambda count: nullcontext([Waiting(), Waiting()])).files_after == 3
    assert len(set(site.root.glob("*/*/*.parquet")) - old) == 3  # none was written a second time
    assert site.event_ids() == [f"event-{number:06d}" for number in range(9)]


@pytest.mark.long
def test_partition_that_changed_while_a_worker_sorted_it_is_rewritten_with_its_new_rows(site: Site) -> None:
    load_each(site, 9)
    done = compact_in_workers(site, between=lambda: load_each(site, 3, first=9 + len(site.event_ids())))
    assert done.partitions == 3
    assert len(site.event_ids()) == len(set(site.event_ids())) == 18
    assert site.faults() == []


@pytest.mark.long
def test_files_that_another_process_compacted_and_deleted_before_they_were_sorted_are_not_read(site: Site) -> None:
    load_each(site, 9)

    def compact_and_vacuum() -> None:
        site.compact()
        site.age()
        compact.vacuum(site.hot, site.root, 0)

    done = compact_in_workers(site, between=compact_and_vacuum)
    assert done.partitions < 4
    assert site.event_ids() == [f"event-{number:06d}" for number in range(9)]
    assert site.faults() == []


def test_files_that_another_node_replaced_are_not_replaced_again(site: Site) -> None:
    load_each(site, 9)
    spec = delta_table.HITS_TABLE
    stale, day = site.table(spec), "2026-09-15"
    [(_, task)] = compact._tasks(site.root, [(spec, day)], site.spill, 1, {})
    new = compact.sort_partition(task)
    load_each(site, 3, first=9)
    rewriting.replace_files(stale, spec, task.files, new)
    assert len(site.event_ids()) == 12
    old = delta_table.open_version(site.root, spec, stale.version() - 1)
    with pytest.raises(CommitFailedError):
        rewriting.replace_files(old, spec, task.files, compact.sort_partition(task))
    assert len(site.event_ids()) == len(set(site.event_ids())) == 12
