"""The snapshot of an older moment has exactly the rows of that moment, or it is refused."""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta

import pytest

from tests.warehouse.consistency.moments import NOW_S, Clock, hits, paths, post
from tests.warehouse.site import NOON, Site, view
from warehouse.errors import DataIncomplete, InvalidMoment, MomentExpired
from warehouse.hotlog import retention
from warehouse.integrity import durability
from warehouse.lake.delta_table import File, State
from warehouse.maintenance import compact, erase
from warehouse.query.hot_rows import HotRows
from warehouse.query.moment import Moment
from warehouse.query.past import FILE_BYTES, Version
from warehouse.query.result_cache import ResultCache
from warehouse.query.snapshot import HOT_COLUMNS, SnapshotReader


def prepare(site: Site) -> None:
    """Write loaded, staged and hot rows."""
    post(site, 1, 2)
    site.load()
    post(site, 3)
    site.stage([view("/4")])
    post(site, 5)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reader(site: Site, clock: Clock) -> Iterable[SnapshotReader]:
    reader = SnapshotReader(site.hot_log, site.root, clock)
    reader.cache_in(ResultCache(10_000_000))
    yield reader
    reader.close()


FIVE = paths(1, 2, 3, 4, 5)


def new_process(site: Site, clock: Clock) -> "closing[SnapshotReader]":
    """Return a reader that has nothing in memory, as that of another process or after a restart."""
    return closing(SnapshotReader(site.hot_log, site.root, clock))


def compact_and_vacuum(site: Site) -> None:
    site.compact()
    compact.vacuum(site.hot, site.root, 0)


def compact_and_vacuum_later(site: Site) -> None:
    """Compact and vacuum as if the time for which removed files stay on the disk had passed."""
    site.compact()
    site.age()
    compact.vacuum(site.hot, site.root, 0)


def post_and_load(site: Site) -> None:
    post(site, 6)
    site.load()


def post_and_stage(site: Site) -> None:
    post(site, 6)
    site.stage([view("/7")])


CHANGES: dict[str, Callable[[Site], object]] = {
    "nothing": lambda site: None,
    "post": post_and_stage,
    "load": lambda site: site.load(),
    "load of later hits": post_and_load,
    "two loads": lambda site: (site.load(), post_and_load(site)),
    "compaction and vacuum": lambda site: (post_and_load(site), compact_and_vacuum(site)),
}
"""Changes after which a moment is read exactly."""


@pytest.mark.parametrize("change", CHANGES)
def test_moment_has_its_rows_after_any_change(site: Site, reader: SnapshotReader, clock: Clock, change: str) -> None:
    first = reader.take()
    assert hits(site, first) == FIVE
    CHANGES[change](site)
    clock.now_s += retention.AS_OF_S
    moment = Moment.parse(str(first.moment))
    with new_process(site, clock) as other:
        for each in (reader, other, reader, other):
            again = each.take(moment)
            assert hits(site, again) == FIVE
            assert str(again.moment) == str(first.moment)
            assert again.moment.staged == first.moment.staged == 3
            assert (again.files_key, again.hot) == (first.files_key, first.hot)


@pytest.mark.night
def test_each_of_many_moments_has_its_rows_after_all_changes(site: Site, reader: SnapshotReader, clock: Clock) -> None:
    moments = []
    for number in range(6, 26):
        post(site, number)
        moments.append((reader.take().moment, sorted([*FIVE, *paths(*range(6, number + 1))])))
        if number % 4 == 0:
            site.load()
        if number % 10 == 0:
            site.compact()
    with new_process(site, clock) as other:
        for moment, expected in moments[::-1]:
            assert hits(site, reader.take(moment)) == hits(site, other.take(moment)) == expected


