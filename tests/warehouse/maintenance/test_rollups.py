"""Rollups are written when they are due, count exactly what their files of `hits` have, and leave the disk in time."""

import os
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.batch.tasks import DyingProcesses
from tests.warehouse.rollups.counted import cells, stored
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import DAY, NOON, Row, Site, die_at, event, loads, some_rows, view
from warehouse.columns.filters import Filters
from warehouse.errors import LakeBusy
from warehouse.lake import delta_table
from warehouse.lake.delta_table import File
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import compact, rollups, upkeep
from warehouse.maintenance.erase import Chosen, erase_before, erase_hits
from warehouse.maintenance.rollups import Written
from warehouse.report.results import Query
from warehouse.rollups import catalog, ranked, writer
from warehouse.rollups.catalog import ChosenRollups, Part, Rollup
from warehouse.tables import HITS_TABLE, VISITOR_TABLES

IN_MONTH, MONTH_LATER = date(2026, 9, 20), date(2026, 10, 1)
NOTHING = Written(0, 0)


def add(site: Site, *rows: Row) -> None:
    site.post(*rows)
    site.load()


def write_due(site: Site, today: date = MONTH_LATER, settle_s: float = 0) -> Written:
    return rollups.write_due(site.hot, site.root, site.share, today, 0, settle_s=settle_s)


def write_twenty(site: Site) -> None:
    add(site, *some_rows(0, 20))
    write_due(site)


@pytest.fixture
def written(tmp_path: Path) -> Iterable[Site]:
    """Yield a site with a rollup of some_rows(0, 20)."""
    with closing(Site.after(write_twenty, tmp_path / "written")) as site:
        yield site


def chosen(site: Site) -> ChosenRollups:
    return catalog.choose(site.root, site.state(HITS_TABLE).files)


def part(site: Site) -> Part:
    (part,) = chosen(site).parts
    return part


def folders(site: Site) -> set[Path]:
    """Return the folders of rollups and of rankings."""
    return {path.parent for path in (site.root / "rollups").rglob("*.parquet")}


def in_use(site: Site) -> set[Path]:
    """Return the folders of the rollups and the ranking that readers use."""
    ranking = ranked.find(site.root)
    assert ranking is not None
    return {ranking.folder, *(each.rollup.folder for each in chosen(site).parts)}


def check(site: Site, rows: Iterable[Row]) -> None:
    """Check that the rollup counts all rows, and nothing else."""
    rows = list(rows)
    assert chosen(site).uncovered == ()
    assert part(site).is_whole
    assert stored(part(site).rollup) == cells(rows)
    assert site.faults() == []


def hits_file(tmp_path: Path, day: str, name: str, rows: int, age_s: float = 0) -> File:
    path = tmp_path / day / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - age_s, time.time() - age_s))
    return File(str(path), day, 0, rows)


def is_due(tmp_path: Path, files: list[File], *covered: str, current_month: str = "2026-10") -> bool:
    """Return whether a month with these files is due if a rollup counts the `covered` names of 2026-09-01."""
    rollup = Rollup("2026-09", LocalPath(tmp_path), {"2026-09-01": frozenset(covered)}, 0)
    names = {Path(file.path).name for file in files}
    days = frozenset(rollup.files if names.issuperset(covered) else ())
    parts = (Part(rollup, days, is_whole=bool(days)),) if covered else ()
    uncovered = tuple(file for file in files if not days or Path(file.path).name not in covered)
    now_s = time.time()
    return rollups.is_due(ChosenRollups(parts, uncovered), files, f"{current_month}-30", now_s - 600)


@pytest.mark.parametrize(("rows", "due"), [(99_999, False), (100_000, True)])
def test_month_without_a_rollup_is_due_from_100_000_rows(tmp_path: Path, rows: int, due: bool) -> None:
    assert is_due(tmp_path, [hits_file(tmp_path, "2026-09-01", "a", rows)]) is due


@pytest.mark.parametrize(("rows", "due"), [(222_221, False), (222_223, True)])
def test_month_is_due_again_when_a_tenth_of_its_rows_is_uncovered(tmp_path: Path, rows: int, due: bool) -> None:
    files = [hits_file(tmp_path, "2026-09-01", "a", 2_000_000), hits_file(tmp_path, "2026-09-02", "b", rows)]
    assert is_due(tmp_path, files, "a") is due


