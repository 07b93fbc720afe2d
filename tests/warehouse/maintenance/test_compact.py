"""Compaction and vacuum reduce the number of files and change no answer."""

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import CommitFailedError

from tests.warehouse.batch.tasks import DyingProcesses
from tests.warehouse.site import DAY, NOON, Site, key, some_rows, view
from warehouse.batch.driver import Executor, Item, Result, ThisProcess
from warehouse.errors import LakeBusy, WorkerDied
from warehouse.hotlog import batches
from warehouse.lake import delta_table, rewriting
from warehouse.lake.delta_table import File
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import compact, load
from warehouse.maintenance.compact import Compacted
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE, TABLES, Spec


def load_each(site: Site, count: int, *, first: int = 0) -> None:
    """Load `count` times, one row each."""
    for row in some_rows(first, count):
        site.post(row)
        site.load()


def load_nine(site: Site) -> None:
    load_each(site, 9)


@pytest.fixture
def nine(tmp_path: Path) -> Iterable[Site]:
    """Yield a site with three files of one row on each of three days."""
    with closing(Site.after(load_nine, tmp_path / "nine")) as site:
        yield site


def files(site: Site, spec: Spec) -> Counter[str]:
    """Return the number of live files by partition."""
    return Counter(file.partition for file in site.state(spec).files)


def test_compacted_partition_has_one_file_with_each_row_once(nine: Site) -> None:
    before = sorted(map(repr, nine.stored(HITS_TABLE)))
    assert files(nine, HITS_TABLE) == {"2026-09-15": 3, "2026-09-16": 3, "2026-09-17": 3}
    assert nine.compact() == Compacted(partitions=3, files_before=9, files_after=3)
    assert files(nine, HITS_TABLE) == {"2026-09-15": 1, "2026-09-16": 1, "2026-09-17": 1}
    assert sorted(map(repr, nine.stored(HITS_TABLE))) == before
    assert nine.daily_views() == Counter(map(key, some_rows(0, 9)))


