"""Each hot batch is in each table exactly once, wherever a loader is killed and however many loaders run."""

import shutil
import subprocess
import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounds import rounds
from tests.warehouse.site import DAY, NOON, ROOT, Row, Site, die_at, key, rank, some_rows, view
from warehouse.errors import DataIncomplete, HotLogBehind, LakeBusy
from warehouse.hotlog import batches
from warehouse.integrity import durability
from warehouse.lake import delta_table, staging
from warehouse.lake.lock import write_lock
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import catch_up, compact, load
from warehouse.maintenance.catch_up import Loaded
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE, TABLES


def assert_stored_once(site: Site, rows: list[Row]) -> None:
    """Check that `hits` has exactly these rows, that no batch waits, and each table's offset."""
    assert site.event_ids() == sorted(row["event_id"] for row in rows)
    assert site.daily_views() == Counter(map(key, rows))
    assert site.waiting() == 0
    assert {site.state(spec).offset for spec in TABLES} == {batches.last_id(site.hot)}


def load_and_die(site: Site, step: str, passes: int = 0) -> None:
    """Load in another process, which kills itself at the step after it has passed the step `passes` times."""
    limit = f"from warehouse.maintenance import catch_up; catch_up.COMMIT_BATCHES_MAX = {catch_up.COMMIT_BATCHES_MAX}\n"
    die_at(site, limit + "load.load(hot, root, 10, on_point)", step, passes)


@pytest.mark.long
def test_every_hit_is_counted_once_after_a_loader_was_killed_at_any_step(site: Site, tmp_path: Path) -> None:
    before, between = some_rows(0, 10), some_rows(10, 5)
    site.post(*before[:6])
    site.post(*before[6:])
    copies = site.copies(tmp_path / "copies", site.load)
    assert [step for step, _ in copies] == list(catch_up.POINTS)
    for _, folder in copies:
        with closing(Site(folder, is_new=False)) as copied:
            with closing(copied.reports()) as reports:
                assert rank(reports, "site", NOON - DAY, NOON + 9 * DAY, NOON).human == 3  # 0, 4 and 8
            copied.post(*between)
            copied.load()
            assert_stored_once(copied, before + between)


