"""Each filter and breakdown is answered from the smallest cube that has its columns."""

from itertools import product

import pytest

from warehouse.columns.dimensions import BREAKDOWNS, CUBES, DIMENSIONS, FILTERS, OF_VISITS, PAGES, dimension, find_cube

READER = ["traffic", "agent", "operator", "purpose", "verification", "sources"]


@pytest.mark.parametrize(
    ("columns", "cube"),
    [
        ([], "totals"),
        (["traffic", "sources", "day"], "totals"),
        (["agent"], "readers"),
        (["quarter", "traffic", "sources", "day"], "quarters"),
        (["quarter", "agent"], "reader_quarters"),
        (["browser", *READER], "devices"),
        (["verifiedBy", "agent"], "readers"),
        (["referrerHost", "utmSource", *READER], "origins"),
        (["referrerHost", "status", *READER], "page_views"),
        (["path", *READER, "day"], "paths"),
        (["path", "browser"], "path_views"),
        (["quarter", "browser"], "path_views"),
        (["second"], None),
        (["userAgent"], None),
    ],
)
def test_smallest_cube_with_all_columns_is_read(columns: list[str], cube: str | None) -> None:
    found = find_cube(columns)
    assert (found and found.name) == cube


def test_any_two_filters_but_those_by_a_page_are_answered_from_a_rollup() -> None:
    names = [dimension(name).name for name in FILTERS if name not in PAGES]
    assert all(find_cube(pair) is not None for pair in product(names, names))


def test_names_of_the_api_are_those_of_the_dimensions_of_a_page_view() -> None:
    assert {*FILTERS} - {*BREAKDOWNS} == {"traffic", *OF_VISITS}
    assert {dimension(name).name for name in FILTERS} == {each.name for each in DIMENSIONS} - {
        *("day", "quarter", "second", "userAgent", "verifiedBy")
    }


def test_cube_is_added_up_from_one_that_has_its_columns() -> None:
    by_name = {cube.name: cube for cube in CUBES}
    assert all(by_name[cube.base].has(cube.columns) for cube in CUBES if cube.base)