@pytest.mark.long
def test_files_of_a_lake_behind_a_symbolic_link_are_named_from_the_folder_of_their_table(
    site: Site, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(site.root)
    for row in some_rows(0, 6):
        site.post(row)
        load.load(site.hot, LocalPath(link), 0)
    compact.compact(site.hot, LocalPath(link), site.share, 0)
    paths = pa.table(site.table(HITS_TABLE).get_add_actions())["path"].to_pylist()
    assert {path.count("/") for path in paths} == {1}
    assert len(site.stored(HITS_TABLE)) == 6
    assert site.faults() == []


@pytest.mark.long
def test_partial_counts_of_errors_become_one_row_a_key(site: Site) -> None:
    rows = [
        view(traffic="ai", agent=agent, status=404, ts=NOON + days * DAY)
        for agent, days in (("GPTBot", 0), ("GPTBot", 1), (None, 0))
    ]
    for _ in range(3):
        site.post(*rows)
        site.load()
    assert len(site.stored(REQUESTS_TABLE)) == 9
    site.compact()
    stored = site.stored(REQUESTS_TABLE)
    assert {(row["agent"], row["date"]): row["errors"] for row in stored} == {
        (row["agent"], row["ts"].date()): 3 for row in rows
    }
    assert len(stored) == 3


@pytest.mark.long
def test_partition_with_few_small_files_is_not_rewritten(site: Site) -> None:
    load_each(site, 10)
    assert site.compact(small_files_max=3) == Compacted(partitions=1, files_before=4, files_after=1)
    assert files(site, HITS_TABLE) == {"2026-09-15": 1, "2026-09-16": 3, "2026-09-17": 3}
    assert site.compact(small_files_max=3) == Compacted(partitions=0, files_before=0, files_after=0)


@pytest.mark.long
def test_rows_of_each_compacted_file_are_in_the_order_of_the_table(site: Site) -> None:
    mixed = [
        view(path=path, project_id=project, ts=NOON + DAY * (number % 3) - timedelta(seconds=number))
        for number in range(90)
        for project in ("site", "other", "third")
        for path in ("/b", "/a", "/%C3%A9", "/Z")
    ]
    for _ in range(2):
        site.post(*mixed)
        site.load()
    site.compact()
    for spec in TABLES:
        for file in site.state(spec).files:
            rows = pq.ParquetFile(file.path).read().to_pylist()
            places = [tuple(row[name] for name in spec.order if name in row) for row in rows]
            assert places == sorted(places)


@pytest.mark.long
def test_day_and_month_that_have_not_ended_are_left_out(site: Site) -> None:
    for _ in range(2):
        days = [NOON + day * DAY for day in (-20, -16, -15, -1, 0)]
        site.post(*(view(ts=day) for day in days), *(view(ts=day, traffic="bot", status=404) for day in days))
        site.load()

    def compact_ended(before: date) -> Compacted:
        return compact.compact(site.hot, site.root, site.share, 0, partial(compact.ended, before))

    assert compact_ended((NOON - DAY).date()) == Compacted(partitions=4, files_before=8, files_after=4)
    assert files(site, HITS_TABLE) == {
        "2026-08-26": 1,
        "2026-08-30": 1,
        "2026-08-31": 1,
        "2026-09-14": 2,
        "2026-09-15": 2,
    }
    assert files(site, REQUESTS_TABLE) == {"2026-08": 1, "2026-09": 2}
    compact_ended(date(2026, 10, 1))
    assert set(files(site, HITS_TABLE).values()) == set(files(site, REQUESTS_TABLE).values()) == {1}


LOADS_A_DAY = 1_440
"""Number of loads of a day, one a minute."""


@pytest.mark.parametrize("rows_of", [lambda load: 100, lambda load: 1 + load % 7 * load], ids=["steady", "varied"])
def test_row_of_today_is_rewritten_a_logarithmic_number_of_times(rows_of: Callable[[int], int]) -> None:
    """Each file has the number of its rows, and the number of times that each of them was rewritten at most."""
    day: dict[File, int] = {}
    written = loaded = 0
    for number in range(LOADS_A_DAY):
        day[File(f"load-{number}", "2026-09-15", 10_000, rows_of(number))] = 0
        loaded += rows_of(number)
        if chosen := compact.tier(list(day)):
            rows, times = sum(file.rows for file in chosen), 1 + max(day.pop(file) for file in chosen)
            day[File(f"merged-{number}", "2026-09-15", 10_000, rows)] = times
            written += rows
        assert len(day) <= 2 * compact.CROWDED_FILES
    least = min(map(rows_of, range(LOADS_A_DAY)))
    assert max(day.values()) <= 1 + math.log(loaded / least, compact.GROWTH)
    assert written <= 5 * loaded
    assert compact.whole(list(day)) == list(day)


@pytest.mark.long
def test_tiers_leave_out_a_file_until_the_smaller_ones_have_three_times_its_rows(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "CROWDED_FILES", 4)

    def load(rows: int) -> None:
        site.post(*(view(ts=NOON) for _ in range(rows)))
        site.load()

    load(100)
    for rows, expected in ((1, [4, 100]), (2, [4, 8, 100]), (80, [432])):
        for _ in range(compact.CROWDED_FILES):
            load(rows)
        compact.compact(site.hot, site.root, site.share, 0, compact.tier)
        assert sorted(file.rows for file in site.state(HITS_TABLE).files) == expected
    assert len(site.stored(HITS_TABLE)) == 432
    assert site.faults() == []


@pytest.mark.long
def test_lake_is_unlocked_after_each_partition(nine: Site) -> None:
    waiting = some_rows(9, 3)

    def post_and_load() -> None:
        nine.post(waiting.pop())
        assert nine.load().rows == 1

    compact.compact(nine.hot, nine.root, nine.share, 0, between=post_and_load)
    assert waiting == []
    assert nine.daily_views() == Counter(map(key, some_rows(0, 12)))


@pytest.mark.long
def test_offsets_survive_compaction_checkpoint_and_vacuum(site: Site) -> None:
    load_each(site, 5)
    site.compact()
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    for spec in TABLES:
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


@pytest.mark.long
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
    load_each(site, 6, first=2)
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    assert not (site.root / "hits" / "_delta_log" / f"{3:020}.json").exists(), "the next commit after the reader's"
    assert read_count(site, reader.take()) == 8
    load_each(site, 1, first=8)
    assert read_count(site, reader.take()) == 9
    reader.close()


def on_disk(site: Site) -> set[str]:
    return {str(path) for path in site.root.glob("*/*=*/*.parquet")}


def live(site: Site) -> set[str]:
    return {file.path for spec in TABLES for file in site.state(spec).files}


@pytest.mark.long
def test_removed_files_stay_on_disk_for_the_grace_period(site: Site) -> None:
    load_each(site, 4)
    site.age()
    before = on_disk(site)
    site.compact()
    compact.vacuum(site.hot, site.root, 0)
    assert on_disk(site) == before | live(site)


@pytest.mark.long
@pytest.mark.parametrize("is_checkpointed", [False, True], ids=["named in the log", "not named in the checkpoint"])
def test_removed_files_are_deleted_after_the_grace_period(site: Site, is_checkpointed: bool) -> None:
    load_each(site, 4)
    site.compact()
    site.age()
    if is_checkpointed:  # as after each 50th commit
        for spec in TABLES:
            site.table(spec).create_checkpoint()
    compact.vacuum(site.hot, site.root, 0)
    assert on_disk(site) == live(site)
    assert site.daily_views() == Counter(map(key, some_rows(0, 4)))


@pytest.mark.long
def test_file_that_a_killed_loader_left_is_deleted_after_the_grace_period(site: Site) -> None:
    load_each(site, 1)
    written = Path(site.state(HITS_TABLE).files[0].path)
    left = written.with_name("part-00000-left.parquet")
    left.write_bytes(written.read_bytes())
    compact.vacuum(site.hot, site.root, 0)
    assert left.exists()
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    assert on_disk(site) == live(site)


def test_partition_with_a_damaged_file_does_not_prevent_the_compaction_of_the_others(nine: Site) -> None:
    damaged = next(file for file in nine.state(HITS_TABLE).files if file.partition == "2026-09-15")
    Path(damaged.path).write_bytes(b"PAR1 and no more")
    between = Counter[str]()
    with pytest.raises(duckdb.Error) as caught:
        compact.compact(nine.hot, nine.root, nine.share, 0, between=lambda: between.update(["call"]))
    assert files(nine, HITS_TABLE) == {"2026-09-15": 3, "2026-09-16": 1, "2026-09-17": 1}
    assert between == {"call": 3}
    assert caught.value.__notes__ == ["in hits of 2026-09-15"]


def test_each_partition_with_a_damaged_file_is_named_by_an_error(nine: Site) -> None:
    for file in nine.state(HITS_TABLE).files:
        if file.partition != "2026-09-16":
            Path(file.path).write_bytes(b"PAR1 and no more")
    with pytest.raises(ExceptionGroup) as caught:
        nine.compact()
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["in hits of 2026-09-15"],
        ["in hits of 2026-09-17"],
    ]
    assert files(nine, HITS_TABLE)["2026-09-16"] == 1


