"""Staged files: their rows count once a batch of the hot log names the files, which the loader adds to the tables."""

import os
import random
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.rounds import seeded, some
from tests.warehouse.site import DAY, NOON, Row, Site, key, rank, some_rows, view
from warehouse.errors import StagedTooLong
from warehouse.lake import delta_table, staging
from warehouse.maintenance import catch_up, compact
from warehouse.maintenance.catch_up import Loaded
from warehouse.schema import HITS, HOT, REQUESTS
from warehouse.tables import ASSET_LOADS_TABLE, HITS_TABLE, REQUESTS_TABLE, TABLES


def human_and_ai_views(site: Site) -> tuple[int, int]:
    """Return the number of human views and of AI views in a report."""
    reports = site.reports()
    ranking = rank(reports, "site", NOON - DAY, NOON + 9 * DAY, NOON)
    reports.close()
    return ranking.human, ranking.ai


@pytest.mark.long
def test_staged_rows_are_counted_before_and_after_they_are_loaded(site: Site) -> None:
    rows = some_rows(0, 40)
    site.stage(rows)
    assert human_and_ai_views(site) == (10, 20)
    assert site.event_ids() == []
    assert site.load() == Loaded(rows=40, commits=len(TABLES))
    assert human_and_ai_views(site) == (10, 20)
    assert site.event_ids() == [row["event_id"] for row in rows]
    assert site.daily_views() == Counter(map(key, rows))
    assert site.faults() == []


def test_sync_waits_for_staged_files_and_their_folders(site: Site, synced: set[Path]) -> None:
    """Stage rows of new partitions, whose folders are new too."""
    staged = staging.stage(site.root, {HITS_TABLE: pa.Table.from_pylist(some_rows(0, 40), HOT)})
    staging.sync(site.root, staged)
    files = {Path(file.path) for spec in TABLES for file in staged.files(spec, site.root / spec.name)}
    assert len(files) == 3
    assert files | {file.parent for file in files} | {file.parents[1] for file in files} | {site.root} <= synced


@pytest.mark.long
def test_staged_files_that_no_batch_names_are_not_counted_and_are_vacuumed(site: Site) -> None:
    staging.stage(site.root, {HITS_TABLE: pa.Table.from_pylist(some_rows(0, 4), HOT)})
    assert human_and_ai_views(site) == (0, 0)
    age_files(site)
    compact.vacuum(site.hot, site.root, 0)
    assert list(site.root.rglob("staged-*.parquet")) == []


def test_vacuum_does_not_remove_staged_files_that_wait_for_the_loader(site: Site) -> None:
    site.stage(some_rows(0, 4))
    age_files(site)
    compact.vacuum(site.hot, site.root, 0)
    assert site.daily_views() == Counter(map(key, some_rows(0, 4)))
    assert site.faults() == []


def age_files(site: Site) -> None:
    """Set the modification time of all files to twice the grace period of a vacuum before NOON."""
    then_s = NOON.timestamp() - delta_table.GRACE_H * 7200
    for file in site.root.rglob("*.parquet"):
        os.utime(file, (then_s, then_s))


@pytest.mark.long
def test_loader_killed_at_any_step_counts_every_row_once(site: Site, tmp_path: Path) -> None:
    rows = some_rows(0, 50)
    site.post(*rows[:20])
    site.stage(rows[20:])
    copies = site.copies(tmp_path / "copies", site.load)
    assert Counter(step for step, _ in copies) == dict.fromkeys(catch_up.POINTS, 2)
    for _, folder in some(seeded(1), copies, len(catch_up.POINTS)):
        with closing(Site(folder, is_new=False)) as copied:
            assert human_and_ai_views(copied) == (13, 25)
            copied.load()
            assert human_and_ai_views(copied) == (13, 25)
            assert copied.event_ids() == [row["event_id"] for row in rows]
            assert copied.faults() == []


@pytest.mark.long
def test_interrupted_loader_counts_every_row_once_when_it_loads_again_on_its_connection(site: Site) -> None:
    """Interrupt the loader after its commit to the first table: the offsets of the tables then differ."""
    rows = some_rows(0, 50)
    site.post(*rows[:20])
    site.stage(rows[20:])

    def interrupt(point: str) -> None:
        if point == f"before commit of {TABLES[1].name}":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        site.load(interrupt)
    assert human_and_ai_views(site) == (13, 25)
    site.load()
    assert human_and_ai_views(site) == (13, 25)
    assert site.event_ids() == [row["event_id"] for row in rows]
    assert site.waiting() == 0
    assert site.faults() == []


def test_file_has_the_schema_of_its_table_and_is_sorted(site: Site) -> None:
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
    assert DeltaTable(str(site.root / "requests")).to_pyarrow_table().schema.equals(REQUESTS)


