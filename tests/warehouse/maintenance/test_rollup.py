"""Days and months of `daily_views` counted anew are exactly what `hits` says, whoever dies or writes meanwhile."""

from collections import Counter
from collections.abc import Iterable
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
from warehouse.maintenance import catch_up, rollup
from warehouse.maintenance.rollup import Rebuilt
from warehouse.schema import HOT

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC)
ROWS = [
    *({**row, "event_id": None} for row in some_rows(0, 12)),
    view(ts=MIDNIGHT - timedelta(microseconds=1)),
    view(ts=MIDNIGHT),
    view(ts=datetime(1, 1, 1, tzinfo=UTC)),
]


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    """Three months, in compacted files, in files as loaded, and in the hot log."""
    made = Site(tmp_path / "data")
    made.post(*ROWS[:5])
    made.load()
    made.compact()
    for row in ROWS[5:]:
        made.post(row)
        made.load()
    made.post(*ROWS)
    yield made
    made.close()


def run(site: Site) -> Rebuilt:
    return rollup.rebuild(site.hot, site.root, site.database, 0)


def spoil(site: Site) -> None:
    """Count wrongly, what is there and what is not; and count nothing in October."""
    counted = DeltaTable(str(site.root / "daily_views"))
    counted.delete("month = '2026-10'")
    counted.update(updates={"views": "views + 7"}, predicate="traffic = 'human'")
    more = [view("/nowhere", ts=NOON - 100 * DAY), view("/nowhere", agent="\N{PILE OF POO} 'quoted'")]
    delta_table.append(counted, daily_count.count(pa.Table.from_pylist(more, HOT)), "another", 1)


def test_daily_views_are_what_the_hits_say_whatever_they_were(site: Site) -> None:
    spoil(site)
    assert len(site.faults()) == 1
    told: list[tuple[int, int]] = []
    done = rollup.rebuild(site.hot, site.root, site.database, 0, lambda done, of: told.append((done, of)))
    assert done == Rebuilt(months=4, views=2 * len(ROWS))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    assert site.faults() == []


def test_files_of_daily_views_that_are_gone_are_made_again(site: Site) -> None:
    for file in site.state(delta_table.DAILY_VIEWS_TABLE).files:
        Path(file.path).unlink()
    run(site)
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    assert site.faults() == []


def test_each_month_is_one_file_in_the_order_of_the_table(site: Site) -> None:
    run(site)
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


def test_nothing_at_all_is_rebuilt_to_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert run(site) == Rebuilt(months=0, views=0)
    site.close()


def test_offsets_stay_and_later_batches_are_counted_once(site: Site) -> None:
    run(site)
    assert {site.state(spec).offset for spec in delta_table.TABLES} == {batches.last_id(site.hot)}
    site.post(*ROWS)
    site.load()
    assert site.daily_views() == Counter(map(key, 3 * ROWS))


def test_batch_that_a_killed_loader_left_in_hits_alone_is_counted_once(site: Site) -> None:
    die_at(site, "load.load(hot, root, 10, on_step)", "before commit of daily_views")
    assert site.state(delta_table.HITS_TABLE).offset > site.state(delta_table.DAILY_VIEWS_TABLE).offset
    run(site)
    site.load()
    assert site.daily_views() == Counter(map(key, 2 * ROWS))


def test_hits_posted_while_a_table_is_written_do_not_part_the_tables(site: Site) -> None:
    """The table that is written second must not take them either, or a rollup from the first would lose them."""

    def post(step: str) -> None:
        if step == "before commit of hits":
            site.post(view("/meanwhile"))

    with write_lock(site.root, 0):
        catch_up.catch_up(site.hot, site.root, post)
        assert len({site.state(spec).offset for spec in delta_table.TABLES}) == 1
        rollup.recount_days(site.root, site.database, ["2026-09-15"])
    site.load()
    assert site.daily_views() == Counter(map(key, [*2 * ROWS, view("/meanwhile")]))