@pytest.mark.long
def test_compaction_and_vacuum_time_out_on_the_lock(site: Site) -> None:
    load_each(site, 4)
    with write_lock(site.root, 0):
        with pytest.raises(LakeBusy):
            site.compact()
        with pytest.raises(LakeBusy):
            compact.vacuum(site.hot, site.root, 0)
    assert site.compact().partitions == 1


def compact_in(site: Site, executor: Executor, between: Callable[[], object] = lambda: None) -> Compacted:
    share = engine.Share(site.spill, executor.size)
    return compact.compact(site.hot, site.root, share, 0, executor=executor, between=between)


@pytest.mark.long
def test_compaction_in_processes_is_exact_if_one_is_killed_after_it_wrote_its_files(nine: Site, tmp_path: Path) -> None:
    children = DyingProcesses(2, tmp_path / "died")
    try:
        assert compact_in(nine, children) == Compacted(partitions=3, files_before=9, files_after=3)
    finally:
        children.close()
    assert (tmp_path / "died").exists()
    assert nine.event_ids() == [f"event-{number:06d}" for number in range(9)]
    assert nine.daily_views() == Counter(map(key, some_rows(0, 9)))
    assert nine.faults() == []
    nine.age()
    compact.vacuum(nine.hot, nine.root, 0)
    assert len(list((nine.root / "hits").glob("date=*/*.parquet"))) == 3


class DiesWithADay(ThisProcess):
    """An executor whose process dies with each call for one day."""

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        if not (isinstance(item, compact.Merge) and item.partition == "2026-09-15"):
            return super().submit(function, item)
        future = Future[Result]()
        future.set_exception(ConnectionResetError())
        return future

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, ConnectionResetError)