@pytest.mark.parametrize("seconds", [(1, 2), (2, 1)])
def test_files_are_sorted_for_rows_in_any_order(site: Site, seconds: tuple[int, int]) -> None:
    rows = [
        view(path=path, ts=NOON + timedelta(days=day, seconds=second), agent=agent, user_agent=f"{day} {second} {path}")
        for day in range(2)
        for second in seconds
        for path in ("/b", "/", "/ä", "/a/b", "/a")
        for agent in ("GPTBot", None, "Applebot")
    ]
    staged = staging.stage(site.root, {HITS_TABLE: pa.Table.from_pylist(rows, HOT)})
    files = [pq.read_table(site.root / "hits" / file.path).to_pylist() for file in staged.tables["hits"]]
    assert [[(row["path"], row["ts"]) for row in file] for file in files] == [
        sorted((row["path"], row["ts"]) for row in rows if row["ts"].date() == day)
        for day in sorted({row["ts"].date() for row in rows})
    ]
    assert all(row["user_agent"].endswith(f"{row['ts'].second} {row['path']}") for file in files for row in file)


@pytest.mark.parametrize("range_us", [65_535, 65_536, 70_000])
def test_files_are_sorted_for_times_in_a_range_of_about_16_bits(site: Site, range_us: int) -> None:
    times = [NOON + timedelta(microseconds=us) for us in (range_us, 40_000, 0)]
    staged = staging.stage(site.root, {HITS_TABLE: pa.Table.from_pylist([view(ts=ts) for ts in times], HOT)})
    (hits,) = (pq.read_table(site.root / "hits" / file.path) for file in staged.tables["hits"])
    assert hits["ts"].to_pylist() == times[::-1]


def test_visitors_of_all_of_64_bits_are_sorted() -> None:
    visitors = [(1 << 63) - 1, -5, -(1 << 63), 70_000, 3]
    key = {"project_id": "site", "date": NOON.date(), "loads": 1}
    rows = pa.Table.from_pylist([key | {"visitor": each} for each in visitors], ASSET_LOADS_TABLE.schema)
    assert staging.table_rows(ASSET_LOADS_TABLE, rows)["visitor"].to_pylist() == sorted(visitors)


@pytest.mark.long
def test_many_paths_and_agents_are_sorted(site: Site) -> None:
    generator = random.Random(1)
    rows = [
        view(
            path=f"/{generator.randrange(6_000)}",
            agent=f"agent {generator.randrange(5_000)}",
            ts=NOON + timedelta(seconds=n),
        )
        for n in generator.choices(range(200_000), k=9_000)
    ] * 2
    staged = staging.stage(site.root, {HITS_TABLE: pa.Table.from_pylist(rows, HOT)})
    for file in staged.tables["hits"]:
        order = [(row["path"], row["ts"]) for row in pq.read_table(site.root / "hits" / file.path).to_pylist()]
        assert order == sorted(order)
    assert sum(file.rows for file in staged.tables["hits"]) == len(rows)
    site.stage(rows)
    site.load()
    assert site.daily_views() == Counter(map(key, rows))


def test_each_day_of_hits_and_each_month_of_errors_has_its_own_file(site: Site) -> None:
    end_of_month = NOON.replace(day=30, hour=23, minute=59, second=59, microsecond=999_999)
    rows = [view(ts=end_of_month), view(ts=end_of_month + timedelta(microseconds=1)), view(ts=NOON)]
    site.stage([*rows, *({**row, "traffic": "bot", "status": 404} for row in rows)])
    site.load()
    assert sorted(file.partition for file in site.state(HITS_TABLE).files) == [
        "2026-09-15", "2026-09-30", "2026-10-01",
    ]  # fmt: skip
    assert sorted(file.partition for file in site.state(REQUESTS_TABLE).files) == ["2026-09", "2026-10"]
    assert site.daily_views() == Counter(map(key, rows))


def test_dictionary_encoded_texts_are_staged(site: Site) -> None:
    rows: list[Row] = [view(path=f"/{n % 3}", agent="GPTBot" if n % 2 else None, user_agent=f"u{n}") for n in range(30)]
    plain = pa.Table.from_pylist(rows, HOT)
    encoded = pa.table(
        {
            name: column.dictionary_encode() if pa.types.is_string(column.type) else column
            for name, column in zip(plain.column_names, plain.columns, strict=True)
        }
    )
    with_unused = encoded.slice(5, 20)
    staged = staging.stage(site.root, {HITS_TABLE: with_unused})
    assert [file.rows for file in staged.tables["hits"]] == [20]
    site.stage(rows[5:25])
    site.load()
    assert site.daily_views() == Counter(map(key, rows[5:25]))
    assert sorted(row["user_agent"] for row in site.stored(HITS_TABLE)) == sorted(f"u{n}" for n in range(5, 25))


def test_files_that_a_vacuum_may_remove_are_refused(site: Site) -> None:
    staged = staging.stage(site.root, {HITS_TABLE: pa.Table.from_pylist(some_rows(0, 4), HOT)})
    staging.require_fresh(staging.finish(site.root, staged))
    old_s = time.time() - delta_table.GRACE_H * 1800 - 60
    for file in site.root.rglob("staged-*.parquet"):
        os.utime(file, (old_s, old_s))
    with pytest.raises(StagedTooLong, match="run the command again"):
        staging.require_fresh(staging.finish(site.root, staged))
    next(site.root.rglob("staged-*.parquet")).unlink()
    with pytest.raises(StagedTooLong, match="run the command again"):
        staging.require_fresh(staging.finish(site.root, staged))
