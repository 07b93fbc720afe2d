"""A hot log or control database that does not belong to the lake, or is older, is detected before it is used."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.postgresql import new_database
from tests.warehouse.site import Site, some_rows
from warehouse.control.database import ControlIdentity
from warehouse.errors import DataIncomplete, HotLogBehind
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotLogPlace, server_of
from warehouse.integrity import completeness, durability
from warehouse.integrity.completeness import HotLogIdentity
from warehouse.lake import delta_table, registry
from warehouse.lake.registry import ControlRecord, HotLogRecord
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import load
from warehouse.tables import HITS_TABLE

KNOWN = {"node": HotLogRecord("node")}
REPLACED = {"node": HotLogRecord("node", is_given_up=True)}


def prepare(site: Site) -> None:
    """Load two batches."""
    for row in some_rows(0, 2):
        site.post(row)
        site.load()


@pytest.mark.parametrize(
    ("hot", "records", "has_hits", "fault"),
    [
        (HotLogIdentity(None), {}, False, None),
        (HotLogIdentity(None), KNOWN, False, "is missing or empty"),
        (HotLogIdentity(None), {}, True, "is missing or empty"),
        (HotLogIdentity("node", 2), KNOWN, True, None),
        (HotLogIdentity("node", 2), REPLACED, True, "was replaced by another hot log"),
        (HotLogIdentity("other", 2), KNOWN, True, "is new"),
        (HotLogIdentity("node", 0), {}, False, None),
        (HotLogIdentity("node", 2), {}, True, None),
        (HotLogIdentity("node", 0), {}, True, "never had a hit"),
    ],
    ids=[
        "new data folder",
        "missing after its registration",
        "missing beside hits of 0.1.0",
        "registered",
        "replaced",
        "new beside a registered one",
        "new in a new lake",
        "of 0.1.0",
        "new beside hits of 0.1.0",
    ],
)
def test_identity_of_a_hot_log_is_compared_with_the_lake(
    hot: HotLogIdentity, records: dict[str, HotLogRecord], has_hits: bool, fault: str | None
) -> None:
    actual = completeness.identity_fault(hot, records, has_hits)
    assert actual is None if fault is None else str(actual).startswith(fault)


@pytest.mark.parametrize(
    ("identity", "record", "has_hits", "fault"),
    [
        (ControlIdentity("c", None, has_projects=False), None, False, None),
        (ControlIdentity("c", None, has_projects=False), ControlRecord("id"), False, "is missing or empty"),
        (ControlIdentity("c", None, has_projects=False), None, True, "is missing or empty"),
        (ControlIdentity("c", "id", has_projects=False), None, True, "has no project"),
        (ControlIdentity("c", "id", has_projects=True), None, True, None),
        (ControlIdentity("c", "id", has_projects=False), ControlRecord("id"), True, None),
        (ControlIdentity("c", "other", has_projects=True), ControlRecord("id"), True, "is not the one"),
        (ControlIdentity("c", None, has_projects=True), ControlRecord("id"), True, None),
    ],
    ids=[
        "new data folder",
        "missing after its registration",
        "missing beside hits",
        "new beside hits",
        "with projects, not registered",
        "registered",
        "of another data folder",
        "of 0.1.0",
    ],
)
def test_identity_of_a_control_database_is_compared_with_the_lake(
    identity: ControlIdentity, record: ControlRecord | None, has_hits: bool, fault: str | None
) -> None:
    actual = completeness.control_fault(identity, record, has_hits)
    assert actual is None if fault is None else str(actual).startswith(fault)


def test_hot_log_of_the_lake_is_accepted(site: Site) -> None:
    completeness.require_identity(site.hot_log, site.root)
    completeness.require_newest(site.hot_log, site.root)
    assert completeness.read_identity(site.hot_log) == HotLogIdentity(batches.node_id(site.hot), 2)


def test_hot_log_that_ends_before_its_offset_in_the_lake_is_older(site: Site) -> None:
    table = site.table(HITS_TABLE)
    delta_table.append(table, HITS_TABLE.schema.empty_table(), batches.node_id(site.hot), 9)
    completeness.require_identity(site.hot_log, site.root)
    with pytest.raises(HotLogBehind, match="which has its batches up to 9; its own end at 2: restore the copy"):
        completeness.require_newest(site.hot_log, site.root)


def test_missing_hot_log_beside_hits_is_an_error_and_is_not_created(site: Site, tmp_path: Path) -> None:
    with pytest.raises(HotLogBehind, match="is missing or empty"):
        completeness.require_identity(tmp_path / "missing.sqlite", site.root)
    assert not (tmp_path / "missing.sqlite").exists()


@pytest.mark.parametrize("content", [b"", None], ids=["empty", "without tables"])
def test_file_without_tables_has_no_identity_and_gets_none(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "hot.sqlite"
    if content is None:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA user_version=1")
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    assert completeness.read_identity(file) == HotLogIdentity(None)
    assert file.read_bytes() == before


def test_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "hot.sqlite").write_bytes(b"garbage " * 1_000)
    with pytest.raises(DataIncomplete, match="cannot be read .file is not a database.: restore it"):
        completeness.read_identity(tmp_path / "hot.sqlite")


def test_damaged_page_is_an_error_although_the_identity_can_be_read(site: Site) -> None:
    site.hot.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    completeness.require_whole(site.hot_log)
    (page,) = site.hot.execute("SELECT rootpage FROM sqlite_master WHERE name = 'batches'").fetchone()
    (size,) = site.hot.execute("PRAGMA page_size").fetchone()
    content = bytearray(site.hot_log.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    damaged = site.hot_log.with_name("damaged.sqlite")
    damaged.write_bytes(content)
    assert completeness.read_identity(damaged) == completeness.read_identity(site.hot_log)
    with pytest.raises(DataIncomplete, match="cannot be read"):
        completeness.require_whole(damaged)


def test_lake_has_files_after_the_first_load(tmp_path: Path) -> None:
    site = Site(tmp_path / "data")
    assert not completeness.has_files(site.root)
    site.post(*some_rows(0, 1))
    assert not completeness.has_files(site.root)
    site.load()
    assert completeness.has_files(site.root)
    site.close()


def test_registered_hot_log_is_not_registered_a_second_time(site: Site) -> None:
    node = batches.node_id(site.hot)
    registry.record_hot_log(site.root, HotLogRecord(node, ledger_from_s=7.5))
    completeness.register_hot_log(site.hot, site.root)
    assert registry.hot_logs(site.root) == {node: HotLogRecord(node, ledger_from_s=7.5)}
    assert completeness.ledger_from_s(site.hot_log, site.root) == 7.5


def test_control_database_is_read_after_the_lake(site: Site) -> None:
    """Load the first hits of another lake while the control database is read, which is then newer than the lake."""
    empty = Site(site.root.parent.parent / "empty")

    def read_control() -> ControlIdentity:
        empty.post(*some_rows(0, 1))
        empty.load()
        return ControlIdentity("c", None, has_projects=False)

    completeness.require_control(read_control, empty.hot_log, empty.root)
    with pytest.raises(DataIncomplete, match="c is missing or empty, and there are hits of its projects"):
        completeness.require_control(read_control, empty.hot_log, empty.root)
    empty.close()


def test_lake_that_another_node_creates_while_the_stores_are_read_is_not_another_lake(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_of(new_database(postgresql))
    assert server is not None
    root = LocalPath(tmp_path / "lake")
    root.mkdir()
    read_identity = completeness.read_identity

    def create_and_read(hot_log: HotLogPlace) -> HotLogIdentity:
        with closing(batches.connect(server)) as hot:
            durability.prepare(hot, root)
            load.load(hot, root, 0)
        return read_identity(hot_log)

    monkeypatch.setattr(completeness, "read_identity", create_and_read)
    completeness.require_identity(server, root)
    with pytest.raises(HotLogBehind, match="belongs to another lake"):
        completeness.require_identity(server, LocalPath(tmp_path / "other"))


def test_control_database_is_registered_again_only_if_it_is_another(site: Site) -> None:
    for id in ("first", "first", "second"):
        completeness.register_control(ControlIdentity("c", id, has_projects=True), site.root)
        assert registry.control(site.root) == ControlRecord(id)
