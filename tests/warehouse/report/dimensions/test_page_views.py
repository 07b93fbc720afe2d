"""Page views are read of the paths of one project, and of the wanted profiles."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from warehouse.report.dimensions import page_views
from warehouse.report.dimensions.page_views import PathMonth

from tests.warehouse.blocks import rollup_files
from tests.warehouse.site import NOON, Row, view
from warehouse.query.result_cache import ResultCache
from warehouse.rollups.coverage import Rollup

ROWS = [
    view(f"/{number % 4}", project_id=project, source=("log", "beacon", "server")[number % 3])
    for project in ("a", "site", "z")
    for number in range(14)
]
COLUMNS = ("path_id", "profile_id")


@pytest.fixture(scope="module")
def rollup(tmp_path_factory: pytest.TempPathFactory) -> Rollup:
    """Return a rollup whose row groups of page views have three rows."""
    rollup = Rollup(f"{NOON:%Y-%m}", tmp_path_factory.mktemp("rollup"), {}, 0)
    rollup_files.write_views(rollup, ROWS)
    return rollup


def rows(rollup: Rollup, ids: range, wanted: Iterable[str] | None, *, reads_all: bool = False) -> list[tuple[int, str]]:
    """Return the path id and source of the page views that are read, in their order."""
    cached, month = ResultCache(1_000_000), PathMonth(rollup, "site", ids)
    profiles = page_views.profiles(cached, rollup).columns["source"]
    sources = profiles.at(profiles.codes).to_pylist()
    is_wanted = None if wanted is None else np.array([source in wanted for source in sources])
    tables = page_views.read(cached, month, COLUMNS, is_wanted, reads_all=reads_all)
    return [(row["path_id"], sources[row["profile_id"]]) for table in tables for row in table.to_pylist()]


def expected(ids: range, wanted: Iterable[str]) -> list[tuple[int, str]]:
    def place(row: Row) -> tuple[int, str]:
        return int(row["path"][1:]), row["source"]

    of_project = (place(row) for row in ROWS if row["project_id"] == "site")
    return sorted(each for each in of_project if each[0] in ids and each[1] in wanted)


@pytest.mark.parametrize("ids", [range(4), range(1), range(1, 3), range(2, 2)], ids=str)
@pytest.mark.parametrize("wanted", [["beacon"], ["log", "server"], []], ids=str)
def test_page_views_of_paths_and_wanted_profiles_are_read_in_order(
    rollup: Rollup, ids: range, wanted: list[str]
) -> None:
    everything = ["beacon", "log", "server"]
    assert rows(rollup, ids, None) == expected(ids, everything)
    assert sorted(rows(rollup, ids, wanted)) == expected(ids, wanted)
    assert rows(rollup, ids, wanted, reads_all=True) == (expected(ids, everything) if wanted else [])


def test_page_views_are_not_read_if_no_profile_is_wanted(tmp_path: Path) -> None:
    rollup = Rollup("2026-09", tmp_path, {}, 0)
    rollup_files.write_views(rollup, ROWS)
    rollup.path_views.unlink()
    assert rows(rollup, range(4), ["unknown"]) == []