@pytest.fixture
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a commit have few batches: a load of 20,001 batches takes 10 s of processor time."""
    monkeypatch.setattr(catch_up, "COMMIT_BATCHES_MAX", 3)


@pytest.mark.long
@pytest.mark.usefixtures("small_commits")
def test_load_after_a_kill_between_two_commits_continues_after_the_first(site: Site) -> None:
    rows = post_more_than_a_commit_takes(site)
    load_and_die(site, "before commit of hits", passes=1)
    assert {site.state(spec).offset for spec in TABLES} == {catch_up.COMMIT_BATCHES_MAX}
    assert site.waiting() == 1
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    assert_stored_once(site, rows)


@pytest.mark.long
@pytest.mark.usefixtures("small_commits")
def test_batch_waits_in_the_hot_log_until_each_table_has_it(site: Site) -> None:
    rows = post_more_than_a_commit_takes(site)
    load_and_die(site, "before commit of asset_loads")
    load_and_die(site, "after mark")
    assert site.state(HITS_TABLE).offset == catch_up.COMMIT_BATCHES_MAX + 1
    assert site.state(REQUESTS_TABLE).offset == catch_up.COMMIT_BATCHES_MAX
    assert site.waiting() == 1
    site.load()
    assert_stored_once(site, rows)


def post_more_than_a_commit_takes(site: Site) -> list[Row]:
    rows = some_rows(0, catch_up.COMMIT_BATCHES_MAX + 1)
    together = pa.RecordBatch.from_pylist(rows, HOT)
    site.hot.execute("BEGIN")
    for number in range(len(rows)):
        batches.append(site.hot, together.slice(number, 1), 0)
    site.hot.execute("COMMIT")
    return rows


def test_load_is_due_once_the_waiting_hits_take_many_bytes(site: Site) -> None:
    site.post(view())
    site.hot.execute("UPDATE batches SET bytes = ?", (load.DUE_BYTES - 1,))
    assert not load.is_due(site.hot, 2, age_s=60, now_s=NOON.timestamp())
    site.hot.execute("UPDATE batches SET bytes = ?", (load.DUE_BYTES,))
    assert load.is_due(site.hot, 2, age_s=60, now_s=NOON.timestamp())


@pytest.mark.long
def test_empty_hot_log_makes_no_commit(site: Site) -> None:
    site.post(view())
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    versions = [site.state(spec).version for spec in TABLES]
    assert site.load() == Loaded(rows=0, commits=0)
    assert [site.state(spec).version for spec in TABLES] == versions


@pytest.mark.long
@pytest.mark.timeout(120)
def test_batch_without_rows_is_skipped(site: Site) -> None:
    site.post(*some_rows(0, 1))
    site.post()
    site.load()
    site.post()
    assert site.load().rows == 0
    site.post(*some_rows(1, 1))
    site.load()
    assert_stored_once(site, some_rows(0, 2))


def test_all_columns_are_in_the_lake_as_they_were_posted(site: Site) -> None:
    whole = view(
        path="/caf%C3%A9",
        ts=datetime(2026, 9, 30, 23, 59, 59, 999_999, tzinfo=UTC),
        traffic="ai",
        agent="GPTBot",
        operator="OpenAI",
        purpose="training",
        rule="ai:GPTBot",
        user_agent="GPTBot/1.3 \N{PILE OF POO} \"quoted\" 'quoted'\\",
        browser="b",
        os="o",
        device="d",
        referrer="https://example.com/?a=b",
        referrer_host="example.com",
        utm_source="news=1&2",
        format="markdown",
        status=304,
        source="server",
        event_id="event",
    )
    site.post(whole)
    site.load()
    assert site.stored(HITS_TABLE) == [{**whole, "date": date(2026, 9, 30)}]


def test_hot_log_restored_from_an_older_copy_is_refused_and_nothing_is_loaded(site: Site, tmp_path: Path) -> None:
    site.post(view(event_id="old"))
    site.hot.close()
    shutil.copy(site.hot_log, tmp_path / "copy")
    site.hot = batches.connect(site.hot_log)
    site.post(view(event_id="new"))
    site.load()
    site.hot.close()
    shutil.copy(tmp_path / "copy", site.hot_log)
    site.hot = batches.connect(site.hot_log)
    with pytest.raises(HotLogBehind, match="which has its batches up to 2; its own end at 1: restore"):
        site.load()
    assert site.event_ids() == ["new", "old"]


@pytest.mark.long
@pytest.mark.timeout(120)
def test_new_lake_beside_an_old_hot_log_is_loaded_after_the_loss_is_accepted(site: Site) -> None:
    site.post(view(event_id="a"))
    site.post(view(event_id="b"))
    site.load()
    site.expire()
    shutil.rmtree(site.root)
    site.root.mkdir()
    delta_table.create(site.root)
    with pytest.raises(DataIncomplete):
        site.load()
    durability.accept_losses(site.hot, site.root, 0)
    assert site.load() == Loaded(rows=0, commits=0)
    site.post(view(event_id="c"))
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    assert site.event_ids() == ["c"]


@pytest.mark.long
def test_new_hot_log_in_place_of_a_lost_one_is_loaded_from_its_first_batch(site: Site) -> None:
    site.post(view(event_id="a"))
    site.post(view(event_id="b"))
    site.load()
    site.hot.close()
    site.hot_log.unlink()
    site.hot = batches.connect(site.hot_log)
    site.post(view(event_id="c"))
    assert site.load() == Loaded(rows=1, commits=len(TABLES))
    assert site.event_ids() == ["a", "b", "c"]


@pytest.mark.long
def test_two_nodes_load_into_one_lake_each_with_its_own_offset(site: Site, tmp_path: Path) -> None:
    other = batches.connect(tmp_path / "other.sqlite")
    for number in range(3):
        batches.append(other, pa.RecordBatch.from_pylist([view(event_id=f"other-{number}")], HOT), 0)
    site.post(view(event_id="one"))
    site.load()
    load.load(other, site.root, 0)
    site.post(view(event_id="two"))
    site.load()
    load.load(other, site.root, 0)
    assert site.event_ids() == ["one", "other-0", "other-1", "other-2", "two"]
    assert site.daily_views() == {key(view()): 5}
    assert site.state(HITS_TABLE).offset == 2
    assert delta_table.offset(site.table(HITS_TABLE), batches.node_id(other)) == 3
    other.close()


def test_load_times_out_on_the_lock(site: Site) -> None:
    site.post(view())
    with write_lock(site.root, 0), pytest.raises(LakeBusy, match=f"the lock of {site.root} was not free within 0 s"):
        site.load()
    assert site.load().rows == 1


LOAD_MANY_TIMES = """
import sys
from warehouse.lake.roots import LocalPath
from warehouse.hotlog import batches
from warehouse.maintenance.load import load

