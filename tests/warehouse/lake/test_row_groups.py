"""Every file of the lake has row groups of limited size, whichever task wrote it and however long its texts are."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.site import NOON, Site, view
from warehouse.lake import delta_table, row_groups, staging
from warehouse.lake.row_groups import BYTES_MAX, ROWS_MAX
from warehouse.maintenance import erase
from warehouse.maintenance import rollups as monthly
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE

LONG = 2_000
COUNT = 12_000
"""Number of long paths: 24 MB."""


def texts(lengths: list[int]) -> pa.Table:
    return pa.table(
        {"text": pa.array(["x" * each for each in lengths], pa.string()), "length": pa.array(lengths, pa.int32())}
    )


@pytest.mark.long
@given(st.lists(st.lists(st.integers(0, 100), max_size=4), max_size=4))
def test_groups_have_all_rows_in_order_and_are_as_large_as_allowed(tables: list[list[int]]) -> None:
    groups = [group["length"].to_pylist() for group in row_groups.split(map(texts, tables), bytes_max=200)]
    sizes = [[length + 4 for length in group] for group in groups]
    assert [length for group in groups for length in group] == [length for table in tables for length in table]
    assert all(sum(group) <= 200 for group in sizes)
    assert all(sum(group) + following[0] > 200 for group, following in pairwise(sizes))


def test_groups_of_short_rows_have_the_maximum_of_rows() -> None:
    tables = [texts([1] * 50_000)] * 3
    assert [group.num_rows for group in row_groups.split(tables)] == [ROWS_MAX, ROWS_MAX, 150_000 - 2 * ROWS_MAX]


def test_text_that_many_rows_share_is_counted_by_its_index() -> None:
    shared = pa.table({"text": pa.repeat("x" * 300, 50_000).dictionary_encode()})
    assert shared.num_rows * 300 > BYTES_MAX
    assert [group.num_rows for group in row_groups.split([shared])] == [50_000]


def test_row_that_is_larger_than_a_group_is_alone() -> None:
    assert [group.num_rows for group in row_groups.split([texts([1, BYTES_MAX, 1, 1])])] == [1, 1, 2]


def test_rows_and_paths_of_a_project_are_those_of_row_groups_that_may_have_it(tmp_path: Path) -> None:
    file = tmp_path / "groups.parquet"
    rows = [("a", "/a"), ("a", "/b"), ("a", "/c"), ("a", "/c"), ("a", "/c"), ("b", "/a")]
    projects, paths = zip(*rows, strict=True)
    pq.write_table(pa.table({"project_id": projects, "path": paths}), file, row_group_size=2, use_dictionary=False)
    of_group = row_groups.path_bytes(str(file), "b")
    assert row_groups.path_bytes(str(file), "a") == 3 * of_group > 0
    assert [row_groups.path_rows(str(file), "a", path) for path in ("/a", "/b", "/c", "/d")] == [4, 4, 4, 0]
    assert row_groups.path_rows(str(file), "c", "/a") == 0


def largest(folder: Path) -> int:
    """Return the size of the largest row group in the files of a folder, in bytes, without compression."""
    files = [pq.read_metadata(file) for file in folder.rglob("*.parquet")]
    assert files
    return max(file.row_group(number).total_byte_size for file in files for number in range(file.num_row_groups))


def long_views(first: int, count: int, **columns: Any) -> list[dict[str, Any]]:
    return [view(f"/{number:06}".ljust(LONG, "x"), NOON, **columns) for number in range(first, first + count)]


def prepare(site: Site) -> None:
    """Load a day of long paths in two files, the second of an agent."""
    for part in range(2):
        site.post(*long_views(part * COUNT // 2, COUNT // 2, **({"traffic": "ai", "agent": "GPTBot"} if part else {})))
        site.load()


@pytest.mark.long
def test_loads_compactions_rollups_and_deletions_write_small_groups(site: Site) -> None:
    hits = site.root / "hits"
    limit = BYTES_MAX + 200_000  # of headers of pages
    assert largest(hits) <= limit
    site.compact()
    monthly.rebuild(site.hot, site.root, site.share, NOON.date(), 0)
    erase.erase_hits(site.hot, site.root, site.share, erase.Chosen("another"), 0)
    deleted = delta_table.delete(site.table(HITS_TABLE), "path < '/000001'", 4_000)
    assert deleted == 1
    assert max(map(largest, (hits, site.root / "rollups"))) <= limit


@pytest.mark.long
def test_compaction_rewrites_large_groups_of_an_older_release_once(site: Site) -> None:
    site.compact()
    delta_table.delete(site.table(HITS_TABLE), "path < '/000001'", ROWS_MAX)  # limited in rows alone
    assert [site.compact(small_files_max=16).partitions for _ in range(2)] == [1, 0]
    (file,) = site.state(HITS_TABLE).files
    assert (file.rows, row_groups.has_large(file.path)) == (COUNT - 1, False)


@pytest.mark.long
def test_staged_group_has_only_its_own_texts_in_its_dictionary(tmp_path: Path) -> None:
    site = Site(tmp_path)
    rows = pa.Table.from_pylist(long_views(0, COUNT // 2) * 2, HOT)
    staged = staging.stage(site.root, {HITS_TABLE: rows})
    assert sum(file.rows for file in staged.tables["hits"]) == COUNT
    assert largest(site.root / "hits") <= BYTES_MAX + 200_000
    stored = duckdb.sql(f"SELECT count(*), count(DISTINCT path) FROM '{site.root}/hits/*/*.parquet'").fetchall()
    assert stored == [(COUNT, COUNT // 2)]
    site.close()


@pytest.mark.long
def test_rows_of_deletions_are_limited_by_the_average_row_of_the_files(site: Site) -> None:
    files = [file.path for file in site.state(HITS_TABLE).files]
    assert 3_000 <= row_groups.rows_for(files) <= BYTES_MAX // LONG
    assert row_groups.rows_for([]) == ROWS_MAX
