"""Pages of a listing, with views that are added after the sums, are those of a plain sort."""

from collections.abc import Iterator
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.blocks import sums
from warehouse.blocks.cumulative import Array
from warehouse.blocks.paths import PathIds
from warehouse.blocks.selection import select
from warehouse.blocks.sums import NO_ADDITIONS, Additions, PathSums, Rows

from warehouse.columns.sources import TRAFFIC
from warehouse.report.results import Audience, Listing, Order, Views
from warehouse.schema import PathBounds

SORTED = ["/", "/a", "/b", "/c", "/d", "/é"]
LATER = ["/z", "/a0"]
"""Paths that were added before the sums."""
NEWEST = ["/b5", "/~"]
"""Paths that were added after the sums."""
ALL = [*SORTED, *LATER, *NEWEST]
"""Paths in the order of their ids."""
Number = tuple[int, int, int]
"""Views of a path by people, AI agents and bots."""
numbers = st.tuples(*[st.sampled_from([0, 0, 1, 2, 5])] * 3)
listings = st.builds(Listing, st.sampled_from(get_args(Order)), st.sampled_from(get_args(Audience)), st.booleans())
BOUNDS: list[PathBounds | None] = [None, ("/a", "/d"), ("/b", None), ("/x", "/y")]


@pytest.fixture(autouse=True, scope="module")
def _short_heads() -> Iterator[None]:
    """Let a page sort few rows more than it needs, as it does with many paths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "HEAD_ROWS", 1)
        yield


def is_within(path: str, bounds: PathBounds | None) -> bool:
    return bounds is None or (bounds[0] <= path and (bounds[1] is None or path < bounds[1]))


def expected(views: dict[str, Number], listing: Listing) -> list[tuple[str, Number]]:
    """Return all rows of a listing, sorted."""

    def is_listed(human: int, ai: int, bot: int) -> bool:
        if listing.audience == "all":
            return human + ai > 0 or (bot > 0 and listing.with_bots)
        return (ai > 0 and human == 0) if listing.audience == "ai_only" else (human > 0 and ai == 0)

    def weight(human: int, ai: int, bot: int) -> int:
        return {"total": human + ai, "human": human, "ai": ai, "bot": bot, "path": 0}[listing.order]

    listed = [(path, each) for path, each in views.items() if is_listed(*each)]
    return sorted(listed, key=lambda row: (-weight(*row[1]), row[0].encode()))


def arrays(rows: list[Number], dtype: type) -> Views:
    human, ai, bot = (np.array([row[kind] for row in rows], dtype) for kind in range(3))
    return human, ai, bot


def listed_rows(paths: PathIds, ids: Array, views: Views) -> list[tuple[str, Number]]:
    return list(zip(paths.take(ids).to_pylist(), zip(*(each.tolist() for each in views), strict=True), strict=True))


@pytest.mark.long
@settings(max_examples=200)
@given(
    st.lists(numbers, min_size=len(ALL), max_size=len(ALL)),
    st.dictionaries(st.sampled_from(ALL), numbers),
    st.sampled_from(BOUNDS),
    listings,
    st.integers(0, 4),
    st.integers(1, 3),
)
def test_page_is_that_of_a_plain_sort(
    stored: list[Number], more: dict[str, Number], bounds: PathBounds | None, listing: Listing, first: int, count: int
) -> None:
    paths = PathIds(pa.array(SORTED))
    paths.add(pa.array(LATER))
    chosen = select(paths, bounds, None, TRAFFIC)
    views = {path: each for path, each in zip([*SORTED, *LATER], stored, strict=False) if is_within(path, bounds)}
    columns = [*SORTED[chosen.sorted_ids], *LATER]
    path_sums = PathSums(chosen, arrays([views.get(path, (0, 0, 0)) for path in columns], np.uint32))
    paths.add(pa.array(NEWEST))
    ids = sorted(ALL.index(path) for path in more if is_within(path, bounds))
    for id in ids:
        human, ai, bot = (sum(pair) for pair in zip(views.get(ALL[id], (0, 0, 0)), more[ALL[id]], strict=True))
        views[ALL[id]] = human, ai, bot
    added = Additions(np.array(ids, np.int64), arrays([more[ALL[id]] for id in ids], np.int64))
    whole = expected(views, listing)
    for start in (first, 0):  # the second page reads the order that the first one has cached
        page_ids, page_views, rows = sums.page(path_sums, added, start, count, listing)
        assert (listed_rows(paths, page_ids, page_views), rows) == (whole[start : start + count], len(whole))


def test_paths_that_leave_the_listing_do_not_shorten_its_page() -> None:
    paths = PathIds(pa.array(SORTED))
    path_sums = PathSums(select(paths, None, None, TRAFFIC), arrays([(0, 9 - id, 0) for id in range(6)], np.uint32))
    left = Additions(np.arange(3), arrays([(1, 0, 0)] * 3, np.int64))
    ids, _, rows = sums.page(path_sums, left, 0, 2, Listing(audience="ai_only"))
    assert (ids.tolist(), rows) == ([3, 4], 3)


def test_totals_are_those_of_all_paths() -> None:
    views = arrays([(4_000_000_000, 1, 2)] * 6, np.uint32)
    path_sums = PathSums(select(PathIds(pa.array(SORTED)), None, None, TRAFFIC), views)
    assert path_sums.totals == (24_000_000_000, 6, 12)
    ids, _, rows = sums.page(path_sums, NO_ADDITIONS, 0, 3, Listing(order="path"))
    assert (ids.tolist(), rows) == ([0, 1, 2], 6)


def test_rows_are_added_to_the_columns_of_their_paths_sources_and_traffic() -> None:
    paths = PathIds(pa.array(SORTED))
    paths.add(pa.array(LATER))
    rows = Rows(np.array([1, 1, 2, 5, 6, 7]), np.array([0, 1, 1, 1, 1, 1]), arrays([(1, 10, 100)] * 6, np.int64))
    chosen = select(paths, ("/a", "/c"), "server", ("human", "bot"))
    result = arrays([(50, 50, 50)] * (chosen.width + len(LATER)), np.uint32)
    rows.add(result, chosen)
    assert chosen.sorted_ids == slice(1, 3)
    # The columns are /a, /b, /z and /a0. The first row has another source; /é and /z are not within the bounds.
    assert [each.tolist() for each in result] == [[51, 51, 50, 51], [50] * 4, [150, 150, 50, 150]]
    rows.signed(-1).add(result, chosen)
    assert [each.tolist() for each in result] == [[50] * 4] * 3
