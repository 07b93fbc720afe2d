"""The benchmark of reports and of memory, on a small lake: every program gives the same numbers."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import export, lake, memory
from benchmarks.lake import Lake
from benchmarks.peers import goatcounter

pytestmark = pytest.mark.night


def test_export_measures_every_report(generated: Lake) -> None:
    figures = {each.name: each for each in export.measure(generated, runs=2, requests=2, lead_s=0)}
    assert all(each.median > 0 for each in figures.values() if each.unit in {"ms", "s", "ratio"})
    assert [len(figures[f"breakdown by {dimension}"].runs) for dimension in export.DIMENSIONS] == [2] * 14
    assert figures["rows of the CSV"].median == generated.shape.paths
    assert {"page: DuckDB over the raw rows", "page: SQLite as GoatCounter stores it"} < set(figures)
    assert not list(generated.folder.glob("copy-*"))


def test_wrong_count_of_a_peer_ends_the_export(generated: Lake, tmp_path: Path) -> None:
    copy = lake.clone(generated, tmp_path)
    goatcounter.build(copy.data, tmp_path / "goatcounter.sqlite")
    with closing(sqlite3.connect(tmp_path / "goatcounter.sqlite")) as database, database:
        database.execute("UPDATE hit_counts SET total = total + 1")
    with pytest.raises(AssertionError, match="SQLite as GoatCounter"):
        export.measure(copy, runs=1, requests=1, lead_s=0)


def test_memory_is_measured_for_each_size_of_the_cache(generated: Lake) -> None:
    figures = memory.read_projects(generated, caches_mib=(1, 128), rounds=1)
    assert [each.name.partition(": ")[0] for each in figures[::2]] == [
        "3 projects, cache of 1 MiB",
        "3 projects, cache of 128 MiB",
    ]
    assert all(each.median > 10 for each in figures)
