"""The maintenance thread runs each step that is due, also after an error of an earlier one."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client import REGISTRY

from api import data_folder, settings
from api.background import open_scheduler
from api.settings import Settings
from tests.processes import freed_memory
from tests.processes.waiting import until
from tests.stores.outage import way_to
from tests.stores.small_disk import SmallDisk
from tests.warehouse.site import DAY, Site, view
from warehouse import clock
from warehouse.hotlog import batches
from warehouse.hotlog.connection import server_of
from warehouse.hotlog.retention import AS_OF_S
from warehouse.integrity.lake_lock import COMPACTION, lake_lock
from warehouse.lake import delta_table
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import compact, rollups, scheduler
from warehouse.maintenance.scheduler import (
    RELEASE,
    RELEASE_EVERY_S,
    RETRY_S,
    ROLLUPS,
    ROLLUPS_EVERY_S,
    VACUUM,
    Scheduler,
)
from warehouse.rollups import catalog
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, TABLES


@cache
def noon() -> datetime:
    """Return noon of today, because the file that records the last vacuum has the file system's time."""
    return datetime.now(UTC).replace(hour=12)


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    """Return the settings of a prepared data folder that no service has used."""
    chosen = settings.read({"READERSHIP_RETENTION_DAYS": "10"}, tmp_path)
    data_folder.prepare(chosen)
    return chosen


@pytest.fixture
def site(chosen: Settings) -> Iterator[Site]:
    """Return direct access to the same data folder."""
    with closing(Site(chosen.data)) as site:
        yield site


@pytest.fixture
def maintenance(chosen: Settings) -> Iterator[Scheduler]:
    with closing(open_scheduler(chosen)) as maintenance:
        yield maintenance