@pytest.mark.long
def test_moment_before_an_hourly_vacuum_is_read_after_it(site: Site, reader: SnapshotReader, clock: Clock) -> None:
    site.load()
    compact.vacuum(site.hot, site.root, 0)
    post_and_load(site)
    site.age()  # the next vacuum may delete the commits up to now
    post(site, 7)
    site.load()
    post(site, 8)
    moment = reader.take().moment
    site.load()
    compact.vacuum(site.hot, site.root, 0)
    assert not (site.root / "hits" / "_delta_log" / f"{0:020}.json").exists()
    with new_process(site, clock) as other:
        assert hits(site, other.take(moment)) == [*FIVE, *paths(6, 7, 8)]


def test_reader_that_has_missed_a_load_reads_the_moments_of_another_process(
    site: Site, reader: SnapshotReader, clock: Clock
) -> None:
    """The reader has read batches before and after the loaded ones, and lacks those in between."""
    reader.take()
    with new_process(site, clock) as other:
        post(site, 6)
        moment = other.take().moment
        site.load()
        post(site, 7)
        assert hits(site, reader.take()) == [*FIVE, *paths(6, 7)]
        assert hits(site, reader.take(moment)) == [*FIVE, *paths(6)]


def test_reader_whose_refresh_failed_after_a_load_does_not_lose_rows_of_a_moment(
    site: Site, reader: SnapshotReader, clock: Clock
) -> None:
    reader.take()
    with new_process(site, clock) as other:
        post(site, 6)
        moment = other.take().moment
        site.load()
        post(site, 7)
        site.hot.execute("UPDATE synced_tables SET version = version + 1")
        with pytest.raises(DataIncomplete):
            reader.take()
        site.hot.execute("UPDATE synced_tables SET version = version - 1")
        assert hits(site, reader.take()) == [*FIVE, *paths(6, 7)]
        assert hits(site, reader.take(moment)) == [*FIVE, *paths(6)]


def expire(site: Site) -> None:
    site.load()
    site.expire()


def delete_beyond_the_limit(site: Site) -> None:
    site.load()
    retention.delete_due(site.hot, 0, bytes_max=1)


def erase_project(site: Site) -> None:
    erase.erase_hits(site.hot, site.root, site.share, erase.Chosen("other"), 0)


def erase_days(site: Site) -> None:
    site.post(view("/old", ts=NOON - timedelta(days=90)))
    erase.erase_before(site.hot, site.root, date(2026, 9, 15), 30, 0)


def accept_a_loss(site: Site) -> None:
    site.load()
    durability.accept_losses(site.hot, site.root, 0)


def remove_a_batch(site: Site) -> None:
    site.load()
    site.hot.execute("DELETE FROM batches WHERE id = 3")


def damage_a_batch(site: Site) -> None:
    site.load()
    site.hot.execute("UPDATE batches SET message = x'00' WHERE id = 2")


def remove_the_log(site: Site) -> None:
    site.load()
    compact_and_vacuum_later(site)
    site.load()


REMOVALS: dict[str, Callable[[Site], object]] = {
    "retention is over": expire,
    "retained batches are too large": delete_beyond_the_limit,
    "another project is erased": erase_project,
    "old days are erased": erase_days,
    "a loss is accepted": accept_a_loss,
    "one batch is missing": remove_a_batch,
    "one batch is damaged": damage_a_batch,
    "files and log are vacuumed": remove_the_log,
}
"""Changes after which the rows of a moment can no longer be read, at least not all of them."""


@pytest.mark.parametrize("removal", REMOVALS)
def test_moment_whose_rows_are_gone_is_refused_in_a_new_process_and_complete_or_refused_in_the_same_one(
    site: Site, reader: SnapshotReader, clock: Clock, removal: str
) -> None:
    moment = reader.take().moment
    REMOVALS[removal](site)
    is_revoked = "erased" in removal or removal in {"a loss is accepted", "files and log are vacuumed"}
    with new_process(site, clock) as other:
        for _ in range(2):
            for each in (other, *([reader] if is_revoked else [])):
                with pytest.raises(MomentExpired):
                    each.take(moment)
            if not is_revoked:  # the reader has the rows in memory
                assert hits(site, reader.take(moment)) == FIVE