def test_partition_with_which_processes_die_does_not_prevent_the_compaction_of_the_others(nine: Site) -> None:
    with pytest.raises(WorkerDied) as caught:
        compact_in(nine, DiesWithADay())
    assert caught.value.__notes__ == ["in hits of 2026-09-15"]
    assert files(nine, HITS_TABLE) == {"2026-09-15": 3, "2026-09-16": 1, "2026-09-17": 1}
    assert nine.event_ids() == [f"event-{number:06d}" for number in range(9)]


class Waiting(ThisProcess):
    """An executor whose new files wait 50 minutes for their commit."""

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        done = super().submit(function, item)
        for file in cast("tuple[delta_table.File, ...]", done.result()):
            then_s = Path(file.path).stat().st_mtime - 3000
            os.utime(file.path, (then_s, then_s))
        return done


@pytest.mark.long
def test_sorted_files_that_waited_for_their_commit_are_used(nine: Site) -> None:
    old = set(nine.root.glob("*/*/*.parquet"))
    assert compact_in(nine, Waiting()).files_after == 3
    assert len(set(nine.root.glob("*/*/*.parquet")) - old) == 3  # none was written a second time
    assert nine.event_ids() == [f"event-{number:06d}" for number in range(9)]


class Meanwhile(ThisProcess):
    """An executor that calls `act` after its first call, before the result is committed."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.acts = [act]

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        future = super().submit(function, item)
        if self.acts:
            self.acts.pop()()
        return future


@pytest.mark.long
def test_one_process_compacts_at_a_time_and_the_command_waits_for_its_turn(nine: Site) -> None:
    def compact_in_turn() -> Compacted:
        with closing(batches.connect(nine.hot_log)) as hot:
            return compact.compact(hot, nine.root, nine.share, 30, turn_wait_s=30)

    with ThreadPoolExecutor(1) as thread:
        waiting: list[Future[Compacted]] = []

        def compete() -> None:
            with pytest.raises(LakeBusy, match="/compaction was not free within 0 s"):
                nine.compact()
            waiting.append(thread.submit(compact_in_turn))

        assert compact_in(nine, Meanwhile(compete)) == Compacted(partitions=3, files_before=9, files_after=3)
        assert waiting[0].result() == Compacted(0, 0, 0)
    assert len(on_disk(nine)) == 12


@pytest.mark.long
def test_files_of_a_load_during_a_merge_stay(nine: Site) -> None:
    done = compact_in(nine, Meanwhile(lambda: load_each(nine, 3, first=9)))
    assert done == Compacted(partitions=3, files_before=11, files_after=3)
    assert files(nine, HITS_TABLE) == {"2026-09-15": 2, "2026-09-16": 1, "2026-09-17": 1}
    assert nine.event_ids() == [f"event-{number:06d}" for number in range(12)]
    assert nine.faults() == []


@pytest.mark.long
def test_partition_that_a_node_without_its_lock_compacted_during_a_merge_is_not_replaced_again(nine: Site) -> None:
    def compact_and_vacuum() -> None:
        for merge in [*compact._merges(nine.root, nine.share, compact.whole)]:
            assert rewriting.replace_live(nine.root, merge.spec, merge.files, compact.write_merged(merge))
        nine.age()
        compact.vacuum(nine.hot, nine.root, 0)

    assert compact_in(nine, Meanwhile(compact_and_vacuum)) == Compacted(0, 0, 0)
    assert nine.event_ids() == [f"event-{number:06d}" for number in range(9)]
    assert nine.faults() == []


@pytest.mark.long
def test_files_that_another_node_replaced_are_not_replaced_again(nine: Site) -> None:
    spec = HITS_TABLE
    stale = nine.table(spec)
    merge = next(compact._merges(nine.root, nine.share, compact.whole))
    new = compact.write_merged(merge)
    load_each(nine, 3, first=9)
    rewriting.replace_files(stale, spec, merge.files, new)
    assert len(nine.event_ids()) == 12
    old = delta_table.open_version(nine.root, spec, stale.version() - 1)
    with pytest.raises(CommitFailedError):
        rewriting.replace_files(old, spec, merge.files, compact.write_merged(merge))
    assert len(nine.event_ids()) == len(set(nine.event_ids())) == 12