folder = LocalPath(sys.argv[1])
hot = batches.connect(folder / "hot.sqlite")
print("ready", flush=True)
while sys.stdin.readline():
    load(hot, folder / "lake", 60)
    print("loaded", flush=True)
"""


@pytest.mark.long
def test_two_loaders_at_once_count_every_hit_once(site: Site) -> None:
    command = [sys.executable, "-c", LOAD_MANY_TIMES, site.root.parent]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    loaders = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(2)]
    assert [loader.stdout.readline() for loader in loaders] == ["ready\n"] * 2
    rows = some_rows(0, 60)
    for first in range(0, 60, 5):
        site.post(*rows[first : first + 5])
        for loader in loaders:
            loader.stdin.write("load\n")
    assert [loader.communicate() for loader in loaders] == [("loaded\n" * 12, None)] * 2
    assert [loader.returncode for loader in loaders] == [0, 0]
    assert_stored_once(site, rows)


@pytest.mark.long
@pytest.mark.parametrize("name", ["with a space", "it's", "two\"quotes'", "caf\xe9", "a*b?c", "#1"])
def test_data_folder_may_have_an_odd_name(tmp_path: Path, name: str) -> None:
    site = Site(tmp_path / name)
    reports = site.reports()
    for _ in range(2):
        site.post(view(), view(traffic="ai", agent="GPTBot"))
        site.load()
    assert site.compact(1) == compact.Compacted(partitions=1, files_before=2, files_after=1)
    ranking = rank(reports, "site", NOON - DAY / 4, NOON + DAY, NOON)
    assert (ranking.human, ranking.ai) == (2, 2)
    reports.close()
    site.close()


instants = st.datetimes(timezones=st.just(UTC))
hot_rows = st.builds(
    view,
    path=st.sampled_from(["/", "/a", "/a%2Fb", "/a'b"]),
    ts=instants | st.sampled_from([datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), NOON]),
    project_id=st.sampled_from(["site", "other"]),
    traffic=st.sampled_from(["human", "ai", "bot"]),
    agent=st.none() | st.sampled_from(["GPTBot", ""]),
)


@pytest.mark.long
@settings(max_examples=rounds(100))
@given(st.lists(hot_rows, min_size=1))
def test_rows_have_their_utc_day(rows: list[Row]) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / HITS_TABLE.name).mkdir()
        written = staging.write(LocalPath(folder), HITS_TABLE, pa.Table.from_pylist(rows, HOT))
        stored = [(file.partition, row) for file in written for row in pq.ParquetFile(file.path).read().to_pylist()]
    assert [day for day, _ in stored] == [row["ts"].date().isoformat() for _, row in stored]
    assert Counter(key(row) for _, row in stored) == Counter(map(key, rows))


@pytest.mark.long
@pytest.mark.parametrize("table", ["hits", "requests"])
def test_load_is_lake_busy_if_another_node_has_loaded_the_same_batches_meanwhile(tmp_path: Path, table: str) -> None:
    """A node that is paused before a commit loses the lake's lock, and its commit is refused."""
    rows = some_rows(0, 3)

    def load_elsewhere(step: str) -> None:
        if step == f"before commit of {table}":
            with closing(batches.connect(site.hot_log)) as other:
                catch_up.catch_up(other, site.root)

    with closing(Site(tmp_path / "data")) as site:
        site.post(*rows)
        with pytest.raises(LakeBusy, match="another node wrote to the same table"):
            site.load(load_elsewhere)
        assert_stored_once(site, rows)
