"""A snapshot of `hits` has each hit once, whatever is loaded meanwhile."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.warehouse.consistency.moments import Clock, hits, paths, post
from tests.warehouse.site import Site, some_rows, view
from warehouse.errors import BatchDamaged, DataIncomplete
from warehouse.query.hits_snapshot import HOT_COLUMNS, HitsReader


@pytest.fixture
def reader(site: Site) -> Iterable[HitsReader]:
    reader = HitsReader(site.hot_log, site.root, Clock())
    yield reader
    reader.close()


def test_hot_rows_have_the_report_columns_and_their_batch_in_order(site: Site, reader: HitsReader) -> None:
    post(site, 1, 2)
    post(site, 3)
    hot = reader.take().hot
    assert hot.column_names == [*HOT_COLUMNS, "batch_id"]
    assert (hot["path"].to_pylist(), hot["batch_id"].to_pylist()) == (["/1", "/2", "/3"], [1, 1, 2])


def test_snapshot_has_loaded_staged_and_hot_rows_once(site: Site, reader: HitsReader) -> None:
    post(site, 1)
    site.load()
    site.stage([view("/2")])
    post(site, 3)
    snapshot = reader.take()
    assert (hits(site, snapshot), len(snapshot.files), snapshot.hot.num_rows) == (paths(1, 2, 3), 2, 1)
    site.load()
    assert (hits(site, reader.take()), reader.take().hot.num_rows) == (paths(1, 2, 3), 0)


def test_moment_names_the_version_the_newest_batch_and_the_time(site: Site, reader: HitsReader) -> None:
    post(site, 1)
    site.load()
    site.stage([view("/2")])
    post(site, 3)
    moment = reader.take().moment
    assert (moment.version, moment.last_id, moment.staged) == (1, 3, 2)
    assert str(moment) == "2026-09-01T12:00:00.000000Z_1_3"


def test_hit_that_is_loaded_and_deleted_during_the_read_of_hot_rows_is_not_missed(
    site: Site, reader: HitsReader
) -> None:
    # SQLite calls the trace callback when a statement begins, before it reads a row.
    reader._hot.set_trace_callback(lambda statement: site.load())
    for count in range(1, 5):
        post(site, count)
        assert hits(site, reader.take()) == paths(*range(1, count + 1))
        assert site.waiting() == 0
    reader._hot.set_trace_callback(None)


def test_files_key_changes_with_the_files_and_not_with_hot_rows(site: Site, reader: HitsReader) -> None:
    keys = [reader.take().files_key]
    post(site, 1)
    assert reader.take().files_key == keys[0]
    for change in (site.load, lambda: site.stage([view()]), lambda: site.stage([view()]), site.load):
        change()
        keys.append(reader.take().files_key)
        assert reader.take().files_key == keys[-1]
    assert len(set(keys)) == len(keys)


def test_snapshot_does_not_change_after_it_was_taken(site: Site, reader: HitsReader) -> None:
    post(site, 1, 2)
    site.load()
    post(site, 3)
    before_changes = reader.take()
    post(site, 4)
    site.load()
    site.compact()
    assert hits(site, before_changes) == paths(1, 2, 3)
    assert hits(site, reader.take()) == paths(1, 2, 3, 4)


def test_read_that_failed_is_repeated_without_a_lost_or_repeated_batch(site: Site, reader: HitsReader) -> None:
    post(site, 1)
    post(site, 2)
    (whole,) = site.hot.execute("SELECT message FROM batches WHERE id = 2").fetchone()
    site.hot.execute("UPDATE batches SET message = x'00' WHERE id = 2")
    with pytest.raises(BatchDamaged):
        reader.take()
    site.hot.execute("UPDATE batches SET message = ? WHERE id = 2", (whole,))
    assert reader.take().hot["path"].to_pylist() == ["/1", "/2"]


def test_rows_of_another_node_are_counted_once(site: Site, reader: HitsReader, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    site.post(*some_rows(0, 3))
    other.root = site.root
    other.post(*some_rows(3, 4))
    other.load()
    snapshot = reader.take()
    assert (len(hits(site, snapshot)), snapshot.hot.num_rows) == (7, 3)
    other.close()


def test_commit_that_was_empty_when_it_was_read_first_is_read_again(site: Site, reader: HitsReader) -> None:
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
