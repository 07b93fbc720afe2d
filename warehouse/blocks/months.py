"""Daily views of the paths of a project in one month."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from warehouse.blocks.cumulative import Array, CumulativeCounts

DAYS = 31
"""Number of days in the arrays of each month. Days after the end of a shorter month have no views."""
CELL_VIEWS_MAX = 255
"""Maximum number of views in a cell, which stores the number in one byte."""
Key = tuple[int, int]
"""Source and traffic of views, as indices in SOURCES and TRAFFIC."""


@dataclass(frozen=True, slots=True, eq=False)
class DailyViews:
    """Daily views of paths, for one source and traffic.

    The views are cumulated at the end of every `spacing` days. The days between are added from the cells, which are
    the views that are not zero, sorted by day and path id. The cells of day d begin at `starts[d - 1]`. A number above
    CELL_VIEWS_MAX has several cells. Without cells, `spacing` is 1.
    """

    spacing: int
    cumulated: CumulativeCounts
    ids: Array
    views: Array
    starts: Array

    @property
    def nbytes(self) -> int:
        return self.cumulated.nbytes + self.ids.nbytes + self.views.nbytes + self.starts.nbytes

    def add(self, sums: Array, ids: slice, days: range) -> None:
        """Add the views of path ids on some days of the month to `sums`. Unsigned sums may wrap around meanwhile."""
        first, end = days.start - 1, days.stop - 1
        first_row, end_row = self._nearest_row(first), self._nearest_row(end)
        if first_row != end_row:
            sums += self.cumulated.between(first_row, end_row, ids, sums.dtype)
        self._add_cells(sums, ids, self._end_of_row(end_row), end)
        self._add_cells(sums, ids, first, self._end_of_row(first_row))

    def by_day(self, ids: slice) -> Array:
        """Return the views of path ids on each day of the month, added up."""
        if self.spacing == 1:
            days = (self.cumulated.between(day, day + 1, ids, np.int64) for day in range(DAYS))
            return np.array([each.sum() for each in days])
        is_counted = (self.ids >= ids.start) & (self.ids < ids.stop)
        ends = np.cumsum(np.where(is_counted, self.views, 0), dtype=np.int64)
        return np.diff(np.concatenate([[0], ends])[self.starts])

    def _nearest_row(self, day: int) -> int:
        return round(day / self.spacing)

    def _end_of_row(self, row: int) -> int:
        return min(row * self.spacing, DAYS)

    def _add_cells(self, sums: Array, ids: slice, first: int, end: int) -> None:
        """Add the cells of the days with first < day <= end, or subtract those with end < day <= first."""
        if first == end:
            return
        within = slice(self.starts[min(first, end)], self.starts[max(first, end)])
        columns, views = self.ids[within].astype(np.intp), self.views[within].astype(sums.dtype)
        if (ids.start, ids.stop) != (0, self.cumulated.columns):
            is_counted = (columns >= ids.start) & (columns < ids.stop)
            columns, views = columns[is_counted] - ids.start, views[is_counted]
        # 2 ns a cell with equal types. `bincount` takes 15 ns, as do these functions if they must convert types.
        (np.add if first < end else np.subtract).at(sums, columns, views)


@dataclass(frozen=True, slots=True, eq=False)
class MonthBlock:
    """Daily views of the paths of a project in one month, for each source and traffic that has any."""

    views: Mapping[Key, DailyViews]

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.views.values())


@dataclass(frozen=True, slots=True, eq=False)
class RestOfMonth:
    """Views of paths in a month without its first or its last days, for one source and traffic.

    `totals` has the views of whole months, and `left_out` the views of the days that are left out, if there are any.
    """

    totals: CumulativeCounts
    index: int
    left_out: DailyViews | None

    def add(self, sums: Array, ids: slice, days: range) -> None:
        """Add the views of path ids on `days`, all days but those left out, to `sums`: see `DailyViews.add`."""
        sums += self.totals.between(self.index, self.index + 1, ids, sums.dtype)
        if self.left_out is not None:
            subtracted = np.zeros_like(sums)
            self.left_out.add(subtracted, ids, other_days(days))
            sums -= subtracted


@dataclass(frozen=True, slots=True, eq=False)
class SomeDays:
    """Views of the paths of a project on some days of a month, for each source and traffic that has any."""

    days: range
    views: Mapping[Key, DailyViews | RestOfMonth]
    nbytes: int


def other_days(days: range) -> range:
    """Return the other days of a month. `days` are its first or its last days."""
    return range(1, days.start) if days.stop > DAYS else range(days.stop, DAYS + 1)


def build(days: Array, ids: Array, sources: Array, traffic: tuple[Array, ...], paths: int) -> MonthBlock:
    """Return the block of rows that are sorted by day and path id. `traffic` has the views of each kind of traffic."""
    block: dict[Key, DailyViews] = {}
    for source in np.flatnonzero(np.bincount(sources)).tolist():
        is_of_source = sources == source
        for kind, views in enumerate(traffic):
            chosen = np.flatnonzero(is_of_source & (views > 0))
            if chosen.size:
                block[source, kind] = _daily_views(days[chosen], ids[chosen], views[chosen], paths)
    return MonthBlock(block)


def _daily_views(days: Array, ids: Array, views: Array, paths: int) -> DailyViews:
    """Return the views, with a spacing for which a day needs on average at most one cell for every four paths."""
    spacing = min(max(round(DAYS * paths / (2 * ids.size)), 1), DAYS)
    rows = np.zeros((-(-DAYS // spacing), paths), np.uint32)
    places = (days.astype(np.intp) - 1) // spacing * paths + ids
    np.add.at(rows.reshape(-1), places, views.astype(np.uint32, copy=False))
    cumulated, empty = CumulativeCounts.of(rows), np.zeros(0, np.uint8)
    if spacing == 1:
        return DailyViews(spacing, cumulated, empty, empty, empty)
    cells, parts = split_views(views)
    starts = np.searchsorted(days[cells], np.arange(1, DAYS + 2))
    return DailyViews(spacing, cumulated, ids[cells].astype(np.uint32), parts, starts)


def split_views(views: Array) -> tuple[Array, Array]:
    """Return cells that add up to the views, none of which is 0: the index in `views` of each cell, and its number."""
    repeats = -(-views.astype(np.int64) // CELL_VIEWS_MAX)
    cells = np.repeat(np.arange(views.size), repeats)
    parts = np.full(cells.size, CELL_VIEWS_MAX, np.uint8)
    parts[np.cumsum(repeats) - 1] = views - (repeats - 1) * CELL_VIEWS_MAX
    return cells, parts
