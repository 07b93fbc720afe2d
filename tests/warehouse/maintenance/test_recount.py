"""Recounted days and months equal `hits`, whatever process is killed or writes meanwhile."""

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.warehouse.site import DAY, NOON, Row, Site, die_at, key, some_rows, view
from warehouse import daily_count
from warehouse.errors import LakeBusy
from warehouse.hotlog import batches, dirty_days
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.maintenance import catch_up, recount
from warehouse.maintenance.recount import Rebuilt
from warehouse.schema import HOT

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC)
ROWS = [
    *({**row, "event_id": None} for row in some_rows(0, 12)),
    view(ts=MIDNIGHT - timedelta(microseconds=1)),
    view(ts=MIDNIGHT),
    view(ts=datetime(1, 1, 1, tzinfo=UTC)),
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of a site with hits of three months: compacted, loaded, and in the hot log."""
    folder = tmp_path_factory.mktemp("original") / "data"
    site = Site(folder)
    site.post(*ROWS[:5])
    site.load()
    site.compact()
    for row in ROWS[5:]:
        site.post(row)
        site.load()
    site.post(*ROWS)
    site.close()
    return folder


@pytest.fixture
def site(original: Path, tmp_path: Path) -> Iterable[Site]:
    site = Site.copied(original, tmp_path / "data")
    yield site
    site.close()


def rebuild(site: Site) -> Rebuilt:
    return recount.rebuild(site.hot, site.root, site.database, 0)


def corrupt_counts(site: Site) -> None:
    """Make counts too high, add counts without hits, and delete the counts of October."""
    counted = DeltaTable(str(site.root / "daily_views"))
    counted.delete("month = '2026-10'")
    counted.update(updates={"views": "views + 7"}, predicate="traffic = 'human'")
    more = [view("/nowhere", ts=NOON - 100 * DAY), view("/nowhere", agent="\N{PILE OF POO} 'quoted'")]
    delta_table.append(counted, daily_count.count(pa.Table.from_pylist(more, HOT)), "another", 1)


@pytest.mark.long
def test_rebuilt_daily_views_equal_the_hits_whatever_they_were_before(site: Site) -> None:
    corrupt_counts(site)
    assert len(site.faults()) == 1
    progress: list[tuple[int, int]] = []
    done = recount.rebuild(site.hot, site.root, site.database, 0, lambda done, of: progress.append((done, of)))
    assert done == Rebuilt(months=4, views=2 * len(ROWS))
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    assert site.faults() == []


def test_rebuild_replaces_missing_files_of_daily_views(site: Site) -> None:
    for file in site.state(delta_table.DAILY_VIEWS_TABLE).files:
        Path(file.path).unlink()
    rebuild(site)
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    assert site.faults() == []


def test_each_month_is_one_file_in_the_order_of_the_table(site: Site) -> None:
    rebuild(site)
    assert [
        file.partition for file in sorted(site.state(delta_table.DAILY_VIEWS_TABLE).files, key=lambda f: f.partition)
    ] == [
        "0001-01",
        "2026-09",
        "2026-10",
    ]
    rows = [row for row in site.stored(delta_table.DAILY_VIEWS_TABLE) if row["month"] == "2026-09"]
    places = [tuple(row[name] for name in delta_table.DAILY_VIEWS_TABLE.order) for row in rows]
    assert places == sorted(places)


def test_rebuild_of_an_empty_lake_makes_no_commit(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert rebuild(site) == Rebuilt(months=0, views=0)
    site.close()


def test_rebuild_changes_no_offset_and_later_batches_are_counted_once(site: Site) -> None:
    rebuild(site)
    assert {site.state(spec).offset for spec in delta_table.TABLES} == {batches.last_id(site.hot)}
    site.post(*ROWS)
    site.load()
    assert site.daily_views() == Counter(map(key, 3 * ROWS))


def test_batch_that_a_killed_loader_left_in_hits_alone_is_counted_once(site: Site) -> None:
    die_at(site, "load.load(hot, root, 10, on_step)", "before commit of daily_views")
    assert site.state(delta_table.HITS_TABLE).offset > site.state(delta_table.DAILY_VIEWS_TABLE).offset
    rebuild(site)
    site.load()
    assert site.daily_views() == Counter(map(key, 2 * ROWS))


def test_tables_have_the_same_offset_after_hits_were_posted_during_the_commit_to_one(site: Site) -> None:
    """If only the second table had those hits, a recount from the first would lose them."""

    def post(step: str) -> None:
        if step == "before commit of hits":
            site.post(view("/meanwhile"))

    with write_lock(site.root, 0):
        catch_up.catch_up(site.hot, site.root, post)
        assert len({site.state(spec).offset for spec in delta_table.TABLES}) == 1
        recount.recount_days(site.hot, site.root, site.database, ["2026-09-15"])
    site.load()
    assert site.daily_views() == Counter(map(key, [*2 * ROWS, view("/meanwhile")]))


REBUILD = "recount.rebuild(hot, root, database, 10, on_step=on_step)"


@pytest.mark.long
@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("step", recount.STEPS)
def test_rebuild_completes_after_one_that_was_killed_at_any_step(site: Site, step: str, passes: int) -> None:
    corrupt_counts(site)
    die_at(site, REBUILD, step, passes)
    rebuild(site)
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    assert site.faults() == []


def change_hits_only(site: Site, *days: str) -> list[Row]:
    """Mark days dirty and delete their human hits, as a process killed before its commit to `daily_views` does."""
    dirty_days.mark_dirty(site.hot, days)
    for day in days:
        site.table(delta_table.HITS_TABLE).delete(f"date = '{day}' AND traffic = 'human'")
    return [row for row in ROWS if row["traffic"] != "human" or row["ts"].date().isoformat() not in days]


@pytest.mark.parametrize("how", ["load", "doctor"])
def test_dirty_days_are_recounted_by_the_next_load_or_doctor(site: Site, how: str) -> None:
    site.load()
    unchanged = change_hits_only(site, "2026-09-15", "2026-09-30")
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    if how == "load":
        site.load()
    assert site.faults() == []
    assert site.daily_views() == Counter(map(key, 2 * unchanged))
    assert dirty_days.list_dirty(site.hot) == []
    versions = [site.state(spec).version for spec in delta_table.TABLES]
    site.load()
    assert [site.state(spec).version for spec in delta_table.TABLES] == versions


def test_recount_of_an_unchanged_day_changes_no_count(site: Site) -> None:
    dirty_days.mark_dirty(site.hot, ["2026-09-15", "2026-09-15", "2027-01-01"])
    site.load()
    assert site.daily_views() == Counter(map(key, 2 * ROWS))


def test_month_without_hits_has_no_file_after_a_recount(site: Site) -> None:
    site.load()
    dirty_days.mark_dirty(site.hot, ["2026-10-01"])
    site.table(delta_table.HITS_TABLE).delete("date = '2026-10-01'")
    site.load()
    assert "2026-10" not in {file.partition for file in site.state(delta_table.DAILY_VIEWS_TABLE).files}
    assert site.faults() == []


def test_other_days_of_the_month_are_copied_unchanged(site: Site) -> None:
    corrupt_counts(site)
    before = site.daily_views()
    dirty_days.mark_dirty(site.hot, ["2026-09-15"])
    site.load()
    after = site.daily_views()
    right = Counter(map(key, 2 * ROWS))
    of_day = {each for each in after if each[1] == NOON.date()}
    assert {each: after[each] for each in of_day} == {each: right[each] for each in right if each[1] == NOON.date()}
    hot = Counter(map(key, ROWS))  # loaded by the same call
    assert {each: n - hot[each] for each, n in after.items() if each not in of_day and n != hot[each]} == {
        each: n for each, n in before.items() if each[1] != NOON.date()
    }


def test_recount_is_repeated_after_another_node_appended_to_the_month(site: Site, tmp_path: Path) -> None:
    other = batches.connect(tmp_path / "other.sqlite")
    wrote: list[Row] = []

    def write_once(step: str) -> None:
        if not wrote:
            wrote.append(view("/other"))
            batches.append(other, pa.RecordBatch.from_pylist(wrote, HOT), 0)
            catch_up.catch_up(other, site.root)

    site.load()
    recount.recount_days(site.hot, site.root, site.database, ["2026-09-15"], write_once)
    assert site.daily_views() == Counter(map(key, 2 * ROWS + wrote))
    other.close()


def test_recount_that_conflicts_with_each_commit_of_another_node_is_lake_busy(site: Site, tmp_path: Path) -> None:
    other = batches.connect(tmp_path / "other.sqlite")

    def write(step: str) -> None:
        batches.append(other, pa.RecordBatch.from_pylist([view("/other")], HOT), 0)
        catch_up.catch_up(other, site.root)

    site.load()
    with pytest.raises(LakeBusy, match="other nodes wrote into the same days"):
        recount.recount_days(site.hot, site.root, site.database, ["2026-09-15"], write)
    other.close()


def test_recount_after_another_node_has_loaded_hits_alone_is_lake_busy_and_counts_nothing_twice(site: Site) -> None:
    """A node that was paused in its recount has lost the lock, and another one is between its two commits."""

    class Paused(Exception):
        pass

    def pause(step: str) -> None:
        if step == "before commit of daily_views":
            raise Paused

    site.load()
    site.post(view("/other"))
    with closing(batches.connect(site.hot_log)) as other, pytest.raises(Paused):
        catch_up.catch_up(other, site.root, pause)
    with pytest.raises(LakeBusy, match="another node loads hits"):
        recount.recount_days(site.hot, site.root, site.database, ["2026-09-15"])
    site.load()
    assert site.daily_views() == Counter(map(key, [*2 * ROWS, view("/other")]))


def test_rebuild_times_out_on_the_lock(site: Site) -> None:
    site.load()
    with write_lock(site.root, 0), pytest.raises(LakeBusy):
        rebuild(site)
