"""Rows at the edge of a range are read once, in the columns of hot rows."""

import threading
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.query import edge_rows
from warehouse.query.result_cache import Measured, ResultCache
from warehouse.query.time_range import FIRST, TimeRange

HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
EDGE = TimeRange(NOON, NOON + 2 * HOUR)


def test_rows_of_the_edge_and_the_project_are_read_once(site: Site) -> None:
    site.post(
        view("/before", NOON - MICROSECOND),
        view("/first", NOON, browser="Firefox"),
        view("/last", NOON + 2 * HOUR - MICROSECOND, traffic="ai"),
        view("/after", NOON + 2 * HOUR),
        view("/first", NOON, project_id="another"),
    )
    site.load()
    files, cached = edge_rows.files_of(site.state(HITS_TABLE).files, EDGE), ResultCache(10_000_000)
    rows = edge_rows.read(site.database, cached, files, "site", EDGE)
    assert rows is not None
    assert rows.column_names == list(edge_rows.COLUMNS)
    assert list(zip(*(rows[name].to_pylist() for name in ("path", "traffic", "browser")), strict=True)) == [
        ("/first", "human", "Firefox"),
        ("/last", "ai", None),
    ]
    for file in files:
        Path(file.path).unlink()
    assert edge_rows.read(site.database, cached, files, "site", EDGE) is rows


def test_rows_of_several_edges_are_those_that_are_read_one_by_one(site: Site) -> None:
    site.post(*(view(f"/{hour}", NOON + hour * HOUR) for hour in range(40)), view("/", NOON, project_id="another"))
    site.load()
    files, together, one_by_one = site.state(HITS_TABLE).files, ResultCache(10_000_000), ResultCache(10_000_000)
    edges = [EDGE, TimeRange(NOON + HOUR, NOON + 3 * HOUR), TimeRange(NOON + 30 * HOUR, NOON + 31 * HOUR)]
    of_edges = [edge_rows.files_of(files, edge) for edge in edges]
    expected = [
        edge_rows.read(site.database, one_by_one, of_edge, "site", edge)
        for of_edge, edge in zip(of_edges, edges, strict=True)
    ]
    edge_rows.read_together(site.database, together, files, "site", edges)
    for file in files:
        Path(file.path).unlink()
    for of_edge, edge, rows in zip(of_edges, edges, expected, strict=True):
        read = edge_rows.read(site.database, together, of_edge, "site", edge)
        assert read is not None
        assert rows is not None
        assert read.sort_by("ts").to_pylist() == rows.sort_by("ts").to_pylist()
        assert read.num_rows == (edge.end - edge.start) / HOUR


def test_requests_of_one_new_range_read_its_edges_once(site: Site) -> None:
    site.post(*(view(f"/{hour}", NOON + hour * HOUR) for hour in range(40)))
    site.load()
    files, edges = site.state(HITS_TABLE).files, [EDGE, TimeRange(NOON + 30 * HOUR, NOON + 31 * HOUR)]
    cached, threads = Meeting(10_000_000), Meeting.THREADS
    with ThreadPoolExecutor(threads) as pool:
        reads = [
            pool.submit(edge_rows.read_together, site.database, cached, files, "site", edges) for _ in range(threads)
        ]
        for each in reads:
            each.result()
    assert sorted(map(str, cached.puts)) == sorted(
        str(edge_rows.key_of(edge_rows.files_of(files, edge), "site", edge)) for edge in edges
    )


class Meeting(ResultCache):
    """A cache that all threads have looked into before one of them reads."""

    THREADS = 4

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self.puts: list[Hashable] = []
        self._arrived = threading.Barrier(self.THREADS)

    def computing(self, key: Hashable) -> AbstractContextManager[None]:
        self._arrived.wait()
        return super().computing(key)

    def put(
        self,
        key: Hashable,
        result: Measured,
        owner: Hashable = None,
        *,
        is_costly: bool = False,
        evict_first: bool = False,
    ) -> None:
        self.puts.append(key)
        super().put(key, result, owner, is_costly=is_costly, evict_first=evict_first)


@pytest.mark.parametrize(("paths", "index"), [(127, pa.int8()), (128, pa.int16()), (129, pa.int16())])
def test_texts_have_the_narrowest_indices_that_suffice(site: Site, paths: int, index: pa.DataType) -> None:
    expected = [f"/{number:03}" for number in range(paths)]
    site.post(*(view(path, NOON) for path in [*expected, *expected]))
    site.load()
    files = edge_rows.files_of(site.state(HITS_TABLE).files, EDGE)
    rows = edge_rows.read(site.database, ResultCache(0), files, "site", EDGE)
    assert rows is not None
    assert rows["path"].type.index_type == index
    assert sorted(rows["path"].to_pylist()) == sorted([*expected, *expected])


def test_edge_of_days_without_files_has_no_rows(site: Site) -> None:
    rows = edge_rows.read(site.database, ResultCache(10_000_000), [], "site", EDGE)
    assert rows is not None
    assert (rows.num_rows, rows.column_names) == (0, list(edge_rows.COLUMNS))


def test_edge_with_too_many_rows_is_not_read(site: Site) -> None:
    site.post(view())
    site.load()
    (file,) = site.state(HITS_TABLE).files
    limit = 12 * edge_rows.ROWS_MAX  # two hours have a twelfth of the rows of a day
    cached = ResultCache(10_000_000)
    assert edge_rows.read(site.database, cached, [replace(file, rows=limit)], "site", EDGE) is not None
    assert edge_rows.read(site.database, cached, [replace(file, rows=limit + 12)], "site", EDGE) is None


def test_files_of_a_range_are_those_of_its_days(site: Site) -> None:
    site.post(*(view(ts=NOON + number * DAY) for number in range(4)))
    site.load()
    files = site.state(HITS_TABLE).files
    midnight = NOON + 12 * HOUR

    def days(time_range: TimeRange) -> list[str]:
        return sorted(file.partition for file in edge_rows.files_of(files, time_range))

    assert days(EDGE) == days(TimeRange(NOON, midnight)) == ["2026-09-15"]
    assert days(TimeRange(midnight, midnight + DAY + HOUR)) == ["2026-09-16", "2026-09-17"]
    assert days(TimeRange(NOON, NOON)) == days(TimeRange(FIRST, FIRST)) == []