@pytest.mark.parametrize(("age_s", "due"), [(590, False), (610, True)])
def test_month_that_has_ended_is_due_once_its_files_are_ten_minutes_old(
    tmp_path: Path, age_s: float, due: bool
) -> None:
    files = [hits_file(tmp_path, "2026-09-01", "a", 1, age_s), hits_file(tmp_path, "2026-09-01", "new", 1)]
    assert is_due(tmp_path, files) is due
    assert not is_due(tmp_path, files, current_month="2026-09")


@pytest.mark.parametrize(("age_s", "due"), [(590, False), (610, True)])
def test_replaced_day_is_due_once_it_has_been_quiet_for_ten_minutes(tmp_path: Path, age_s: float, due: bool) -> None:
    files = [hits_file(tmp_path, "2026-09-01", "compacted", 1, age_s), hits_file(tmp_path, "2026-09-02", "b", 1)]
    assert is_due(tmp_path, files, "a", current_month="2026-09") is due


def test_deleted_day_is_due_at_once(tmp_path: Path) -> None:
    assert is_due(tmp_path, [hits_file(tmp_path, "2026-09-02", "b", 1)], "a", current_month="2026-09")


def test_covered_month_is_not_due(tmp_path: Path) -> None:
    assert not is_due(tmp_path, [hits_file(tmp_path, "2026-09-01", "a", 1_000_000, 10_000)], "a")


@pytest.mark.long
def test_each_month_that_is_due_is_written_once(site: Site) -> None:
    september, october = some_rows(0, 20), [view(ts=NOON + 30 * DAY)]
    add(site, *september, *october)
    assert write_due(site, IN_MONTH) == NOTHING
    assert write_due(site, MONTH_LATER) == Written(rollups=1, rows=20)
    assert write_due(site, MONTH_LATER) == NOTHING
    check_september = part(site)
    assert stored(check_september.rollup) == cells(september)
    assert write_due(site, date(2026, 11, 1)) == Written(rollups=1, rows=1)


@pytest.mark.long
def test_rows_of_a_load_are_uncovered_until_the_next_rollup(written: Site) -> None:
    add(written, *some_rows(20, 20))
    assert part(written).is_whole
    assert sum(file.rows for file in chosen(written).uncovered) == 20
    assert write_due(written) == Written(rollups=1, rows=40)
    check(written, some_rows(0, 40))


@pytest.mark.long
def test_compaction_makes_the_days_invalid_and_the_next_rollup_covers_them(written: Site) -> None:
    add(written, view(event_id="one more"))
    written.compact()
    assert part(written).days == {"2026-09-16", "2026-09-17"}
    assert not part(written).is_whole
    write_due(written)
    check(written, [*some_rows(0, 20), view()])


@pytest.mark.long
def test_deleted_project_leaves_no_trace_an_hour_later(site: Site) -> None:
    secret = [view(f"/secret-{number}", NOON + number % 3 * DAY, project_id="other") for number in range(9)]
    add(site, *some_rows(0, 20), *secret)
    write_due(site)
    assert any(b"secret" in path.read_bytes() for path in (site.root / "rollups").rglob("*.parquet"))
    erase_hits(site.hot, site.root, site.share, Chosen("other"), 0)
    assert rollups.write_stale(site.hot, site.root, site.share, MONTH_LATER, 0) == Written(rollups=1, rows=20)
    check(site, some_rows(0, 20))
    old = folders(site) - in_use(site)
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert folders(site) > old
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert folders(site) == in_use(site)
    contents = [path.read_bytes() for path in site.root.rglob("*.parquet")]
    assert contents
    assert not any(b"secret" in content for content in contents)
    check(site, some_rows(0, 20))


@pytest.mark.long
def test_retention_removes_the_days_from_the_rollup(written: Site) -> None:
    erase_before(written.hot, written.root, NOON.date() + timedelta(days=11), 10, 0)
    assert part(written).days == {"2026-09-16", "2026-09-17"}
    assert rollups.write_stale(written.hot, written.root, written.share, MONTH_LATER, 0).rollups == 1
    check(written, [row for row in some_rows(0, 20) if row["ts"].date() > NOON.date()])


@pytest.mark.long
def test_rollup_of_a_deleted_month_is_removed_with_its_files(site: Site) -> None:
    add(site, view())
    write_due(site)
    erase_before(site.hot, site.root, NOON.date() + timedelta(days=365), 10, 0)
    rollups.write_stale(site.hot, site.root, site.share, MONTH_LATER, 0)
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert len(folders(site)) == 2
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert folders(site) == set()
    assert catalog.list_months(site.root) == []


