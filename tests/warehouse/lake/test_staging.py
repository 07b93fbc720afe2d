"""Rows that come as files: counted once they are named in the hot log, and moved into the tables by the loader."""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.warehouse.site import DAY, NOON, Row, Site, key, some_rows, view
from warehouse import doctor
from warehouse.errors import StagedTooLong
from warehouse.lake import delta_table, staging
from warehouse.maintenance import catch_up, compact
from warehouse.maintenance.catch_up import Loaded
from warehouse.schema import DAILY_VIEWS, HITS, HOT


class Died(Exception):
    pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "data")
    yield made
    made.close()


def counted(site: Site) -> tuple[int, int]:
    """Human and AI views, as an export has them."""
    reports = site.reports()
    ranking = reports.ranking("site", NOON - DAY, NOON + 9 * DAY, NOON)
    reports.close()
    return ranking.human, ranking.ai


def faults(site: Site) -> list[str]:
    return [finding.fault for finding in doctor.examine(site.hot_log, site.root, site.spill, 0) if finding.fault]


def test_staged_rows_are_counted_before_and_after_the_loader_took_them(site: Site) -> None:
    rows = some_rows(0, 40)
    site.stage(rows)
    assert counted(site) == (10, 20)
    assert site.event_ids() == []
    assert site.load() == Loaded(rows=40, commits=2)
    assert counted(site) == (10, 20)
    assert site.event_ids() == [row["event_id"] for row in rows]
    assert site.daily_views() == Counter(map(key, rows))
    assert faults(site) == []


def test_staged_files_are_on_the_disk_once_they_were_waited_for(site: Site, synced: set[Path]) -> None:
    """With the folders that name them, also of a partition that is new."""
    staged = staging.stage(site.root, pa.Table.from_pylist(some_rows(0, 40), HOT))
    staging.sync(site.root, staged)
    tables = [site.root / spec.name for spec in delta_table.TABLES]
    files = {Path(file.path) for spec in delta_table.TABLES for file in staged.files(spec, site.root / spec.name)}
    assert len(files) == 4
    assert files | {file.parent for file in files} | set(tables) <= synced


def test_staged_files_that_no_batch_names_are_not_counted_and_leave_the_disk(site: Site) -> None:
    staging.stage(site.root, pa.Table.from_pylist(some_rows(0, 4), HOT))
    assert counted(site) == (0, 0)
    age(site)
    compact.vacuum(site.hot, site.root, 0)
    assert list(site.root.rglob("staged-*.parquet")) == []


def test_staged_files_that_wait_for_a_loader_outlive_a_vacuum(site: Site) -> None:
    site.stage(some_rows(0, 4))
    age(site)
    compact.vacuum(site.hot, site.root, 0)
    assert site.daily_views() == Counter(map(key, some_rows(0, 4)))
    assert faults(site) == []


def age(site: Site) -> None:
    """As if all files had been written before the grace of a vacuum began."""
    then_s = NOON.timestamp() - delta_table.GRACE_H * 7200
    for file in site.root.rglob("*.parquet"):
        os.utime(file, (then_s, then_s))


def test_rows_and_files_are_loaded_in_the_order_of_their_batches(site: Site) -> None:
    rows = some_rows(0, 50)
    site.post(*rows[:10])
    site.stage(rows[10:20])
    site.stage(rows[20:30])
    site.post(*rows[30:40])
    site.stage(rows[40:])
    assert counted(site) == (13, 25)
    assert site.load() == Loaded(rows=50, commits=8)
    assert site.event_ids() == [row["event_id"] for row in rows]
    assert site.daily_views() == Counter(map(key, rows))
    assert faults(site) == []


@pytest.mark.parametrize("step", catch_up.STEPS)
@pytest.mark.parametrize("passes", [0, 1])
def test_every_row_is_counted_once_after_a_loader_died_at_any_step(site: Site, step: str, passes: int) -> None:
    rows = some_rows(0, 50)
    site.post(*rows[:20])
    site.stage(rows[20:])
    with pytest.raises(Died):
        site.load(dying_at(step, passes))
    assert counted(site) == (13, 25)
    site.load()
    assert counted(site) == (13, 25)
    assert site.event_ids() == [row["event_id"] for row in rows]
    assert faults(site) == []


def dying_at(step: str, passes: int) -> catch_up.OnStep:
    """Fail at the step, after passing it so many times."""
    left = [passes]

    def on_step(name: str) -> None:
        if name == step:
            left[0] -= 1
            if left[0] < 0:
                raise Died

    return on_step


def test_file_is_as_the_table_says_and_in_its_order(site: Site) -> None:
    rows = [
        view(path=path, ts=NOON + timedelta(seconds=second), user_agent=f"agent {path} {second}", status=200)
        for second in (2, 1)
        for path in ("/b", "/ä", "/a")
    ]
    site.stage(rows)
    site.load()
    hits = DeltaTable(str(site.root / "hits")).to_pyarrow_table()
    assert hits.schema.equals(HITS)
    assert [(row["path"], row["ts"].second) for row in hits.to_pylist()] == [
        ("/a", 1), ("/a", 2), ("/b", 1), ("/b", 2), ("/ä", 1), ("/ä", 2),
    ]  # fmt: skip
    assert DeltaTable(str(site.root / "daily_views")).to_pyarrow_table().schema.equals(DAILY_VIEWS)


