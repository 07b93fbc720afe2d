"""Acceptance of a hot log that lacks batches of the lake. `tests/promises/test_recovery.py` tests the command."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.warehouse.site import DAY, NOON, Row, Site, key, some_rows, view
from warehouse.errors import MomentExpired
from warehouse.folder import sqlite_url
from warehouse.hotlog import batches, loads
from warehouse.integrity import completeness
from warehouse.lake import registry
from warehouse.lake.roots import Root
from warehouse.maintenance import recovery
from warehouse.query.snapshot import SnapshotReader
from warehouse.tables import HITS_TABLE, TABLES

HALF: Row = view("/half", NOON + 9 * DAY, event_id="half")


class Stopped(Exception):
    """Signal that the loader ends here, in place of a kill."""


def stop(step: str) -> None:
    if step == "before commit of asset_loads":
        raise Stopped


def with_older_hot_log(folder: Path) -> Site:
    """Return a site whose hot log is a copy from before the last batch, which `hits` has and `asset_loads` lacks."""
    site, copy = Site(folder), folder / "copy.sqlite"
    site.post(*some_rows(0, 6))
    site.load()
    with closing(sqlite3.connect(copy)) as older:
        site.hot.backup(older)
    site.post(HALF)
    with pytest.raises(Stopped):
        site.load(stop)
    site.close()
    for file in folder.glob("hot.sqlite*"):
        file.unlink()
    copy.rename(folder / "hot.sqlite")
    return Site(folder, is_new=False)


def accept(site: Site) -> None:
    recovery.accept_hot_log(site.hot, site.root, site.database, NOON)


@pytest.mark.long
def test_all_tables_and_the_next_batch_go_on_above_the_batches_of_hits(tmp_path: Path) -> None:
    with closing(with_older_hot_log(tmp_path)) as site:
        assert [site.state(spec).offset for spec in TABLES] == [2] + [1] * (len(TABLES) - 1)
        accept(site)
        assert {site.state(spec).offset for spec in TABLES} == {2}
        site.post(view("/next"))
        assert batches.last_id(site.hot) == 3
        site.load()
        assert len(site.stored(HITS_TABLE)) == 8
        assert site.faults() == []


def test_moment_of_before_the_acceptance_has_expired(tmp_path: Path) -> None:
    with closing(with_older_hot_log(tmp_path)) as site:
        accept(site)
        with closing(SnapshotReader(site.hot_log, site.root)) as reader:
            first = reader.take().moment
            assert reader.take(first).moment == first
            accept(site)
            with pytest.raises(MomentExpired):
                reader.take(first)


@pytest.mark.parametrize("erasures", [0, 1, 2])
def test_moment_of_a_lost_hot_log_has_expired(tmp_path: Path, erasures: int) -> None:
    """The new hot log counts erasures from the beginning. Such a moment must not be one of its own."""
    with closing(Site(tmp_path)) as site:
        for _ in range(erasures):
            loads.revoke_moments(site.hot)
        site.post(*some_rows(0, 6))
        site.load()
        site.post(view("/lost"))
        with closing(SnapshotReader(site.hot_log, site.root)) as reader:
            snapshot = reader.take()
            assert snapshot.hot.num_rows == 1
    for file in tmp_path.glob("hot.sqlite*"):
        file.unlink()
    with closing(Site(tmp_path, is_new=False)) as site:
        accept(site)
        for path in ("/1", "/2", "/3"):
            site.post(view(path))
        with closing(SnapshotReader(site.hot_log, site.root)) as reader, pytest.raises(MomentExpired):
            reader.take(snapshot.moment)


@pytest.mark.long
def test_hot_log_before_is_given_up(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.post(*some_rows(0, 6))
    site.load()
    first = batches.node_id(site.hot)
    site.close()
    for file in tmp_path.glob("hot.sqlite*"):
        file.unlink()
    with closing(Site(tmp_path, is_new=False)) as renewed:
        accept(renewed)
        records = registry.hot_logs(renewed.root)
        assert records[first].is_given_up
        second = records[batches.node_id(renewed.hot)]
        assert (second.is_given_up, second.ledger_from_s) == (False, NOON.timestamp())
        renewed.post(view())
        renewed.load()
        assert renewed.daily_views()[key(view())] >= 1


def test_hits_that_are_loaded_while_the_stores_are_compared_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control_url = sqlite_url(tmp_path / "control.sqlite")
    open_tables = completeness.open_tables

    def open_after_a_load(root: Root) -> list[DeltaTable]:
        site.post(HALF)
        site.load()
        return open_tables(root)

    with closing(Site(tmp_path)) as site:
        recovery.accept_control(control_url, site.root)
        monkeypatch.setattr(completeness, "open_tables", open_after_a_load)
        assert recovery.losses(site.hot_log, site.root, control_url) == []