def test_last_load_that_fails_is_logged_and_everything_is_closed(
    chosen: Settings, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    maintenance = open_scheduler(chosen)
    maintenance.start()
    site.hot.execute("ALTER TABLE staged RENAME TO lost")
    maintenance.close()
    assert "the hits that wait in the hot log could not be loaded; the next start tries again" in caplog.messages
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        maintenance.backlog()


@pytest.mark.long
def test_full_disk_is_logged_once_and_loading_continues_with_free_space(
    small_disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    def failures() -> float:
        return REGISTRY.get_sample_value("readership_loads_total", {"outcome": "failed"}) or 0

    chosen = settings.read({"READERSHIP_LOAD_EVERY_S": "1"}, small_disk.folder / "data")
    data_folder.prepare(chosen)
    with closing(Site(chosen.data)) as site, closing(open_scheduler(chosen)) as maintenance:
        site.post(view())
        small_disk.fill()
        before = failures()
        maintenance.start()
        until(lambda: failures() >= before + 3)
        assert str(maintenance.fault).startswith("disk full, see the log")
        assert sum(each.startswith("maintenance failed and is retried: ") for each in caplog.messages) == 1
        small_disk.free()
        until(lambda: maintenance.fault is None)
        assert site.waiting() == 0


@pytest.mark.long
def test_error_that_several_steps_have_is_logged_once(
    chosen: Settings, site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for spec in TABLES:
        table = delta_table.open_table(site.root, spec)
        delta_table.append(table, spec.schema.empty_table(), batches.node_id(site.hot), 9)
    is_load_due = threading.Event()
    monkeypatch.setattr(scheduler, "is_due", lambda *_: is_load_due.is_set())
    with closing(open_scheduler(chosen)) as maintenance:
        maintenance.start()
        until(lambda: maintenance.fault and "; in the vacuum" in maintenance.fault)
        is_load_due.set()
        until(lambda: maintenance.fault and "; in" not in maintenance.fault)
        assert sum("maintenance failed" in each for each in caplog.messages) == 1


@pytest.mark.long
def test_outage_that_is_over_is_no_fault_while_another_node_has_the_lock(postgresql: str, tmp_path: Path) -> None:
    with way_to(postgresql) as (way, url, direct_url):
        chosen = settings.read({"READERSHIP_DATABASE_URL": url}, tmp_path / "data")
        data_folder.prepare(chosen)
        with (
            closing(open_scheduler(chosen)) as maintenance,  # its last load waits for the lock
            closing(batches.connect(server_of(direct_url))) as other,
            lake_lock(other, LocalPath(tmp_path), wait_s=0),
        ):
            batches.append(other, pa.RecordBatch.from_pylist([view()], HOT), 0)  # a load is due
            maintenance.start()
            way.cut()
            until(lambda: maintenance.fault == "the database does not answer")
            way.restore()
            until(lambda: maintenance.fault is None)


@pytest.mark.long
def test_loaded_batches_are_deleted_when_their_retention_is_over(site: Site, maintenance: Scheduler) -> None:
    site.post(view())
    site.load()
    assert batches.deleted_through(site.hot) == 0
    site.hot.execute("UPDATE loads SET loaded_s = loaded_s - ?", (AS_OF_S,))
    maintenance.start()
    until(lambda: batches.deleted_through(site.hot) == 1)


def days_old(site: Site) -> list[int]:
    return sorted((noon().date() - day).days for _, day, *_ in site.daily_views())


def is_vacuumed(site: Site) -> bool:
    return (site.root / ".tidied").exists()


def test_retention_runs_on_a_folder_that_no_service_has_used(site: Site, maintenance: Scheduler) -> None:
    site.post(view(ts=noon() - 20 * DAY), view(ts=noon() - DAY))
    for days in (20, 1):  # logs of the ledger
        read_s = int((noon() - days * DAY).timestamp())
        site.hot.execute("INSERT INTO read_logs VALUES (?, 'site', 0, x'', 0, x'', x'', 0, ?, x'')", (days, read_s))
    maintenance.run(VACUUM, noon())
    assert days_old(site) == [1]
    assert site.hot.execute("SELECT id FROM read_logs").fetchall() == [(1,)]
    assert is_vacuumed(site)


def test_vacuum_is_complete_while_another_process_compacts(site: Site, maintenance: Scheduler) -> None:
    with lake_lock(site.hot, site.root, 0, COMPACTION):
        maintenance.run_due(noon())
    assert is_vacuumed(site)
    assert (maintenance.fault, maintenance.warning) == (None, None)


@pytest.mark.long
def test_failed_step_stops_no_other_and_is_retried_a_minute_later(site: Site, maintenance: Scheduler) -> None:
    site.post(view(ts=noon() - 20 * DAY), view(ts=noon() - DAY))
    site.hot.execute("ALTER TABLE answers RENAME TO lost")
    with pytest.raises(Exception, match="no such table: answers"):
        maintenance.run(VACUUM, noon())
    assert days_old(site) == [1]
    site.hot.execute("ALTER TABLE lost RENAME TO answers")
    maintenance.run(VACUUM, noon() + timedelta(seconds=RETRY_S - 1))
    assert not is_vacuumed(site)
    maintenance.run(VACUUM, noon() + timedelta(seconds=RETRY_S))
    assert is_vacuumed(site)


@pytest.mark.long
def test_day_with_a_damaged_file_stops_neither_the_vacuum_nor_the_rollups_and_is_a_warning(
    chosen: Settings, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(compact.CROWDED_FILES + 1):
        site.post(view(ts=noon() - 400 * DAY), view(ts=noon() - 500 * DAY))
        site.load()
    site.post(view(ts=noon() - 450 * DAY))
    site.load()
    damaged_day = (noon() - 400 * DAY).date().isoformat()
    hits = site.state(HITS_TABLE).files
    damaged = next(Path(file.path) for file in hits if file.partition == damaged_day)
    damaged.write_bytes(b"PAR1 and no more")
    unused = damaged.with_name("part-unused.parquet")
    unused.touch()
    site.age()
    site.post(view(ts=noon()))  # a load is due, and after it the compaction
    with closing(open_scheduler(replace(chosen, retention_days=0, load_every_s=1))) as maintenance:
        maintenance.start()
        until(lambda: list(site.root.glob("rollups/*/*/coverage.json")))
        warning, *_ = str(maintenance.warning).splitlines()
    assert not unused.exists()
    assert [path.parent.name for path in site.root.glob("rollups/month=*/*")] == [f"{noon() - 450 * DAY:month=%Y-%m}"]
    assert len([file for file in site.state(HITS_TABLE).files if file.partition != damaged_day]) == 3
    assert damaged.name not in warning
    assert warning.endswith(f"; in hits of {damaged_day}; in the compaction")
    assert any(damaged.name in message for message in caplog.messages)


@contextmanager
def damaged_file(site: Site, day: datetime) -> Iterator[Path]:
    """Damage a file of a day of `hits`, and restore the file at the end of the block."""
    files = site.state(HITS_TABLE).files
    path = next(Path(file.path) for file in files if file.partition == day.date().isoformat())
    content = path.read_bytes()
    path.write_bytes(b"PAR1 and no more")
    yield path
    path.write_bytes(content)


@pytest.mark.long
def test_fault_of_a_closed_day_is_a_warning_until_the_day_is_compacted(site: Site, maintenance: Scheduler) -> None:
    for _ in range(2):
        site.post(view(ts=noon() - 3 * DAY), view(ts=noon() - 5 * DAY))
        site.load()
    with damaged_file(site, noon() - 3 * DAY) as path:
        maintenance.run_due(noon())
        warning = str(maintenance.warning)
        assert path.name not in warning, "anyone can read it"
        day = (noon() - 3 * DAY).date()
        assert f"; in hits of {day}; in the compaction of closed days; in the vacuum" in warning.splitlines()[0]
        for seconds in (1, RETRY_S, RETRY_S + 1):
            maintenance.run_due(noon() + timedelta(seconds=seconds))
            assert maintenance.warning == warning
        assert maintenance.fault is None
    maintenance.run_due(noon() + timedelta(seconds=2 * RETRY_S))
    assert maintenance.warning is None


@pytest.mark.long
def test_fault_of_a_day_is_over_when_another_process_has_compacted_the_day(
    chosen: Settings, site: Site, maintenance: Scheduler
) -> None:
    now = datetime.now(UTC)
    for _ in range(2):
        site.post(view(ts=now - 3 * DAY))
        site.load()
    with damaged_file(site, now - 3 * DAY):
        maintenance.run_due(now)
    with closing(open_scheduler(chosen)) as other:
        other.run_due(now)
    assert maintenance.warning is not None
    maintenance.run_due(now + timedelta(seconds=1))
    assert maintenance.warning is None


@pytest.mark.long
@pytest.mark.parametrize("is_deleted", [False, True], ids=["compacted by hand", "deleted"])
def test_fault_of_today_stays_after_the_last_load_until_the_day_is_compacted_or_deleted(
    chosen: Settings, site: Site, is_deleted: bool
) -> None:
    now = datetime.now(UTC)
    (site.root / delta_table.LAST_VACUUM).touch()
    with closing(open_scheduler(replace(chosen, load_rows=1))) as maintenance:
        for _ in range(compact.CROWDED_FILES):
            site.post(view(ts=now))
            site.load()
        with damaged_file(site, now):
            site.post(view(ts=now))
            maintenance.run_due(now)
            warning = str(maintenance.warning)
            assert warning.endswith(f"; in hits of {now.date()}; in the compaction")
            maintenance.run_due(now + timedelta(seconds=RETRY_S))
            assert maintenance.warning == warning
            if is_deleted:
                delta_table.delete(site.table(HITS_TABLE), f"date = '{now.date()}'")
        if not is_deleted:
            site.compact()
        maintenance.run_due(now + timedelta(seconds=RETRY_S + 1))
        assert maintenance.warning == warning
        maintenance.run_due(now + timedelta(seconds=2 * RETRY_S))
        assert maintenance.warning is None


def views_of_30_days(site: Site) -> None:
    site.post(*(view(ts=noon() - day * DAY, path=f"/{day}") for day in range(1, 10)))


def test_clock_400_days_ahead_deletes_no_hit_and_no_event_id(
    site: Site, maintenance: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    maintenance.run(VACUUM, noon())
    views_of_30_days(site)
    site.hot.execute("INSERT INTO event_ids VALUES (x'01', ?)", (int(noon().timestamp()),))
    maintenance.run(VACUUM, noon() + 400 * DAY)
    assert "the clock jumped" in str(clock.warning(site.root))
    assert caplog.messages == [clock.warning(site.root)]
    maintenance.run(VACUUM, datetime.now(UTC) + timedelta(hours=2))
    assert clock.warning(site.root) is None
    assert days_old(site) == list(range(1, 10))
    assert site.hot.execute("SELECT count(*) FROM event_ids").fetchone() == (1,)


@pytest.mark.long
def test_service_that_was_off_for_400_days_deletes_after_a_day_of_use(site: Site, maintenance: Scheduler) -> None:
    maintenance.run(VACUUM, noon())
    views_of_30_days(site)
    for hour in range(24):
        maintenance.run(VACUUM, noon() + 400 * DAY + timedelta(hours=hour))
        assert days_old(site) == list(range(1, 10))
    maintenance.run(VACUUM, noon() + 400 * DAY + timedelta(hours=24))
    assert days_old(site) == []
    assert clock.warning(site.root) is None


def test_folder_of_an_older_release_trusts_the_time_of_its_last_vacuum(site: Site, maintenance: Scheduler) -> None:
    views_of_30_days(site)
    (site.root / ".tidied").touch()
    maintenance.run(VACUUM, noon() + 400 * DAY)
    assert days_old(site) == list(range(1, 10))


def test_lake_is_vacuumed_once_an_hour(site: Site, maintenance: Scheduler) -> None:
    now = datetime.now(UTC)
    maintenance.run(VACUUM, now)
    site.post(view(ts=now - 20 * DAY))
    maintenance.run(VACUUM, now + timedelta(minutes=59))
    assert site.waiting() == 1
    maintenance.run(VACUUM, now + timedelta(minutes=61))
    assert (site.waiting(), days_old(site)) == (0, [])


@pytest.mark.long
def test_due_hits_are_loaded_between_the_compactions_of_two_partitions(site: Site, maintenance: Scheduler) -> None:
    for _ in range(2):
        site.post(*(view(ts=noon() - day * DAY) for day in (1, 2, 3)))
        site.load()
    site.post(view(ts=noon()))
    assert site.waiting() == 1
    maintenance.run(VACUUM, noon())
    commits = sorted((site.root / HITS_TABLE.name / "_delta_log").glob("*.json"))[1:]
    replaces = ['"remove"' in commit.read_text() for commit in commits]
    assert replaces == [False, False, True, False, True, True]


def rollups_written(site: Site) -> list[Path]:
    return sorted((site.root / "rollups").rglob("coverage.json"))


@pytest.mark.long
def test_month_that_has_ended_gets_a_rollup(site: Site, maintenance: Scheduler) -> None:
    site.post(view(ts=noon() - 400 * DAY), view(ts=noon()))
    site.load()
    maintenance.run(ROLLUPS, noon())
    assert rollups_written(site) == []
    site.age()
    maintenance.run(ROLLUPS, noon() + timedelta(seconds=ROLLUPS_EVERY_S - 1))
    assert rollups_written(site) == []
    maintenance.run(ROLLUPS, noon() + timedelta(seconds=ROLLUPS_EVERY_S))
    assert len(rollups_written(site)) == 1
    assert site.faults() == []


def test_unused_rollup_is_removed_an_hour_later(site: Site, maintenance: Scheduler) -> None:
    unused = site.root / "rollups" / "month=2025-09" / "unused"
    unused.mkdir(parents=True)
    (unused / "totals.parquet").touch()
    maintenance.run(ROLLUPS, noon())
    assert unused.exists()
    site.age()
    maintenance.run(ROLLUPS, noon() + timedelta(seconds=ROLLUPS_EVERY_S))
    assert not unused.exists()


@pytest.mark.long
def test_due_hits_are_loaded_between_the_queries_of_a_rollup(chosen: Settings, site: Site) -> None:
    site.post(view(ts=noon() - 400 * DAY))
    site.load()
    site.age()
    with closing(open_scheduler(replace(chosen, load_every_s=0))) as maintenance:
        site.post(view(ts=noon()))
        maintenance.run(ROLLUPS, noon())
        assert site.waiting() == 0
    assert len(rollups_written(site)) == 1


@pytest.mark.long
def test_retention_leaves_no_deleted_day_in_the_rollup_in_use(site: Site, maintenance: Scheduler) -> None:
    days = [noon() - age * DAY for age in range(40)]
    site.post(*(view(f"/{day.date()}", day) for day in days))
    site.load()
    rollups.rebuild(site.hot, site.root, site.share, noon().date(), 0)
    maintenance.run(VACUUM, noon())
    chosen_parts = catalog.choose(site.root, site.state(HITS_TABLE).files).parts
    assert all(part.is_whole for part in chosen_parts)
    paths = {
        path
        for part in chosen_parts
        for path in pq.read_table(part.rollup.folder / "paths.parquet", partitioning=None)["path"].to_pylist()
    }
    assert paths == {f"/{day.date()}" for day in days[:11]}


def test_freed_memory_is_released_at_most_every_ten_seconds(maintenance: Scheduler) -> None:
    def returned_mib(now: datetime) -> float:
        freed_memory.leave_freed_memory()
        before = freed_memory.resident_mib()
        maintenance.run(RELEASE, now)
        return before - freed_memory.resident_mib()

    half = freed_memory.FREED_MIB / 2
    assert returned_mib(noon()) > half
    assert returned_mib(noon() + timedelta(seconds=RELEASE_EVERY_S - 1)) < half
    assert returned_mib(noon() + timedelta(seconds=RELEASE_EVERY_S + 1)) > half