@pytest.mark.long
def test_ranking_of_a_removed_rollup_is_not_removed_until_its_readers_have_noticed(site: Site) -> None:
    add(site, view())
    write_due(site)
    ranking, now_s = ranked.find(site.root), time.time()
    assert ranking is not None
    part(site).rollup.folder.remove_folder()
    for old_s, is_left in ((now_s + 60, True), (now_s - 60, True), (now_s + 60, False)):
        ranked.remove_unused(site.root, old_s)
        assert ranked.find(site.root) is None
        assert Path(ranking.months).exists() == is_left


@pytest.mark.long
def test_reader_of_an_older_snapshot_can_use_the_older_rollup_for_an_hour(written: Site) -> None:
    before = written.state(HITS_TABLE).files
    add(written, view())
    written.compact()
    write_due(written)
    upkeep.vacuum_rollups(written.hot, written.root, 0)
    (older,) = catalog.choose(written.root, before).parts
    assert older.is_whole
    assert stored(older.rollup) == cells(some_rows(0, 20))


@pytest.mark.long
def test_reader_of_an_older_snapshot_reads_a_replaced_rollup_older_than_another_old_one(site: Site) -> None:
    query = Query("site", NOON - DAY, NOON + DAY, Filters(), NOON + DAY)
    add(site, view())
    add(site, view())
    write_due(site)
    replaced = part(site).rollup.folder
    add(site, view(ts=NOON + DAY))
    of_other_day = [file for file in site.state(HITS_TABLE).files if file.partition != str(NOON.date())]
    write_rollup(site.root, site.database, "2026-09", of_other_day)
    site.age()
    os.utime(replaced / catalog.COVERAGE, (0, 0))
    with closing(site.reports()) as reports:
        older = reports.take()
        site.compact()
        assert write_due(site).rollups == 1
        assert reports.breakdown(reports.take(), query, "status", 0, 10).totals.total == 2
        for _ in range(2):
            upkeep.vacuum_rollups(site.hot, site.root, 0)
        assert reports.breakdown(older, query, "status", 0, 10).totals.total == 2
    site.age()
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert folders(site) == in_use(site)


@pytest.mark.long
def test_rebuilt_present_month_is_not_due(site: Site) -> None:
    today = NOON + DAY
    add(site, view())
    add(site, view(ts=today))
    assert rollups.rebuild(site.hot, site.root, site.share, today.date(), 0) == Written(rollups=2, rows=2)
    add(site, view(ts=today))
    assert write_due(site, today.date()) == NOTHING
    site.compact()
    assert write_due(site, today.date()) == NOTHING
    assert [each.days for each in chosen(site).parts] == [{str(NOON.date())}]


@pytest.mark.long
def test_stale_rollups_of_the_present_month_are_replaced_and_not_due(site: Site) -> None:
    today = NOON + DAY
    add(site, view(), view(project_id="other"), view(ts=today))
    rollups.rebuild(site.hot, site.root, site.share, today.date(), 0)
    erase_hits(site.hot, site.root, site.share, Chosen("other"), 0)
    assert rollups.write_stale(site.hot, site.root, site.share, today.date(), 0) == Written(rollups=2, rows=2)
    assert write_due(site, today.date()) == NOTHING
    assert rollups.write_stale(site.hot, site.root, site.share, today.date(), 0) == NOTHING


@pytest.mark.long
def test_rollup_in_use_is_never_removed(written: Site) -> None:
    written.age()
    upkeep.vacuum_rollups(written.hot, written.root, 0)
    check(written, some_rows(0, 20))


@pytest.mark.long
def test_garbage_of_a_killed_writer_is_removed_an_hour_later(written: Site) -> None:
    site = written
    call = "from datetime import date\nfrom warehouse.maintenance import rollups\n"
    call += "rollups.write_due(hot, root, share, date(2026, 10, 1), 0, settle_s=0, on_point=on_point)"
    add(site, view())
    die_at(site, call, "before coverage")
    month = part(site).rollup.folder.parent
    (month / "empty").make_folder()
    assert len(month.folders()) == 3
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert len(month.folders()) == 3
    site.age()
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert month.folders() == [part(site).rollup.folder.name]


