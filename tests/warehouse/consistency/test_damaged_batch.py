"""A flipped bit in a waiting batch is an error of every read. No batch is counted, skipped or deleted."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.warehouse.site import Site, view
from warehouse import doctor
from warehouse.errors import BatchDamaged
from warehouse.hotlog import batches, wal
from warehouse.lake import agents_file
from warehouse.query import sql
from warehouse.query.snapshot import SnapshotReader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def damaged(folder: Path) -> Iterator[Site]:
    """Yield a hot log of three batches, of which the second has a flipped bit in a path."""
    with closing(Site(folder)) as site:
        site.post(view("/first"))
        site.post(view("/second"))
        site.post(view("/third"))
        wal.empty(site.hot)
    flip(folder / "hot.sqlite", b"/second")
    with closing(Site(folder)) as site:
        yield site


def flip(file: Path, text: bytes) -> None:
    """Flip one bit of a text that occurs once in a file."""
    content = file.read_bytes()
    assert content.count(text) == 1
    changed = text[:-1] + bytes([text[-1] ^ 1])
    file.write_bytes(content.replace(text, changed))


def is_refused(read: Callable[[], object], file: Path, batch: int = 2) -> bool:
    with pytest.raises(BatchDamaged) as raised:
        read()
    return str(raised.value).startswith(f"batch {batch} in {file} is damaged: ")


def test_loader_stops_at_a_damaged_batch_and_deletes_nothing(damaged: Site) -> None:
    assert is_refused(damaged.load, damaged.hot_log)
    assert (damaged.waiting(), damaged.event_ids()) == (3, [])


def test_export_does_not_skip_a_damaged_batch(damaged: Site) -> None:
    with closing(SnapshotReader(damaged.hot_log, damaged.root)) as reader:
        assert is_refused(reader.take, damaged.hot_log)
        assert is_refused(reader.take, damaged.hot_log)


def test_sql_does_not_skip_a_damaged_batch(damaged: Site, folder: Path) -> None:
    agents_file.write_agents(damaged.root, [])

    def ask() -> None:
        with sql.run_query(folder, "SELECT count(*) FROM hits"):
            pass

    assert is_refused(ask, damaged.hot_log)


def test_doctor_names_a_damaged_batch(damaged: Site) -> None:
    faults = {
        finding.invariant: finding.fault for finding in doctor.examine(damaged.hot_log, damaged.root, damaged.spill, 0)
    }
    assert str(faults["every waiting batch has its checksum"]).startswith(f"batch 2 in {damaged.hot_log} is damaged: ")


def test_damaged_name_of_a_staged_file_is_an_error(folder: Path) -> None:
    with closing(Site(folder)) as site:
        site.stage([view("/first")])
        wal.empty(site.hot)
    flip(folder / "hot.sqlite", b'{"hits":[{"path":"date=2026')
    with closing(Site(folder)) as site:
        assert is_refused(site.load, site.hot_log, batch=1)
        with closing(SnapshotReader(site.hot_log, site.root)) as reader:
            assert is_refused(reader.take, site.hot_log, batch=1)
        assert batches.last_id(site.hot) == 1
        assert len(site.faults()) == 1


def test_batch_of_an_older_release_without_a_checksum_is_loaded(folder: Path) -> None:
    with closing(Site(folder)) as site:
        site.post(view("/old", event_id="old"))
        site.hot.execute("UPDATE batches SET checksum = NULL")
        site.post(view("/new", event_id="new"))
        assert site.faults() == []
        assert site.load().rows == 2
        assert site.event_ids() == ["new", "old"]
