"""Rows of a dimension of some paths are those of the page views of these paths."""

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from datetime import date

import pyarrow.parquet as pq
import pytest
from warehouse.report.dimensions import path_months
from warehouse.report.dimensions.page_views import PathMonth
from warehouse.report.dimensions.path_months import DENSE_COUNTERS
from warehouse.report.dimensions.rows import VALUE, DimensionRows

from tests.warehouse.rollups.test_writer import varied, write
from tests.warehouse.site import Row, Site
from warehouse.columns.sources import DIMENSION_KEY, QUARTER_S, VIEW_VALUES
from warehouse.query.result_cache import ResultCache
from warehouse.rollups.coverage import Rollup

ROWS = [varied(number) for number in range(90)]
DAYS_BEFORE_THE_MONTH = date(2026, 8, 31).toordinal() - 1
"""Number of days from the first day of the year 1 to the last one before MONTH."""


@pytest.fixture(scope="module")
def rollup(tmp_path_factory: pytest.TempPathFactory) -> Iterable[Rollup]:
    """Yield a rollup of ROWS, whose file of page views has row groups of seven rows."""
    with closing(Site(tmp_path_factory.mktemp("site"))) as site:
        site.post(*ROWS)
        site.load()
        rollup = write(site)
        views = pq.read_table(rollup.path_views, partitioning=None)
        pq.write_table(views, rollup.path_views, row_group_size=7)
        yield rollup


def stored(rows: DimensionRows) -> Counter[tuple[object, ...]]:
    """Return the views by day of the month, value and key."""
    columns = {name: column.at(column.codes).to_pylist() for name, column in rows.keys.items()}
    counts: Counter[tuple[object, ...]] = Counter()
    for key_id, day, views in zip(rows.key_ids.tolist(), rows.days.tolist(), rows.views.tolist(), strict=True):
        key = (columns[name][key_id] for name in (VALUE, *DIMENSION_KEY))
        counts[rows.first_day + day - DAYS_BEFORE_THE_MONTH, *key] += views
    return counts


def expected(rows: list[Row], dimension: str) -> Counter[tuple[object, ...]]:
    """Return the views by day of the month, value and key in plain Python."""
    counts: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        value = row[VIEW_VALUES.get(dimension, dimension)] if dimension not in ("total", "quarter") else None
        quarter = (row["ts"].hour * 3600 + row["ts"].minute * 60) // QUARTER_S
        value = str(quarter) if dimension == "quarter" else value
        names = ("source", "traffic") if dimension == "quarter" else DIMENSION_KEY
        key = (row[name] if name in names else None for name in DIMENSION_KEY)
        counts[row["ts"].day, None if value is None else str(value), *key] += 1
    return counts


@pytest.mark.parametrize("dense_counters", [DENSE_COUNTERS, 0], ids=["array", "hash table"])
@pytest.mark.parametrize("dimension", ["total", "browser", "status", "quarter", "referrerHost", "utmSource"])
def test_rows_of_each_range_of_paths_are_those_of_its_page_views(
    rollup: Rollup, dimension: str, dense_counters: int
) -> None:
    for project in ("Site", "site", "site-2", "unknown"):
        paths = sorted({row["path"] for row in ROWS if row["project_id"] == project}, key=str.encode)
        for ids in (range(len(paths)), range(1, 2), range(2, 4), range(3, 3)):
            chosen = [
                row for row in ROWS if row["project_id"] == project and row["path"] in paths[ids.start : ids.stop]
            ]
            month = PathMonth(rollup, project, ids)
            (rows,) = path_months.read(ResultCache(0), [month], dimension, dense_counters)
            assert stored(rows) == expected(chosen, dimension)
            assert rows.days.tolist() == sorted(rows.days.tolist())


def test_dimensions_of_a_profile_share_the_counts_of_the_page_views(rollup: Rollup) -> None:
    cached, month = ResultCache(10_000_000), PathMonth(rollup, "site", range(2))
    (browsers,) = path_months.read(cached, [month], "browser")
    views = rollup.path_views.rename(rollup.folder / "moved")
    (formats,) = path_months.read(cached, [month], "format")
    views.rename(rollup.path_views)
    assert int(formats.views.sum()) == int(browsers.views.sum()) > 0
