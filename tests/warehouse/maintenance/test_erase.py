"""Erased rows leave the tables and the disk, wherever the erasure is killed, and no other row is lost."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.rounds import seeded, some
from tests.warehouse.site import DAY, NOON, Site, die_at, hits_of, key, view
from warehouse.errors import LakeBusy, MomentExpired, ProjectGone
from warehouse.hotlog import batches, wal
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.maintenance import catch_up, compact, erase
from warehouse.query.snapshot import SnapshotReader
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE, TABLES

TODAY = date(2026, 9, 15)
SECRET = "/only-in-the-deleted-project"


def erase_project(site: Site, project: str) -> int:
    return erase.erase_hits(site.hot, site.root, site.share, erase.Chosen(project), 0)


def erase_before(site: Site, days: int) -> int:
    return erase.erase_before(site.hot, site.root, TODAY, days, 0)


def test_retention_deletes_exactly_the_days_before_it(site: Site) -> None:
    last_of_old = datetime(2026, 9, 4, 23, 59, 59, 999_999, tzinfo=UTC)
    old = [view(ts=last_of_old, path="/old"), view(ts=datetime(1970, 1, 1, tzinfo=UTC), path="/old")]
    retained = [view(ts=datetime(2026, 9, 5, tzinfo=UTC)), view(), view(ts=NOON + 40 * DAY)]
    site.post(*old, *retained)
    site.load()
    assert erase_before(site, 10) == 2
    assert sorted(row["ts"] for row in site.stored(HITS_TABLE)) == [row["ts"] for row in retained]
    assert site.daily_views() == Counter(map(key, retained))
    assert erase_before(site, 10) == 0
    assert site.load().rows == 0
    assert site.state(HITS_TABLE).offset == 1


@pytest.mark.long
def test_deleted_project_leaves_hits_and_other_projects_stay(site: Site) -> None:
    site.post(view(), view(project_id="site-2"), view(ts=NOON + DAY))
    site.load()
    site.post(view(ts=NOON - 40 * DAY), view(project_id="site-2", ts=NOON - 40 * DAY))
    assert erase_project(site, "site") == 3
    assert [row["project_id"] for row in site.stored(HITS_TABLE)] == ["site-2"] * 2
    assert site.daily_views() == {key(view(project_id="site-2", ts=NOON - days * DAY)): 1 for days in (0, 40)}
    assert site.faults() == []


def test_nothing_to_erase_is_no_commit(site: Site) -> None:
    assert erase_project(site, "site") == 0
    site.post(view())
    site.load()
    versions = [site.state(spec).version for spec in TABLES]
    assert (erase_project(site, "other"), erase_before(site, 1)) == (0, 0)
    assert [site.state(spec).version for spec in TABLES] == versions


YEAR_1 = datetime(1, 1, 1, tzinfo=UTC)


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "gone"),
    [
        (erase.Chosen("site", end=date(1995, 1, 1)), {"/zero"}),
        (
            erase.Chosen("site", first=date(2026, 9, 15), end=date(2026, 9, 17)),
            {"/it's", "/old/a", "/old/b", "/failed"},
        ),
        (erase.Chosen("site", first=date(2026, 9, 15), path="/it's"), {"/it's"}),
        (erase.Chosen("site", first=date(2026, 9, 15), path="/old/*"), {"/old/a", "/old/b", "/old/hot"}),
        (erase.Chosen("site", end=date(2026, 9, 15), path="/old/a"), set()),
        (erase.Chosen("site", path="/*b"), {"/*b"}),
        (erase.Chosen("site", first=date(2026, 9, 15), path="*ld/h*"), {"/old/hot"}),
    ],
)
def test_chosen_days_and_paths_are_counted_and_deleted_and_all_others_stay(
    site: Site, chosen: erase.Chosen, gone: set[str]
) -> None:
    rows = [view("/zero", ts=YEAR_1), view("/it's"), view("/old/a"), view("/old/b", ts=NOON + DAY, traffic="ai")]
    rows += [view("/older", ts=NOON + 2 * DAY), view("/*b", ts=NOON + 2 * DAY), view("/it's", project_id="another")]
    rows.append(view("/failed", traffic="bot", agent="GPTBot", rule="bot:spoofed:GPTBot", status=404))
    site.post(*rows)
    site.load()
    hot = [view("/old/hot", ts=NOON + 3 * DAY)]
    site.post(*hot)
    removed = [row for row in rows + hot if row["project_id"] == "site" and row["path"] in gone]
    counted = erase.count(site.hot, site.root, site.share, chosen, 0)
    assert sum(each.hits + each.errors for each in counted) == len(removed)
    assert {each.day for each in counted} == {row["ts"].date() for row in removed}
    views = [row for row in removed if row["status"] != 404]
    assert erase.erase_hits(site.hot, site.root, site.share, chosen, 0) == len(views)
    stayed = [row for row in rows + hot if row not in removed]
    assert site.daily_views() == Counter(key(row) for row in stayed if row["status"] != 404)
    assert len(site.stored(REQUESTS_TABLE)) == ("/failed" not in gone)
    assert erase.count(site.hot, site.root, site.share, chosen, 0) == []
    assert site.faults() == []


def remaining(site: Site, word: str) -> list[Path]:
    """Return the Parquet files that have a word in a row or in their name, also files that no table names."""
    files = list(site.root.rglob("*.parquet"))
    return [file for file in files if word in str(pq.ParquetFile(file).read().to_pylist()) or word in file.name]


@pytest.mark.long
def test_no_file_has_a_row_of_a_deleted_project_after_the_grace_period(site: Site) -> None:
    for number in range(3):
        site.post(view(SECRET, ts=NOON + number * 20 * DAY, project_id="goes"), view())
        site.load()
    site.compact()
    site.post(view(SECRET, project_id="goes"), view())
    site.load()
    site.post(view(SECRET, project_id="goes"), view())
    assert len(remaining(site, SECRET)) > 4
    assert erase_project(site, "goes") == 5
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    assert (remaining(site, SECRET), remaining(site, "goes")) == ([], [])
    assert site.daily_views() == {key(view()): 5}
    assert site.faults() == []


def vacuum_after_retention(site: Site) -> None:
    site.load()
    site.expire()
    compact.vacuum(site.hot, site.root, 0)


ERASURES: dict[str, Callable[[Site], object]] = {
    "project": lambda site: erase_project(site, "goes"),
    "days": lambda site: erase_before(site, 10),
    "vacuum": vacuum_after_retention,
}


@pytest.mark.parametrize("erasure", ERASURES)
def test_hot_log_of_a_running_service_has_no_bytes_of_erased_or_expired_rows(site: Site, erasure: str) -> None:
    """SQLite empties the WAL by itself only when the last connection is closed."""
    files = [site.hot_log, site.hot_log.with_name(f"{site.hot_log.name}-wal")]
    with closing(SnapshotReader(site.hot_log, site.root)) as service:
        site.post(view(SECRET, ts=NOON - 20 * DAY, project_id="goes"), view(SECRET, ts=NOON - 50 * DAY))
        service.take()
        assert any(SECRET.encode() in file.read_bytes() for file in files)
        ERASURES[erasure](site)
        assert site.waiting() == 0
        assert not any(SECRET.encode() in file.read_bytes() for file in files)


@pytest.mark.parametrize("erasure", ["project", "days"])
def test_erasure_deletes_loaded_batches_that_the_hot_log_retains(site: Site, erasure: str) -> None:
    site.post(view(SECRET, ts=NOON - 20 * DAY, project_id="goes"), view("/other", ts=NOON))
    site.load()
    wal.empty(site.hot)
    assert SECRET.encode() in site.hot_log.read_bytes()
    ERASURES[erasure](site)
    for file in (site.hot_log, site.hot_log.with_name(f"{site.hot_log.name}-wal")):
        assert SECRET.encode() not in file.read_bytes()
        assert b"/other" not in file.read_bytes()


def test_erasure_of_days_that_have_no_rows_leaves_loaded_batches_and_moments(site: Site) -> None:
    with closing(SnapshotReader(site.hot_log, site.root)) as reader:
        site.load()
        moment = reader.take().moment
        assert erase_before(site, 1_000) == 0
        assert reader.take(moment).moment == moment
    assert batches.deleted_through(site.hot) == 0


def test_moment_that_a_client_changed_does_not_have_erased_rows(site: Site) -> None:
    site.post(view(SECRET, project_id="goes"), view())
    site.load()
    with closing(SnapshotReader(site.hot_log, site.root)) as reader:
        before = reader.take().moment
        assert erase_project(site, "goes") == 1
        after = reader.take().moment
        with pytest.raises(MomentExpired, match="rows were erased after the moment"):
            reader.take(replace(after, version=before.version))
        site.post(view())
        site.load()
        assert reader.take(after).moment == after


@pytest.mark.long
def test_open_read_transaction_delays_no_erasure_and_no_post(site: Site) -> None:
    site.post(view(SECRET, project_id="goes"))
    with closing(batches.connect(site.hot_log)) as other:
        other.execute("BEGIN")
        assert batches.backlog(other).rows == 1
        site.hot.execute("PRAGMA busy_timeout=1000000")  # longer than the timeout of this test
        assert erase_project(site, "goes") == 1
        site.post(view())
    assert erase_project(site, "goes") == 0
    assert SECRET.encode() not in site.hot_log.read_bytes()


def test_rows_of_a_later_project_with_the_id_that_another_node_stores_meanwhile_stay(site: Site) -> None:
    """The check raises no error at first, and then another node deletes the project and stores rows of the new one."""
    site.post(view("/old"), view("/old", ts=NOON - 40 * DAY), view(project_id="other"))
    site.load()
    new = [view("/new"), view("/new", ts=NOON - 40 * DAY)]
    checks = 0

    def require_same() -> None:
        nonlocal checks
        checks += 1
        if checks > 1:
            raise ProjectGone("site")
        for month in ("2026-09", "2026-08"):
            rows = hits_of(pa.Table.from_pylist([row for row in new if row["ts"].strftime("%Y-%m") == month], HOT))
            delta_table.append(site.table(HITS_TABLE), rows, "another node", checks)

    with pytest.raises(ProjectGone, match="another process has deleted project 'site'"):
        erase.erase_hits(site.hot, site.root, site.share, erase.Chosen("site"), 0, require_same=require_same)
    assert Counter(row["path"] for row in site.stored(HITS_TABLE))["/new"] == 2
    assert checks == 2


RETAINED = [view(), view(ts=NOON - 2 * DAY)]
KILLED: dict[str, Callable[[Site, catch_up.OnPoint], object]] = {
    "project": lambda site, on_point: erase.erase_hits(
        site.hot, site.root, site.share, erase.Chosen("goes"), 0, on_point
    ),
    "days": lambda site, on_point: erase.erase_before(site.hot, site.root, TODAY, 10, 0, on_point),
}


@pytest.fixture
def erasable(site: Site) -> Site:
    """Return the site with two hits that stay, and with one hit of July and two of August that are erased."""
    site.post(*RETAINED, *(view(SECRET, project_id="goes", ts=NOON - days * DAY) for days in (20, 16, 50)))
    site.load()
    return site


def check_and_repeat(site: Site, remaining: int) -> None:
    site.post(*RETAINED)
    assert site.load().rows == 2
    assert site.faults() == []
    assert erase_project(site, "goes") + erase_before(site, 10) == remaining
    assert site.daily_views() == Counter(map(key, RETAINED * 2))
    assert len(site.stored(HITS_TABLE)) == 4


@pytest.mark.long
@pytest.mark.parametrize("erasure", KILLED)
def test_tables_agree_after_an_erasure_was_killed_at_any_step_and_it_can_be_repeated(
    erasable: Site, erasure: str, tmp_path: Path
) -> None:
    copies = erasable.copies(tmp_path / "copies", lambda on_point: KILLED[erasure](erasable, on_point))
    assert Counter(point for point, _ in copies) == dict.fromkeys(erase.POINTS, 2)
    months_done = Counter[str]()
    cases: list[tuple[Path, int]] = []
    for point, folder in copies:
        cases.append((folder, [3, 2, 0][months_done[point] + (point != "before delete from hits")]))
        months_done[point] += 1
    for folder, remaining in some(seeded(len(erasure)), cases, len(erase.POINTS)):
        with closing(Site(folder, is_new=False)) as copied:
            check_and_repeat(copied, remaining)


@pytest.mark.long
def test_tables_agree_after_an_erasure_was_killed(erasable: Site) -> None:
    die_at(erasable, 'erase.erase_hits(hot, root, share, erase.Chosen("goes"), 10, on_point)', "after month")
    check_and_repeat(erasable, 2)


@pytest.mark.long
def test_hits_posted_during_an_erasure_are_loaded_with_its_next_month(site: Site) -> None:
    site.post(view(ts=NOON - 20 * DAY), view(ts=NOON - 50 * DAY), view())
    coming = [view("/b"), view("/c")]

    def post(step: str) -> None:
        if step == "after month":
            assert site.waiting() == 0
            site.post(coming.pop())

    assert erase.erase_before(site.hot, site.root, TODAY, 10, 0, post) == 2
    assert (coming, site.waiting()) == ([], 1)
    site.load()
    assert site.daily_views() == Counter(map(key, (view(), view("/b"), view("/c"))))
    assert site.faults() == []


def test_row_that_only_one_table_has_is_loaded_before_it_is_erased(site: Site) -> None:
    """Reproduce a loader killed between its commits: an error that it had not loaded would come back."""
    site.post(view(ts=NOON - 20 * DAY), view(ts=NOON - 20 * DAY, traffic="bot", status=404), view())
    die_at(site, "load.load(hot, root, 10, on_point)", "before commit of asset_loads")
    assert site.state(HITS_TABLE).offset == 1
    assert site.state(REQUESTS_TABLE).offset == 0
    assert erase_before(site, 10) == 1
    site.load()
    assert site.daily_views() == {key(view()): 1}
    assert site.stored(REQUESTS_TABLE) == []


def test_erasure_times_out_on_the_lock_and_deletes_nothing(site: Site) -> None:
    site.post(view(ts=NOON - 9 * DAY))
    site.load()
    site.post(view())
    with write_lock(site.root, 0):
        with pytest.raises(LakeBusy):
            erase_before(site, 1)
        with pytest.raises(LakeBusy):
            erase_project(site, "site")
    assert (len(site.stored(HITS_TABLE)), site.waiting()) == (1, 1)
