"""Daily views of the paths of a project in one month by some readers, such as one AI agent."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from warehouse.blocks.cumulative import Array
from warehouse.blocks.months import DAYS, Key, split_views
from warehouse.blocks.selection import Selection
from warehouse.rollups.schema import SOURCES, TRAFFIC

COLUMNS = ("day", "path_id", "source", "traffic", "views")
"""Columns of `agent_paths.parquet` from which the views are made."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupedViews:
    """Path ids and views, which are at most CELL_VIEWS_MAX, in the order of source, traffic and day.

    `starts` has the first item of each source, traffic and day, and the end. A path may have several items, whose views
    add up.
    """

    starts: Array
    ids: Array
    views: Array

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.ids.nbytes + self.views.nbytes

    def add(
        self, sums: Sequence[Array], chosen: Selection, keys: Collection[Key], days: range, *, is_subtracted: bool
    ) -> None:
        """Add the views of a selection on some days of the month to `sums`, whose columns are those of the selection.

        `sums` has an array for each traffic. Only the pairs of source and traffic in `keys` are counted. Unsigned sums
        may wrap around meanwhile.
        """
        operation = np.subtract if is_subtracted else np.add
        for source, traffic in keys:
            starts = self._starts(source, traffic)
            items = slice(starts[days.start - 1], starts[days.stop - 1])
            ids, views = self.ids[items].astype(np.intp), self.views[items].astype(sums[traffic].dtype)
            is_chosen = chosen.has(ids)
            operation.at(sums[traffic], chosen.columns(ids[is_chosen]), views[is_chosen])

    def by_day(self, chosen: Selection, keys: Collection[Key]) -> Array:
        """Return the views of a selection on each day of the month, added up, in a row for each kind of traffic.

        Of the selection, the sources and traffic `keys` are counted.
        """
        sums = np.zeros((len(TRAFFIC), DAYS), np.int64)
        for source, traffic in keys:
            starts = self._starts(source, traffic)
            items = slice(starts[0], starts[-1])
            counted = np.where(chosen.has(self.ids[items].astype(np.intp)), self.views[items], 0)
            ends = np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])
            sums[traffic] += np.diff(ends[starts - starts[0]])
        return sums

    def _starts(self, source: int, traffic: int) -> Array:
        """Return the first item of each day for a source and a kind of traffic, and the end."""
        first = (source * len(TRAFFIC) + traffic) * DAYS
        return self.starts[first : first + DAYS + 1]


def group(days: Array, ids: Array, sources: Array, traffic: Array, views: Array) -> GroupedViews:
    """Return the views of rows. `sources` and `traffic` are indices in SOURCES and TRAFFIC."""
    groups = (sources.astype(np.uint16) * len(TRAFFIC) + traffic) * DAYS + days - 1
    order = np.argsort(groups, kind="stable")
    cells, parts = split_views(views[order])
    order = order[cells]
    starts = np.searchsorted(groups[order], np.arange(len(SOURCES) * len(TRAFFIC) * DAYS + 1))
    return GroupedViews(starts.astype(np.uint32), ids[order], parts)
