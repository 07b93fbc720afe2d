"""Chunks of hot batches: each commit has rows or staged files alone, in the order of the batches, up to its limits."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.warehouse.site import DAY, NOON, Row, Site, asked, event, loads, some_rows, view
from warehouse.errors import BatchDamaged
from warehouse.hotlog import batches
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.maintenance import catch_up
from warehouse.maintenance.catch_up import Loaded
from warehouse.tables import HITS_TABLE, TABLES, Spec


def catch_up_with(site: Site, on_point: catch_up.OnPoint = lambda point: None) -> Loaded:
    with write_lock(site.root, 0):
        return catch_up.catch_up(site.hot, site.root, on_point)


def sizes(site: Site) -> list[int]:
    """Return the numbers of rows of the chunks in which the waiting batches are committed."""
    offset, end, counts = 0, batches.last_id(site.hot), []
    while (chunk := catch_up._chunk(site.hot, offset, end)).last_id > offset:
        counts.append(chunk.hits)
        offset = chunk.last_id
    assert offset == end
    return counts


def test_hits_posted_during_a_commit_are_left_to_the_next_call(site: Site) -> None:
    site.post(view())
    posted: list[str] = []

    def post(step: str) -> None:
        if step.startswith("before commit"):
            site.post(view(f"/{step}"))
            posted.append(step)

    assert catch_up_with(site, post) == Loaded(rows=1, commits=len(TABLES))
    assert {site.state(spec).offset for spec in TABLES} == {1}
    assert catch_up_with(site) == Loaded(rows=len(posted), commits=len(TABLES))
    assert len(site.stored(HITS_TABLE)) == 1 + len(posted)


@pytest.mark.long
def test_rows_and_staged_files_are_in_separate_commits_in_the_order_of_the_batches(site: Site) -> None:
    rows = some_rows(0, 21)
    for first, is_staged in enumerate([False, False, True, True, False, True, False]):
        add = site.stage if is_staged else lambda chosen: site.post(*chosen)
        add(rows[3 * first : 3 * first + 3])
    assert sizes(site) == [6, 6, 3, 3, 3]
    assert catch_up_with(site) == Loaded(rows=21, commits=5 * len(TABLES))
    assert site.event_ids() == [row["event_id"] for row in rows]
    assert site.faults() == []


@pytest.mark.parametrize("spec", TABLES)
def test_batch_whose_staged_file_is_missing_is_named_and_no_table_gets_a_commit(site: Site, spec: Spec) -> None:
    for first in (0, 3):
        site.stage([*some_rows(first, 3), view(traffic="bot", status=404)], [loads()], [asked()], [event()])
    (_, (_, staged)) = batches.staged_above(site.hot, 0)
    lost = Path(staged.files(spec, site.root / spec.name)[0].path)
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(BatchDamaged, match=f"batch 2 in .*hot.sqlite names {lost}, which is missing.*restore"):
        site.load()
    assert {site.state(each).offset for each in TABLES} == {0}
    lost.write_bytes(content)
    site.load()
    assert len(site.stored(HITS_TABLE)) == 6


@pytest.mark.parametrize(
    ("limit", "value", "expected"),
    [
        ("COMMIT_BATCHES_MAX", 2, [10, 10, 5]),
        ("COMMIT_ROWS_MAX", 11, [15, 10]),
        ("COMMIT_ROWS_MAX", 10, [10, 10, 5]),
        ("COMMIT_BYTES_MAX", 1, [5, 5, 5, 5, 5]),
    ],
)
def test_commit_ends_with_the_batch_that_reaches_a_limit(
    site: Site, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, expected: list[int]
) -> None:
    for _ in range(5):
        site.post(*some_rows(0, 5))
    monkeypatch.setattr(catch_up, limit, value)
    assert sizes(site) == expected


def test_chunk_ends_with_the_last_batch_of_the_call(site: Site) -> None:
    for _ in range(3):
        site.post(view())
    assert catch_up._chunk(site.hot, 0, 2).last_id == 2
    assert catch_up._chunk(site.hot, 2, 2).last_id == 2
    assert catch_up._chunk(site.hot, 1, 3).hits == 2


def test_rows_of_a_file_are_in_the_order_of_the_table(site: Site) -> None:
    rows: list[Row] = [
        view(path, NOON + day * DAY, project_id=project)
        for path in ("/b", "/a")
        for day in (1, 0)
        for project in ("z", "a")
    ]
    site.post(*rows)
    assert catch_up_with(site) == Loaded(rows=8, commits=len(TABLES))
    files = delta_table.list_files(site.table(HITS_TABLE), HITS_TABLE)
    assert sorted(file.partition for file in files) == ["2026-09-15", "2026-09-16"]
    for file in files:
        ordered = pq.ParquetFile(file.path).read().to_pylist()
        assert [row["ts"].date().isoformat() for row in ordered] == [file.partition] * 4
        places = [tuple(row[name] for name in HITS_TABLE.order) for row in ordered]
        assert places == sorted(places)


def test_load_of_another_node_while_the_tables_are_opened_is_no_loss(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_table = delta_table.open_table

    def open_after_another_load(*arguments: Any) -> DeltaTable:
        monkeypatch.undo()
        site.post(view("/b"))
        assert site.load().rows == 2
        return open_table(*arguments)

    site.post(view("/a"))
    monkeypatch.setattr(delta_table, "open_table", open_after_another_load)
    assert catch_up.catch_up(site.hot, site.root) == Loaded(rows=0, commits=0)  # its node lost the lake's lock
    assert site.faults() == []
