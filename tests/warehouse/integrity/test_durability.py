"""A table that lost a commit is an error, never a smaller count; an unacknowledged commit is loaded again."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.warehouse.site import Site, asked, die_at, event, key, some_rows, view
from tests.warehouse.site import loads as loads_of
from warehouse.errors import DataIncomplete
from warehouse.hotlog import loads
from warehouse.hotlog.loads import Synced
from warehouse.integrity import durability
from warehouse.maintenance import compact
from warehouse.maintenance.catch_up import Loaded
from warehouse.query.snapshot import SnapshotReader
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE, TABLES

NAMES = tuple(spec.name for spec in TABLES)
LOAD = "load.load(hot, root, 10, on_point)"
ADVICE = "Restore the whole data folder from one backup"


def prepare(site: Site) -> None:
    """Load three times one row, and delete the batches."""
    for row in some_rows(0, 3):
        site.post(row)
        site.load()
    site.expire()


def commit(site: Site, version: int, table: str = "hits") -> Path:
    return site.root / table / "_delta_log" / f"{version:020}.json"


def ids(count: int) -> list[str]:
    return [row["event_id"] for row in some_rows(0, count)]


def test_load_records_the_version_and_batch_of_each_table(site: Site) -> None:
    assert loads.synced(site.hot) == dict.fromkeys(NAMES, Synced(3, 3))


def test_maintenance_records_its_versions(site: Site) -> None:
    site.post(view(), view(traffic="bot", status=404))
    site.load()
    site.compact()
    compact.vacuum(site.hot, site.root, 0)
    versions = {spec.name: site.state(spec).version for spec in TABLES}
    assert loads.synced(site.hot) == {name: Synced(version, 4) for name, version in versions.items()}
    assert versions["hits"] > 4


def test_tables_without_a_record_are_synced_completely_and_recorded(site: Site, synced: set[Path]) -> None:
    site.hot.execute("DELETE FROM synced_tables")
    site.load()
    assert loads.synced(site.hot) == dict.fromkeys(NAMES, Synced(3, 3))
    files = {Path(file.path) for spec in TABLES for file in site.state(spec).files}
    commits = {commit(site, version, spec.name) for version in range(4) for spec in TABLES}
    folders = {path.parent for path in files | commits} | {site.root, *(site.root / name for name in NAMES)}
    assert files | commits | folders <= synced


def remove(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


LOST = "is at version 2, and was stored up to version 3"


@pytest.mark.parametrize(
    ("table", "version", "damage", "fault"),
    [
        *((table, 3, remove, LOST) for table in NAMES),
        ("hits", 3, empty, "00003.json is empty"),
        ("hits", 2, empty, "00002.json is empty"),
        ("hits", 2, remove, "00002.json is missing"),
    ],
)
def test_lost_commit_is_an_error_for_readers_loads_starts_and_doctor(
    site: Site, table: str, version: int, damage: Callable[[Path], object], fault: str
) -> None:
    damage(commit(site, version, table))
    expected = f"the table {site.root / table} is incomplete: .*{fault}.*{ADVICE}"

    def take() -> None:
        with closing(SnapshotReader(site.hot_log, site.root)) as reader:
            reader.take()

    for use in (
        take,
        site.load,
        lambda: durability.prepare(site.hot, site.root),
    ):
        with pytest.raises(DataIncomplete, match=expected):
            use()
    assert any(fault in listed for listed in site.faults())


def test_commit_that_a_running_reader_loses_is_an_error(site: Site) -> None:
    reader = SnapshotReader(site.hot_log, site.root)
    reader.take()
    commit(site, 3).unlink()
    with pytest.raises(
        DataIncomplete, match="newest version in the log 2 is older than the existing snapshot version 3"
    ):
        reader.take()
    reader.close()


def test_open_reader_is_not_affected_by_a_checkpoint_that_breaks_later(site: Site) -> None:
    reader = SnapshotReader(site.hot_log, site.root)
    site.post(some_rows(3, 1)[0])
    site.load()
    site.table(HITS_TABLE).create_checkpoint()
    commit(site, 4).with_suffix(".checkpoint.parquet").write_bytes(b"junk")
    assert sum(file.rows for file in reader.take().files) == 4
    reader.close()


def test_missing_table_is_not_created_again(site: Site) -> None:
    shutil.rmtree(site.root / "hits")
    with pytest.raises(DataIncomplete, match=f"{site.root}/hits is incomplete: it has no log in .*/hits/_delta_log"):
        durability.prepare(site.hot, site.root)
    assert not (site.root / "hits").exists()


def test_other_lake_of_the_same_version_is_an_error(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    for row in some_rows(0, 3):
        other.post(row)
        other.load()
    shutil.rmtree(site.root)
    shutil.copytree(other.root, site.root)
    other.close()
    for use in (site.load, lambda: site.reports().take()):
        with pytest.raises(DataIncomplete, match="is new, and the lake|has hot batches up to 0"):
            use()


def test_older_lake_without_a_record_is_an_error_if_the_hot_log_has_deleted_more(site: Site) -> None:
    site.hot.execute("DELETE FROM synced_tables")
    for spec in TABLES:
        commit(site, 3, spec.name).unlink()
    fault = "has hot batches up to 2, and was stored up to version 0 and batch 3"
    with pytest.raises(DataIncomplete, match=fault):
        site.load()
    losses = durability.find_losses(site.hot, site.root).values()
    assert [loss.partition("and ")[2] for loss in losses] == [fault] * len(TABLES)
    durability.accept_losses(site.hot, site.root, 0)
    assert durability.find_losses(site.hot, site.root) == {}
    assert site.load() == Loaded(rows=0, commits=0)


def test_older_lake_is_used_once_its_loss_is_accepted(site: Site) -> None:
    for spec in TABLES:
        commit(site, 3, spec.name).unlink()
    losses = durability.find_losses(site.hot, site.root)
    assert losses == dict.fromkeys(NAMES, "it is at version 2, and was stored up to version 3")
    durability.accept_losses(site.hot, site.root, 0)
    assert durability.find_losses(site.hot, site.root) == {}
    assert site.load() == Loaded(rows=0, commits=0)
    site.post(some_rows(3, 1)[0])
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    assert site.event_ids() == ["event-000000", "event-000001", "event-000003"]
    assert site.faults() == []


def test_batches_that_the_hot_log_still_has_are_loaded_again_after_a_loss_is_accepted(site: Site) -> None:
    site.post(some_rows(3, 1)[0])
    site.load()
    for spec in TABLES:
        commit(site, 4, spec.name).unlink()
    durability.accept_losses(site.hot, site.root, 0)
    assert site.waiting() == 1
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    assert site.event_ids() == ids(4)
    assert site.daily_views() == Counter(map(key, some_rows(0, 4)))
    assert (site.waiting(), site.faults()) == (0, [])


def test_first_batch_is_loaded_again_after_the_loss_of_the_whole_lake_is_accepted(tmp_path: Path) -> None:
    with closing(Site(tmp_path / "data")) as site:
        site.post(some_rows(0, 1)[0])
        site.load()
        shutil.rmtree(site.root)
        site.root.mkdir()
        durability.accept_losses(site.hot, site.root, 0)
        assert site.load() == Loaded(rows=1, commits=len(TABLES))
        assert site.event_ids() == ids(1)


def test_retained_batch_whose_staged_files_are_lost_is_not_loaded_again(site: Site) -> None:
    site.post(some_rows(3, 1)[0])
    site.stage(some_rows(4, 1))
    site.post(some_rows(5, 1)[0])
    site.load()
    shutil.rmtree(site.root)
    site.root.mkdir()
    durability.accept_losses(site.hot, site.root, 0)
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    assert site.event_ids() == ["event-000005"]
    assert site.faults() == []


@pytest.mark.parametrize("damage", [remove, empty], ids=["missing", "empty"])
def test_accepted_damage_drops_the_damaged_commit_and_all_later_ones(
    site: Site, damage: Callable[[Path], object]
) -> None:
    for spec in TABLES:
        damage(commit(site, 2, spec.name))
    assert set(durability.find_losses(site.hot, site.root)) == set(NAMES)
    durability.accept_losses(site.hot, site.root, 0)
    assert site.event_ids() == ids(1)
    assert commit(site, 3).with_name(f"{commit(site, 3).name}.broken").exists()
    assert site.faults() == []


def test_accepted_loss_of_a_whole_table_creates_it_empty(site: Site) -> None:
    shutil.rmtree(site.root)
    site.root.mkdir()
    durability.accept_losses(site.hot, site.root, 0)
    site.post(some_rows(3, 1)[0])
    site.load()
    assert site.event_ids() == ["event-000003"]


def test_loss_of_a_log_without_a_usable_commit_is_not_accepted(site: Site) -> None:
    commit(site, 0).write_text("junk")
    with pytest.raises(DataIncomplete, match=f"Move {site.root}/hits out of the data folder"):
        durability.accept_losses(site.hot, site.root, 0)
    assert commit(site, 0).read_text() == "junk"


def test_log_that_delta_cannot_open_is_listed_and_replaced_once_it_is_moved(site: Site) -> None:
    commit(site, 0).write_text('{"commitInfo":{}}')
    assert "No table metadata" in durability.find_losses(site.hot, site.root)["hits"]
    with pytest.raises(DataIncomplete, match=f"Move {site.root}/hits out of the data folder"):
        durability.accept_losses(site.hot, site.root, 0)
    shutil.rmtree(site.root / "hits")
    durability.accept_losses(site.hot, site.root, 0)
    assert durability.find_losses(site.hot, site.root) == {}


def test_commit_with_an_action_that_is_not_an_object_is_set_aside_when_its_loss_is_accepted(site: Site) -> None:
    commit(site, 2).write_text('{"add":1}')
    assert durability.find_losses(site.hot, site.root) == {"hits": f"{commit(site, 2)} is not JSON"}
    durability.accept_losses(site.hot, site.root, 0)
    assert site.event_ids() == ids(1)


def truncate_rows(file: Path) -> None:
    """Remove the last 9 bytes of the Parquet file that a commit added."""
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    rows = file.parents[1] / next(action["add"]["path"] for action in actions if "add" in action)
    rows.write_bytes(rows.read_bytes()[:-9])


@pytest.mark.parametrize("damage", [empty, lambda file: file.write_bytes(b"\0" * 60), truncate_rows])
def test_broken_commit_that_was_never_acknowledged_is_set_aside_and_loaded_again(
    site: Site, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    site.post(some_rows(3, 1)[0], view(traffic="ai", agent="GPTBot", status=404))
    site.post_loads(loads_of())
    site.post_requests(asked())
    site.post_events(event())
    die_at(site, LOAD, "before mark")
    for spec in TABLES:
        damage(commit(site, 4, spec.name))
    durability.prepare(site.hot, site.root)
    assert f"{commit(site, 4)} is set aside" in caplog.text
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    assert site.event_ids() == ids(4)
    assert site.daily_views() == Counter(map(key, some_rows(0, 4)))
    assert site.state(HITS_TABLE).version == 5
    assert sorted((row["requests"], row["errors"]) for row in site.stored(REQUESTS_TABLE)) == [(0, 1), (1, 0)]
    assert site.faults() == []


def test_reader_with_an_open_commit_that_is_set_aside_counts_its_rows_once(site: Site) -> None:
    site.post(some_rows(3, 1)[0])
    die_at(site, LOAD, "before mark")
    for spec in TABLES:
        empty(commit(site, 4, spec.name))
    reader = SnapshotReader(site.hot_log, site.root)
    for _ in range(2):
        snapshot = reader.take()
        assert sum(file.rows for file in snapshot.files) + snapshot.hot.num_rows == 4
        durability.prepare(site.hot, site.root)
        site.load()
    reader.close()


def test_start_does_not_wait_for_a_writer_of_the_lake(site: Site) -> None:
    with durability.durable_writes(site.hot, site.root, 0):
        durability.prepare(site.hot, site.root)
    assert site.faults() == []