def test_moment_is_refused_once_it_is_too_old(site: Site, reader: SnapshotReader, clock: Clock) -> None:
    moment = reader.take().moment
    site.load()
    clock.now_s += retention.AS_OF_S + 1
    fault = r"^the moment 2026-09-01T12:00:00.000000Z_1_4 is more than 10 minutes old"
    with new_process(site, clock) as other:
        for each in (reader, other):
            with pytest.raises(MomentExpired, match=fault):
                each.take(moment)


def test_moment_is_read_after_the_clock_was_set_back_a_little(site: Site, reader: SnapshotReader, clock: Clock) -> None:
    moment = reader.take().moment
    clock.now_s -= 60
    site.load()
    assert hits(site, reader.take(moment)) == FIVE


@pytest.mark.parametrize(
    "future",
    [{"version": 2}, {"last_id": 5}, {"generation": 1}, {"taken_us": (NOW_S + retention.AS_OF_S + 1) * 1_000_000}],
    ids=lambda future: next(iter(future)),
)
def test_moment_that_has_not_been_reached_is_invalid(
    site: Site, reader: SnapshotReader, future: dict[str, int]
) -> None:
    numbers = {"version": 1, "last_id": 4, "staged": 0, "taken_us": NOW_S * 1_000_000, **future}
    with pytest.raises(InvalidMoment, match="has not been reached"):
        reader.take(Moment(**numbers))


def test_moment_without_hits_that_its_version_has_is_invalid(site: Site, reader: SnapshotReader) -> None:
    moment = replace(reader.take().moment, last_id=0)
    for _ in range(2):
        with pytest.raises(InvalidMoment, match="does not exist: its version has later hits"):
            reader.take(moment)
        site.load()


def test_rows_are_deleted_while_a_moment_is_read(site: Site, reader: SnapshotReader, clock: Clock) -> None:
    moment = reader.take().moment
    site.load()
    with new_process(site, clock) as other:
        # SQLite calls the trace callback when a statement begins, before it reads a row.
        other._past._hot.set_trace_callback(lambda statement: site.expire())
        with pytest.raises(MomentExpired):
            other.take(moment)


@pytest.mark.parametrize(("cache_bytes", "is_read"), [(0, True), (10_000_000, False)])
def test_rows_of_a_moment_in_the_cache_are_not_read_again(
    site: Site, clock: Clock, cache_bytes: int, is_read: bool
) -> None:
    with new_process(site, clock) as reader:
        reader.cache_in(ResultCache(cache_bytes))
        moment = reader.take().moment
        site.load()
        reader.take()
        statements: list[str] = []
        reader._past._hot.set_trace_callback(statements.append)
        assert hits(site, reader.take(moment)) == FIVE
        assert bool(statements) == is_read


@pytest.mark.long
def test_moment_of_more_rows_than_the_cache_has_is_read(site: Site, reader: SnapshotReader, clock: Clock) -> None:
    site.post(*[view("/many")] * 1_000)
    batch = site.hot.execute("SELECT rows, committed_s, message, checksum FROM batches WHERE id = 5").fetchone()
    site.hot.executemany("INSERT INTO batches (rows, committed_s, message, checksum) VALUES (?, ?, ?, ?)", [batch] * 50)
    reader.cache_in(ResultCache(1_000_000))
    moment = reader.take().moment
    site.load()
    with new_process(site, clock) as other:
        for _ in range(2):
            assert reader.take(moment).hot.num_rows == other.take(moment).hot.num_rows == 2 + 1_000 * 51


def test_version_without_hot_rows_has_the_size_of_its_list_of_files() -> None:
    files = tuple(File(f"/{number}", "2026-09-01", 1, 1) for number in range(10))
    assert Version(State(0, 0, files), HotRows(HOT_COLUMNS, 0)).nbytes == 10 * FILE_BYTES