REBUILD = "rollup.rebuild(hot, root, database, 10, on_step=on_step)"


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("step", rollup.STEPS)
def test_rebuild_killed_at_any_step_leaves_each_month_as_it_was_or_right(site: Site, step: str, passes: int) -> None:
    spoil(site)
    die_at(site, REBUILD, step, passes)
    run(site)
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    assert site.faults() == []


def change(site: Site, *days: str) -> list[Row]:
    """As if killed after `hits` changed and before `daily_views` followed: the days noted lost the hits of people."""
    dirty_days.mark_dirty(site.hot, days)
    for day in days:
        site.table(delta_table.HITS_TABLE).delete(f"date = '{day}' AND traffic = 'human'")
    return [row for row in ROWS if row["traffic"] != "human" or row["ts"].date().isoformat() not in days]


@pytest.mark.parametrize("how", ["load", "doctor"])
def test_days_noted_are_counted_by_the_next_load_or_doctor(site: Site, how: str) -> None:
    site.load()
    kept = change(site, "2026-09-15", "2026-09-30")
    assert site.daily_views() == Counter(map(key, 2 * ROWS))
    if how == "load":
        site.load()
    assert site.faults() == []
    assert site.daily_views() == Counter(map(key, 2 * kept))
    assert dirty_days.list_dirty(site.hot) == []
    versions = [site.state(spec).version for spec in delta_table.TABLES]
    site.load()
    assert [site.state(spec).version for spec in delta_table.TABLES] == versions


def test_day_noted_before_anything_changed_is_counted_to_the_same(site: Site) -> None:
    dirty_days.mark_dirty(site.hot, ["2026-09-15", "2026-09-15", "2027-01-01"])
    site.load()
    assert site.daily_views() == Counter(map(key, 2 * ROWS))


def test_last_rows_of_a_month_can_go(site: Site) -> None:
    site.load()
    dirty_days.mark_dirty(site.hot, ["2026-10-01"])
    site.table(delta_table.HITS_TABLE).delete("date = '2026-10-01'")
    site.load()
    assert "2026-10" not in {file.partition for file in site.state(delta_table.DAILY_VIEWS_TABLE).files}
    assert site.faults() == []


def test_other_days_of_the_month_are_copied_as_they_are(site: Site) -> None:
    spoil(site)
    before = site.daily_views()
    dirty_days.mark_dirty(site.hot, ["2026-09-15"])
    site.load()
    after = site.daily_views()
    right = Counter(map(key, 2 * ROWS))
    of_day = {each for each in after if each[1] == NOON.date()}
    assert {each: after[each] for each in of_day} == {each: right[each] for each in right if each[1] == NOON.date()}
    hot = Counter(map(key, ROWS))  # loaded meanwhile
    assert {each: n - hot[each] for each, n in after.items() if each not in of_day and n != hot[each]} == {
        each: n for each, n in before.items() if each[1] != NOON.date()
    }


def test_month_into_which_another_node_wrote_meanwhile_is_counted_again(site: Site, tmp_path: Path) -> None:
    other = batches.connect(tmp_path / "other.sqlite")
    wrote: list[Row] = []

    def write_once(step: str) -> None:
        if not wrote:
            wrote.append(view("/other"))
            batches.append(other, pa.RecordBatch.from_pylist(wrote, HOT), 0)
            catch_up.catch_up(other, site.root)

    site.load()
    rollup.recount_days(site.root, site.database, ["2026-09-15"], write_once)
    assert site.daily_views() == Counter(map(key, 2 * ROWS + wrote))
    other.close()


def test_month_into_which_other_nodes_write_without_end_is_told(site: Site, tmp_path: Path) -> None:
    other = batches.connect(tmp_path / "other.sqlite")

    def write(step: str) -> None:
        batches.append(other, pa.RecordBatch.from_pylist([view("/other")], HOT), 0)
        catch_up.catch_up(other, site.root)

    site.load()
    with pytest.raises(LakeBusy, match="other nodes wrote into the same days"):
        rollup.recount_days(site.root, site.database, ["2026-09-15"], write)
    other.close()


def test_rebuild_waits_for_the_lock_and_gives_up(site: Site) -> None:
    site.load()
    with write_lock(site.root, 0), pytest.raises(LakeBusy):
        run(site)