@pytest.mark.parametrize("seconds", [(1, 2), (2, 1)])
def test_files_are_sorted_by_text_in_whatever_order_the_rows_come(site: Site, seconds: tuple[int, int]) -> None:
    rows = [
        view(path=path, ts=NOON + timedelta(days=day, seconds=second), agent=agent, user_agent=f"{day} {second} {path}")
        for day in range(2)
        for second in seconds
        for path in ("/b", "/", "/ä", "/a/b", "/a")
        for agent in ("GPTBot", None, "Applebot")
    ]
    staged = staging.stage(site.root, pa.Table.from_pylist(rows, HOT))
    files = [pq.read_table(site.root / "hits" / file.path).to_pylist() for file in staged.hits]
    assert [[(row["path"], row["ts"]) for row in file] for file in files] == [
        sorted((row["path"], row["ts"]) for row in rows if row["ts"].date() == day)
        for day in sorted({row["ts"].date() for row in rows})
    ]
    assert all(row["user_agent"].endswith(f"{row['ts'].second} {row['path']}") for file in files for row in file)
    (counted,) = (pq.read_table(site.root / "daily_views" / file.path).to_pylist() for file in staged.daily_views)
    assert [(row["path"], row["date"]) for row in counted] == sorted((row["path"], row["date"]) for row in counted)
    found = {(row["path"], row["date"], row["agent"]): row["views"] for row in counted}
    assert found == Counter((row["path"], row["ts"].date(), row["agent"]) for row in rows)
    assert len(counted) == len(found)


def test_many_paths_and_agents_are_in_order_and_counted(site: Site) -> None:
    """More than are sorted at once."""
    chance = random.Random(1)
    rows = [
        view(
            path=f"/{chance.randrange(6_000)}", agent=f"agent {chance.randrange(5_000)}", ts=NOON + timedelta(seconds=n)
        )
        for n in chance.choices(range(200_000), k=9_000)
    ] * 2
    staged = staging.stage(site.root, pa.Table.from_pylist(rows, HOT))
    for file in staged.hits:
        found = [(row["path"], row["ts"]) for row in pq.read_table(site.root / "hits" / file.path).to_pylist()]
        assert found == sorted(found)
    assert sum(file.rows for file in staged.hits) == len(rows)
    assert sum(file.rows for file in staged.daily_views) == len({key(row) for row in rows})
    site.stage(rows)
    site.load()
    assert site.daily_views() == Counter(map(key, rows))


def test_days_and_months_go_into_files_of_their_own(site: Site) -> None:
    end_of_month = NOON.replace(day=30, hour=23, minute=59, second=59, microsecond=999_999)
    rows = [view(ts=end_of_month), view(ts=end_of_month + timedelta(microseconds=1)), view(ts=NOON)]
    site.stage(rows)
    site.load()
    assert sorted(file.partition for file in site.state(delta_table.HITS_TABLE).files) == [
        "2026-09-15", "2026-09-30", "2026-10-01",
    ]  # fmt: skip
    assert sorted(file.partition for file in site.state(delta_table.DAILY_VIEWS_TABLE).files) == ["2026-09", "2026-10"]
    assert site.daily_views() == Counter(map(key, rows))


def test_texts_may_come_as_dictionaries(site: Site) -> None:
    rows: list[Row] = [view(path=f"/{n % 3}", agent="GPTBot" if n % 2 else None, user_agent=f"u{n}") for n in range(30)]
    plain = pa.Table.from_pylist(rows, HOT)
    encoded = pa.table(
        {
            name: column.dictionary_encode() if pa.types.is_string(column.type) else column
            for name, column in zip(plain.column_names, plain.columns, strict=True)
        }
    )
    with_unused = encoded.slice(5, 20)
    staged = staging.stage(site.root, with_unused)
    assert [file.rows for file in staged.hits] == [20]
    assert sum(file.rows for file in staged.daily_views) == 6
    site.stage(rows[5:25])
    site.load()
    assert site.daily_views() == Counter(map(key, rows[5:25]))
    assert sorted(row["user_agent"] for row in site.stored(delta_table.HITS_TABLE)) == sorted(
        f"u{n}" for n in range(5, 25)
    )


def test_files_that_a_vacuum_may_take_are_not_named_any_more(site: Site) -> None:
    staged = staging.stage(site.root, pa.Table.from_pylist(some_rows(0, 4), HOT))
    staging.require_fresh(site.root, staged)
    half_s = time.time() - delta_table.GRACE_H * 1800 - 60
    for file in site.root.rglob("staged-*.parquet"):
        os.utime(file, (half_s, half_s))
    with pytest.raises(StagedTooLong, match="run the command again"):
        staging.require_fresh(site.root, staged)
    for file in site.root.rglob("staged-*.parquet"):
        file.unlink()
    with pytest.raises(StagedTooLong, match="run the command again"):
        staging.require_fresh(site.root, staged)
