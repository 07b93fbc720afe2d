"""Rows of a month are read from its rollup once."""

from pathlib import Path

import duckdb
import pytest
from warehouse.report.dimensions import months

from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.test_rollup_counts import write_rollups
from tests.warehouse.site import DAY, NOON, view
from warehouse.query.result_cache import ResultCache
from warehouse.rollups import coverage

DAYS = ["2026-09-14", "2026-09-15", "2026-09-16"]


@pytest.fixture
def file(tmp_path: Path, database: duckdb.DuckDBPyConnection) -> str:
    """Return the file of dimensions of a month with one, two and three views on three days, and those of a project."""
    views = [view(ts=NOON + (day - 1) * DAY, browser="Firefox") for day in range(3) for _ in range(day + 1)]
    others = [view(project_id=name, browser="Chrome") for name in ("a", "z")]
    files = reference.write_hits(tmp_path / "hits", [*views, *others], "one")
    write_rollups(tmp_path, database, files)
    (part,) = coverage.choose(tmp_path, files).parts
    return str(part.rollup.dimensions)


def test_month_has_the_rows_of_one_project_and_dimension(file: str) -> None:
    (rows,) = months.read(ResultCache(0), {"2026-09": file}, "site", "browser")
    assert rows.on(DAYS).keys["value"].texts.to_pylist() == ["Firefox"]
    assert rows.on(DAYS).views.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("days", "views"),
    [(DAYS, [1, 2, 3]), (DAYS[1:2], [2]), ([DAYS[0], DAYS[2]], [1, 3]), (["2026-09-01", "2026-09-30"], [])],
)
def test_rows_are_those_of_the_chosen_days(file: str, days: list[str], views: list[int]) -> None:
    (rows,) = months.read(ResultCache(0), {"2026-09": file}, "site", "browser")
    assert rows.on(days).views.tolist() == views


def test_project_without_views_has_no_rows(file: str) -> None:
    for project in ("", "another", "zz"):
        (rows,) = months.read(ResultCache(0), {"2026-09": file}, project, "browser")
        assert rows.on(DAYS).views.tolist() == rows.on(DAYS).keys["value"].texts.to_pylist() == []


def test_months_in_the_cache_are_not_read_again(file: str) -> None:
    cached = ResultCache(1_000_000)
    before = months.read(cached, {"2026-09": file}, "site", "browser")
    Path(file).unlink()
    assert months.read(cached, {"2026-09": file}, "site", "browser") == before


def test_dimensions_that_were_read_ahead_are_those_of_single_reads(file: str) -> None:
    cached = ResultCache(1_000_000)
    months.read_ahead(cached, "2026-09", file, "site", ["browser", "quarter"])
    alone = [months.read(ResultCache(0), {"2026-09": file}, "site", each)[0] for each in ("browser", "quarter")]
    Path(file).unlink()
    for dimension, single in zip(("browser", "quarter"), alone, strict=True):
        (month,) = months.read(cached, {"2026-09": file}, "site", dimension)
        rows, expected = month.on(DAYS), single.on(DAYS)
        assert rows.keys["value"].texts == expected.keys["value"].texts
        assert (rows.views.tolist(), rows.days.tolist()) == (expected.views.tolist(), expected.days.tolist())


def test_dimensions_of_a_small_project_are_read_at_once(file: str) -> None:
    cached = ResultCache(1_000_000)
    months.read(cached, {"2026-09": file}, "site", "browser")
    Path(file).unlink()
    (rows,) = months.read(cached, {"2026-09": file}, "site", "total")
    assert rows.on(DAYS).views.tolist() == [1, 2, 3]