@pytest.mark.long
def test_rebuild_replaces_a_wrong_rollup_and_ignores_it(site: Site) -> None:
    add(site, *some_rows(0, 20), view(ts=NOON + 30 * DAY))
    write_due(site, date(2026, 11, 1))
    wrong, key = {each.rollup.folder for each in chosen(site).parts}, catalog.written_key(site.root)
    progress: list[tuple[int, int]] = []
    done = rollups.rebuild(
        site.hot, site.root, site.share, MONTH_LATER, 0, lambda done, total: progress.append((done, total))
    )
    assert done == Written(rollups=2, rows=21)
    assert progress == [(1, 2), (2, 2)]
    assert not wrong & {each.rollup.folder for each in chosen(site).parts}
    assert all(catalog.COVERAGE not in {path.name for path in folder.iterdir()} for folder in wrong)
    assert catalog.written_key(site.root) != key


@pytest.mark.long
def test_rebuild_is_exact_if_a_worker_is_killed_after_it_wrote_its_files(site: Site, tmp_path: Path) -> None:
    rows = [*some_rows(0, 20), view(ts=NOON + 30 * DAY), view(ts=NOON + 60 * DAY)]
    add(site, *rows)
    children = DyingProcesses(2, tmp_path / "died")
    try:
        done = rollups.rebuild(site.hot, site.root, site.share, MONTH_LATER, 0, executor=children)
    finally:
        children.close()
    assert (tmp_path / "died").exists()
    assert done == Written(rollups=3, rows=22)
    assert chosen(site).uncovered == ()
    assert sum((stored(each.rollup)["paths"] for each in chosen(site).parts), Counter()) == cells(rows)["paths"]
    assert site.faults() == []
    assert len(folders(site)) == 5
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    site.age()
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert folders(site) == in_use(site)


@pytest.mark.long
def test_today_has_a_rollup_of_its_own_until_its_month_is_merged(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups, "UNCOVERED_ROWS_MIN", 40)
    month, today = [view(f"/{number % 9}") for number in range(30)], NOON + DAY
    add(site, *month)
    write_due(site)
    largest = part(site).rollup.folder
    add(site, *(view("/today", today) for _ in range(rollups.UNCOVERED_ROWS_MIN)))
    assert write_due(site, today.date()) == Written(rollups=1, rows=rollups.UNCOVERED_ROWS_MIN)
    of_today, of_month = chosen(site).parts
    assert (of_today.days, of_month.days) == ({str(today.date())}, {str(NOON.date())})
    assert of_month.rollup.folder == largest
    assert write_due(site, today.date()) == NOTHING
    assert write_due(site, MONTH_LATER).rollups == 1
    assert part(site).days == {str(NOON.date()), str(today.date())}
    assert site.faults() == []


@pytest.mark.long
def test_one_process_writes_at_a_time(site: Site) -> None:
    add(site, view())
    write_due(site)
    add(site, view())
    with write_lock(site.root / "rollups", 0):
        for call in (lambda: write_due(site), lambda: upkeep.vacuum_rollups(site.hot, site.root, 0)):
            with pytest.raises(LakeBusy):
                call()


@pytest.mark.long
def test_lake_is_not_locked_while_a_rollup_is_written(site: Site) -> None:
    add(site, view())
    steps: list[str] = []

    def load(step: str) -> None:
        add(site, view())
        steps.append(step)

    rollups.write_due(site.hot, site.root, site.share, MONTH_LATER, 0, settle_s=0, on_point=load)
    assert steps == list(writer.POINTS)
    assert stored(part(site).rollup) == cells([view()])


def test_empty_lake_has_no_rollup_and_no_folder_of_them(site: Site) -> None:
    assert write_due(site) == NOTHING
    upkeep.vacuum_rollups(site.hot, site.root, 0)
    assert (site.root / "rollups").folders() == []


actions = st.sampled_from(["add", "add", "add", "write", "write", "compact", "delete project", "delete day", "vacuum"])


@pytest.mark.long
@given(st.lists(st.tuples(actions, st.integers(0, 100)), max_size=10))
@settings(max_examples=rounds(10))
def test_valid_days_equal_hits_after_any_maintenance(steps: list[tuple[str, int]]) -> None:
    with temporary.folder() as folder, closing(Site(Path(folder) / "data")) as site:
        for action, number in [("add", 3), *steps]:
            if action == "add":
                rows = [view(f"/{n % 3}", NOON + n % 3 * DAY, project_id=("a", "b")[n % 2]) for n in range(number % 7)]
                add(site, view(project_id="a"), *rows)
            elif action == "write":
                write_due(site)
            elif action == "compact":
                site.compact()
            elif action == "delete project":
                erase_hits(site.hot, site.root, site.share, Chosen("b"), 0)
            elif action == "delete day":
                day = (NOON + number % 3 * DAY).date()
                delta_table.delete(site.table(HITS_TABLE), f"date = '{day}'")
            else:
                compact.vacuum(site.hot, site.root, 0)
                upkeep.vacuum_rollups(site.hot, site.root, 0)
        assert site.faults() == []
        write_due(site)
        assert chosen(site).uncovered == ()
        stored = [row for row in site.stored(HITS_TABLE) if row["ts"].year == 2026]
        if stored:
            check(site, stored)


@pytest.mark.long
def test_newest_month_is_written_first(site: Site) -> None:
    add(site, *(view(ts=NOON - days * DAY) for days in (0, 30, 60)))
    written: list[list[str]] = []

    def record(point: str) -> None:
        if point == "after coverage":
            written.append(catalog.list_months(site.root))

    rollups.write_due(site.hot, site.root, site.share, MONTH_LATER, 0, settle_s=0, on_point=record)
    newest = ["2026-09", "2026-08", "2026-07"]
    assert written == [sorted(newest[:months]) for months in (1, 2, 3)]


@pytest.mark.long
def test_month_with_a_damaged_file_does_not_prevent_the_rollups_of_the_others(site: Site) -> None:
    add(site, view(), view(ts=NOON - 30 * DAY), view(ts=NOON - 60 * DAY))
    damaged = next(file for file in site.state(HITS_TABLE).files if file.partition.startswith("2026-08"))
    Path(damaged.path).write_bytes(b"PAR1 and no more")
    done: list[int] = []
    with pytest.raises(duckdb.Error) as caught:
        rollups.write_due(
            site.hot, site.root, site.share, MONTH_LATER, 0, settle_s=0, on_month=lambda number, _: done.append(number)
        )
    assert [folder.parent.name for folder in sorted(folders(site))] == ["month=2026-07", "month=2026-09", "ranked"]
    assert done == [1, 2, 3]
    assert caught.value.__notes__ == [f"in the rollup of {damaged.partition}"]


@pytest.mark.long
@pytest.mark.parametrize("is_damaged_today", [True, False])
def test_damaged_file_of_today_does_not_prevent_the_rollup_of_the_month_so_far(
    site: Site, is_damaged_today: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "UNCOVERED_ROWS_MIN", 1)
    add(site, view(), view(ts=NOON - DAY))
    files = {file.partition: Path(file.path) for file in site.state(HITS_TABLE).files}
    day = max(files) if is_damaged_today else min(files)
    files[day].write_bytes(b"PAR1 and no more")
    with pytest.raises(duckdb.Error) as caught:
        write_due(site, date.fromisoformat(max(files)))
    assert caught.value.__notes__ == [f"in the rollup of {day}"]
    (counted,) = chosen(site).parts
    assert counted.days == files.keys() - {day}


@pytest.mark.long
def test_late_load_of_an_asset_or_event_makes_its_day_stale_until_the_next_rollup(site: Site) -> None:
    query = Query("site", NOON - DAY, NOON + 2 * DAY, Filters(), NOON + 3 * DAY)

    def evidence() -> set[str]:
        with closing(site.reports()) as reports:
            return {*reports.breakdown(reports.take(), query, "evidence", 0, 9).rows["value"].to_pylist()}

    def stale() -> set[str]:
        return catalog.stale_days(
            chosen(site).parts, [file for spec in VISITOR_TABLES for file in site.state(spec).files]
        )

    def bounces() -> int:
        with closing(site.reports()) as reports:
            return int(reports.visitor_counts(reports.take(), query)["bounces"][0].as_py())

    add(site, view(visitor=1), view(ts=NOON + DAY, visitor=1), view(visitor=2, source="beacon"))
    assert write_due(site).rows == 3
    assert evidence() == {"not_measured", "script"}
    site.post_loads(loads(1))
    assert evidence() == {"not_measured", "assets", "script"}  # it waits
    site.load()
    assert stale() == {"2026-09-15"}
    assert evidence() == {"not_measured", "assets", "script"}
    assert bounces() == 1
    site.post_events(event(visitor=2))
    assert bounces() == 0  # it waits
    site.load()
    assert bounces() == 0
    assert site.faults() == []
    assert write_due(site, settle_s=3600) == NOTHING
    assert write_due(site).rows == 3
    assert stale() == set()
    assert evidence() == {"not_measured", "assets", "script"}
    assert bounces() == 0
    assert site.faults() == []
    assert write_due(site) == NOTHING
